"""Single entries of a living agent's view, made again as the host has them, by plain file operations."""

import errno
import os
import stat
from collections.abc import Iterable

from interlock.model.events import Staging
from interlock.staging.copying import copy_symlink, set_attributes, set_symlink_attributes
from interlock.staging.in_use import is_mapped, who_has_open
from interlock.staging.lending import lending
from interlock.staging.pouring import pour
from interlock.staging.roots import StagedRoot
from interlock.staging.stamps import check_depth, open_file, open_folder, paths_of_inodes, read_xattrs
from interlock.staging.syscalls import RENAME_NOREPLACE, open_beneath, renameat2

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PAGE_BYTES = 4096


class View:
    """The merged mount that the agent sees, beside the host's folder and the raw layer; to be closed.

    Takes: `merged`, a path to the mount's top; `whole`, whether all that differs is put back, so that no name of a
    file is to keep what the agent wrote.
    Holds: every path is looked up below the mount's top, over no symlink and onto no other mount; nothing of the
    host's folder is written. Paths are `os.fsdecode` text relative to the root.
    """

    def __init__(self, root: StagedRoot, merged: str, *, whole: bool) -> None:
        self._root = root
        self._whole = whole
        self._overlay = root.mode is Staging.OVERLAY
        self._fds: list[int] = []
        self._lent: dict[str, int] = {}
        self._made: dict[int, str] = {}
        self._peers: dict[int, list[str]] = {}
        self._prefix = f".interlock-{os.urandom(8).hex()}-"
        self._count = 0
        try:
            self._view = self._open(merged)
            self._lower = self._open(root.lower)
            self._upper = self._open(root.upper)
        except BaseException:
            self.close()
            raise
        # then an overlay's files have the inode numbers of the host's files that they stand for
        self._tells_inodes = self._overlay and os.fstat(self._lower).st_dev == os.fstat(self._upper).st_dev

    def _open(self, path: str) -> int:
        fd = os.open(path, _FOLDER)
        self._fds.append(fd)
        return fd

    def close(self) -> None:
        """Take back the permission bits that were lent, and close the folders."""
        for path, mode in sorted(self._lent.items(), key=lambda one: one[0].count("/"), reverse=True):
            try:
                fd = open_beneath(self._view, path, os.O_PATH | os.O_DIRECTORY)
            except OSError:
                continue  # removed, or put back with the host's own mode
            try:
                os.chmod(f"/proc/self/fd/{fd}", mode)
            finally:
                os.close(fd)
        self._lent.clear()
        while self._fds:
            os.close(self._fds.pop())

    def take_out(self, path: str) -> str:
        """Move a folder to a passing name at the top. Returns: that name."""
        name = self._passing_name()
        parent = self._parent(path)
        try:
            renameat2(parent, _name(path), self._view, name, RENAME_NOREPLACE)
        finally:
            os.close(parent)
        return name

    def put_in(self, name: str, path: str) -> None:
        """Move a folder that `take_out` moved to where it belongs."""
        parent = self._parent(path)
        try:
            renameat2(self._view, name, parent, _name(path), RENAME_NOREPLACE)
        finally:
            os.close(parent)

    def remove(self, path: str) -> None:
        """Remove an entry; a folder only if nothing is left in it."""
        parent = self._parent(path)
        try:
            name = _name(path)
            if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                os.rmdir(name, dir_fd=parent)
            else:
                os.unlink(name, dir_fd=parent)
        finally:
            os.close(parent)

    def folders(self) -> list[str]:
        """List the folders that the layer holds, its top too."""
        found = [""]
        with lending(self._root.upper) as loans:
            for path in found:
                at = loans.open_folder(self._upper, path)
                try:
                    with os.scandir(f"/proc/self/fd/{at}") as entries:
                        names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
                finally:
                    os.close(at)
                found.extend(f"{path}/{name}" if path else name for name in names)
        return found

    def seek_peers(self, lower_paths: Iterable[str]) -> None:
        """Find the further names that the host's hard-linked files at or below these paths have."""
        wanted: set[int] = set()
        for path in lower_paths:
            wanted.update(self._linked_below(path))
        if wanted:
            for path, ino in paths_of_inodes(self._lower, wanted):
                self._peers.setdefault(ino, []).append(path)

    def _linked_below(self, path: str) -> set[int]:
        parent = open_beneath(self._lower, _folder(path), os.O_PATH | os.O_DIRECTORY)
        try:
            status = os.stat(_name(path), dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                return {status.st_ino} if status.st_nlink > 1 else set()
            fd = open_folder(parent, _name(path), status)
        finally:
            os.close(parent)
        try:
            found: set[int] = set()
            for name in os.listdir(fd):
                found |= self._linked_below(f"{path}/{name}")
            return found
        finally:
            os.close(fd)

    def make(self, path: str, lower_path: str, leaving: frozenset[str]) -> list[tuple[str, str]]:
        """Make again what the host has at `lower_path`, with all below it.

        Takes: `leaving`, host folders that are not made again: they have moved.
        Returns: the folders made, as (path, host's path), which are yet to be given their attributes.
        """
        folders: list[tuple[str, str]] = []
        parent = self._parent(path)
        try:
            lower = open_beneath(self._lower, _folder(lower_path), os.O_PATH | os.O_DIRECTORY)
            try:
                self._make((lower, parent), (path, lower_path), leaving, folders)
            finally:
                os.close(lower)
        finally:
            os.close(parent)
        return folders

    def _make(
        self,
        fds: tuple[int, int],
        paths: tuple[str, str],
        leaving: frozenset[str],
        folders: list[tuple[str, str]],
    ) -> None:
        (lower, parent), (path, lower_path) = fds, paths
        check_depth(path)
        name, source = _name(path), _name(lower_path)
        status = os.stat(source, dir_fd=lower, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            self._make_leaf(fds, (path, source), status)
            return
        os.mkdir(name, 0o700, dir_fd=parent)
        folders.append(paths)
        below = open_folder(lower, source, status)
        try:
            made = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
            try:
                for entry in sorted(os.listdir(below), key=os.fsencode):
                    if f"{lower_path}/{entry}" not in leaving:
                        further = (f"{path}/{entry}", f"{lower_path}/{entry}")
                        self._make((below, made), further, leaving, folders)
            finally:
                os.close(made)
        finally:
            os.close(below)

    def _make_leaf(self, fds: tuple[int, int], names: tuple[str, str], status: os.stat_result) -> None:
        (lower, parent), (path, source) = fds, names
        name = _name(path)
        if status.st_nlink > 1 and self._link_to_peer(parent, name, status):
            if self._whole and stat.S_ISREG(status.st_mode):
                # a write through the name that is gone shows at the others still, and in no listing
                self._write(fds, (name, source), status)
            return
        if stat.S_ISREG(status.st_mode):
            self._copy((lower, parent), (source, name), status)
        elif stat.S_ISLNK(status.st_mode):
            copy_symlink(lower, source, status, parent, name)
        else:
            os.mknod(name, stat.S_IFMT(status.st_mode) | 0o600, status.st_rdev, dir_fd=parent)
            set_attributes(f"/proc/self/fd/{parent}/{name}", status, {})
        self._made[status.st_ino] = path

    def _link_to_peer(self, parent: int, name: str, status: os.stat_result) -> bool:
        """Make a further name of a host's hard-linked file, where the view still shows that file."""
        peers = [self._made[status.st_ino]] if status.st_ino in self._made else []
        known = len(peers)
        if self._tells_inodes:
            peers += self._peers.get(status.st_ino, ())
        for number, peer in enumerate(peers):
            try:
                folder = open_beneath(self._view, _folder(peer), os.O_PATH | os.O_DIRECTORY)
            except OSError:
                continue
            try:
                found = os.stat(_name(peer), dir_fd=folder, follow_symlinks=False)
                same = number < known or found.st_ino == status.st_ino
                if same and (self._whole or _likeness(found) == _likeness(status)):
                    os.link(_name(peer), name, src_dir_fd=folder, dst_dir_fd=parent, follow_symlinks=False)
                    return True
            except (FileNotFoundError, NotADirectoryError):
                continue
            finally:
                os.close(folder)
        return False

    def _copy(self, fds: tuple[int, int], names: tuple[str, str], status: os.stat_result) -> None:
        reading = open_file(fds[0], names[0], status)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            writing = os.open(names[1], flags, 0o600, dir_fd=fds[1])
            try:
                pour(reading, writing, status)
                set_attributes(writing, status, read_xattrs(reading))
            finally:
                os.close(writing)
        finally:
            os.close(reading)

    def restore(self, path: str, lower_path: str, *, content: bool) -> None:
        """Give an entry the host's content (with `content`) and attributes."""
        lower = open_beneath(self._lower, _folder(lower_path), os.O_PATH | os.O_DIRECTORY)
        try:
            parent = self._parent(path)
            try:
                self._restore((lower, parent), path, lower_path, content=content)
            finally:
                os.close(parent)
        finally:
            os.close(lower)

    def _restore(self, fds: tuple[int, int], path: str, lower_path: str, *, content: bool) -> None:
        (lower, parent), name, source = fds, _name(path), _name(lower_path)
        host = os.stat(source, dir_fd=lower, follow_symlinks=False)
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_IFMT(host.st_mode) != stat.S_IFMT(now.st_mode):
            raise OSError(errno.ESTALE, "something else stands there", path)
        if not stat.S_ISREG(now.st_mode):
            if content:
                os.unlink(name, dir_fd=parent)
                self._make_leaf(fds, (path, source), host)
            else:
                self._set_attributes(fds, (name, source), host)
        elif not self._goes_in_place(path, now, host):
            self._exchange(fds, (name, source), host)
        elif not content:
            self._set_attributes(fds, (name, source), host)
        else:
            try:
                self._write(fds, (name, source), host)
            except OSError as error:
                if error.errno != errno.ETXTBSY:
                    raise
                self._exchange(fds, (name, source), host)  # it runs just now

    def _goes_in_place(self, path: str, now: os.stat_result, host: os.stat_result) -> bool:
        """Say whether a file's own inode is written, or a new file takes its place.

        Whoever has it open for writing goes on in the same file, so that what it writes next is seen. One that is
        only read is exchanged: a library that is mapped must not change under its program. Names that the command
        linked are parted, for the others may stay; the host's own hard links go together.
        Raises: OSError, where it cannot be told which names go together.
        """
        if now.st_nlink > 1:
            if not self._overlay or host.st_nlink == 1:
                return False
            if not self._tells_inodes:
                raise OSError(
                    errno.EMLINK, "it has hard links, and the layer lies on another file system", path
                )
            return now.st_ino == host.st_ino
        readers, writers = who_has_open(self._upper, path)
        if not writers:
            return not readers
        shrinks = -(-host.st_size // _PAGE_BYTES) < -(-now.st_size // _PAGE_BYTES)
        # whoever reads a page of a mapping that the file no longer has is killed
        return not (shrinks and is_mapped(now))

    def _write(self, fds: tuple[int, int], names: tuple[str, str], host: os.stat_result) -> None:
        reading = open_file(fds[0], names[1], host)
        try:
            flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            try:
                writing = os.open(names[0], flags, dir_fd=fds[1])
            except PermissionError:
                pin = os.open(names[0], os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fds[1])
                try:
                    os.chmod(f"/proc/self/fd/{pin}", 0o600)  # its own mode follows below
                finally:
                    os.close(pin)
                writing = os.open(names[0], flags, dir_fd=fds[1])
            try:
                pour(reading, writing, host)
                set_attributes(writing, host, read_xattrs(reading))
            finally:
                os.close(writing)
        finally:
            os.close(reading)

    def _exchange(self, fds: tuple[int, int], names: tuple[str, str], host: os.stat_result) -> None:
        passing = self._passing_name()
        self._copy(fds, (names[1], passing), host)
        try:
            os.rename(passing, names[0], src_dir_fd=fds[1], dst_dir_fd=fds[1])
        except BaseException:
            os.unlink(passing, dir_fd=fds[1])
            raise

    def _set_attributes(self, fds: tuple[int, int], names: tuple[str, str], host: os.stat_result) -> None:
        lower, parent = fds
        if stat.S_ISLNK(host.st_mode):
            set_symlink_attributes(
                parent,
                names[0],
                owner=(host.st_uid, host.st_gid),
                times_ns=(host.st_atime_ns, host.st_mtime_ns),
            )
            return
        pins = [
            os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            for name, fd in ((names[1], lower), (names[0], parent))
        ]
        try:
            host_path, path = (f"/proc/self/fd/{pin}" for pin in pins)
            set_attributes(path, host, read_xattrs(host_path))
        finally:
            for pin in pins:
                os.close(pin)

    def settle_folder(self, path: str, lower_path: str) -> None:
        """Give a folder the host's attributes; nothing is put into it afterwards."""
        host_fd = open_beneath(self._lower, lower_path, os.O_PATH | os.O_DIRECTORY)
        try:
            fd = open_beneath(self._view, path, os.O_PATH | os.O_DIRECTORY)
            try:
                xattrs = read_xattrs(f"/proc/self/fd/{host_fd}")
                set_attributes(f"/proc/self/fd/{fd}", os.fstat(host_fd), xattrs)
            finally:
                os.close(fd)
        finally:
            os.close(host_fd)
        self._lent.pop(path, None)

    def _parent(self, path: str) -> int:
        """Open the folder that an entry lies in; where its owner lacks a bit for it, the bit is lent."""
        if os.geteuid() != 0:
            at = ""
            for part in ("", *(one for one in _folder(path).split("/") if one)):
                at = f"{at}/{part}" if at and part else at or part
                self._lend(at)
        return open_beneath(self._view, _folder(path), os.O_PATH | os.O_DIRECTORY)

    def _lend(self, path: str) -> None:
        fd = open_beneath(self._view, path, os.O_PATH | os.O_DIRECTORY)
        try:
            status = os.fstat(fd)
            mode = stat.S_IMODE(status.st_mode)
            if mode & 0o700 != 0o700 and status.st_uid == os.geteuid():
                os.chmod(f"/proc/self/fd/{fd}", mode | 0o700)
                self._lent[path] = mode
        finally:
            os.close(fd)

    def _passing_name(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2] or "."


def _likeness(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_mtime_ns)
