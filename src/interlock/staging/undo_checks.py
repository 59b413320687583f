"""Whether what a merge left on the host, and what it kept aside, is still exactly that."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace

from interlock.model.effects import FileType
from interlock.model.errors import IntegrityError
from interlock.model.places import Place, path_text
from interlock.model.records import dataclass
from interlock.staging.keeping import NEW, OLD, Kept, Made
from interlock.staging.stamps import digest_of, open_file, open_folder, read_xattrs, tree_digest, type_of
from interlock.staging.syscalls import open_beneath
from interlock.staging.undo_entries import Deed, Entry, spot
from interlock.staging.undo_entries import moves_of as moves_of_log
from interlock.staging.wal import Adjust, Identity

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_GONE = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A place that is not what the merge left, and in which way."""

    place: Place
    reason: str


class RootCheck:
    """Compares one root of a kept merge with the host; to be closed.

    Raises: IntegrityError, where the root's folder is another one than the merge changed.
    """

    def __init__(self, kept: Kept, number: int) -> None:
        if kept.wal is None:
            raise AssertionError("a merge that is not kept cannot be checked")
        self._root = kept.wal.roots[number]
        self._fds: list[int] = []
        adjusts = {one.ino: one for one in kept.wal.adjusts if one.root == number and one.ino}
        self._items = {
            item.path: _adjusted_too(item, adjusts.get(item.ino)) for item in kept.made if item.root == number
        }
        self._inside: dict[str, list[str]] = {}
        for path in self._items:
            self._inside.setdefault(path.rpartition("/")[0], []).append(path)
        moves = [put.path for put in kept.wal.puts if put.root == number and put.is_move]
        self._arrived = frozenset(moves)
        self._paths = moves_of_log(kept.wal)[number]
        try:
            self.lower = self._open(self._root.lower)
            if os.fstat(self.lower).st_ino != self._root.ino:
                raise IntegrityError(
                    f"the folder of root `{self._root.name}` is another one than the run changed",
                    hint="put the folder back to its path, then undo again",
                )
            self._kept = tuple(self._open(f"{self._root.stage}/{name}") for name in (NEW, OLD))
        except BaseException:
            self.close()
            raise

    def _open(self, path: str) -> int:
        fd = os.open(path, _FOLDER)
        self._fds.append(fd)
        return fd

    def close(self) -> None:
        """Close every folder."""
        while self._fds:
            os.close(self._fds.pop())

    def status(self, path: str) -> os.stat_result | None:
        """Return what the host has at a path, None where there is nothing."""
        try:
            parent, name = self._at(path)
        except _GONE:
            return None
        try:
            return os.stat(name, dir_fd=parent, follow_symlinks=False)
        except _GONE:
            return None
        finally:
            os.close(parent)

    def identity(self, path: str, leaving: frozenset[str], *, digest: bool) -> Identity:
        """Return which very file the host has at a path; `digest`, whether a folder's content counts."""
        parent, name = self._at(path)
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            text = ""
            if digest and stat.S_ISDIR(status.st_mode):
                text = tree_digest(parent, name, status, path=path, leaving=leaving)[1]
            return Identity(
                ino=status.st_ino,
                mode=status.st_mode,
                uid=status.st_uid,
                gid=status.st_gid,
                size_bytes=status.st_size,
                mtime_ns=status.st_mtime_ns,
                digest=text,
            )
        finally:
            os.close(parent)

    def changed(self, entry: Entry, *, is_freed: bool) -> Iterator[Changed]:
        """Yield what differs of one entry.

        Takes: `is_freed`, whether the place of what comes back is freed, or made, by another entry.
        """
        try:
            match entry.deed:
                case Deed.CREATED:
                    yield from self._compare(entry.staged, entry.path)
                case Deed.REPLACED:
                    if self.status(entry.path) is None:
                        yield self._said(entry.path, "it is gone")
                    else:
                        yield from self._compare(entry.staged, entry.path)
                        yield from self._kept_whole(entry)
                case Deed.MOVED:
                    yield from self._moved(entry)
                    yield from self._free(entry, is_freed)
                case Deed.REMOVED:
                    yield from self._free(entry, is_freed)
                    yield from self._kept_whole(entry)
                case Deed.ADJUSTED:
                    if entry.adjust is not None:
                        yield from self._adjusted(entry.path, entry.adjust)
        except OSError as error:
            yield self._said(entry.path, f"it cannot be looked at ({error.strerror})")

    def parts(self, entry: Entry, wanted: Callable[[str], bool]) -> tuple[Entry, ...]:
        """Split a created folder: the largest parts of it that are wanted and unchanged."""

        def split(staged: str, path: str) -> Iterator[Entry]:
            if self.status(path) is None:
                return
            if wanted(path) and not self._differs_somewhere(staged, path):
                yield Entry(
                    key=f"{entry.key}/{staged.partition('/')[2]}",
                    root=entry.root,
                    deed=Deed.CREATED,
                    path=path,
                    old=entry.old + path[len(entry.path) :],
                    ino=self._items[staged].ino,
                    staged=staged,
                )
                return
            for child in self._inside.get(staged, ()):
                yield from split(child, f"{path}/{child.rpartition('/')[2]}")

        return tuple(split(entry.staged, entry.path))

    def _differs_somewhere(self, staged: str, path: str) -> bool:
        try:
            return next(self._compare(staged, path), None) is not None
        except OSError:
            return True

    def _compare(self, staged: str, path: str) -> Iterator[Changed]:
        """Compare what was put with what is there; what is gone already needs no undo."""
        try:
            parent, name = self._at(path)
        except _GONE:
            return
        try:
            yield from self._compare_at(parent, name, staged, path)
        finally:
            os.close(parent)

    def _compare_at(self, parent: int, name: str, staged: str, path: str) -> Iterator[Changed]:
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return
        reason = _difference(self._items[staged], parent, name, status)
        if reason:
            yield self._said(path, reason)
            return
        if not stat.S_ISDIR(status.st_mode):
            return
        fd = open_folder(parent, name, status)
        try:
            known = {child.rpartition("/")[2]: child for child in self._inside.get(staged, ())}
            for child in sorted(os.listdir(fd), key=os.fsencode):
                at = f"{path}/{child}"
                if child in known:
                    yield from self._compare_at(fd, child, known[child], at)
                elif at not in self._arrived:
                    yield self._said(at, "it is new")
        finally:
            os.close(fd)

    def _moved(self, entry: Entry) -> Iterator[Changed]:
        status = self.status(entry.path)
        if status is None:
            yield self._said(entry.path, "it is gone")
        elif status.st_ino != entry.ino or not stat.S_ISDIR(status.st_mode):
            yield self._said(entry.path, "it is another file now")

    def _free(self, entry: Entry, is_freed: bool) -> Iterator[Changed]:
        """Check that what comes back finds its place free, and the folder for it."""
        if is_freed:
            return
        path = spot(entry.old, self._paths)
        if self.status(path) is not None:
            yield self._said(path, "something new is in its place")
            return
        above = path.rpartition("/")[0]
        status = self.status(above)
        if status is None or not stat.S_ISDIR(status.st_mode):
            yield self._said(path, "the folder that it was in is gone")

    def _kept_whole(self, entry: Entry) -> Iterator[Changed]:
        """Check what is kept aside: another name of the same file may have been written through."""
        wanted = entry.identity
        fd = next((fd for fd in self._kept if _has(fd, entry.slot)), None)
        if wanted is None or fd is None:
            yield self._said(entry.path, "what was there before is not kept any more")
            return
        status = os.stat(entry.slot, dir_fd=fd, follow_symlinks=False)
        found = (status.st_ino, status.st_mode, status.st_uid, status.st_gid)
        same = found == (wanted.ino, wanted.mode, wanted.uid, wanted.gid)
        if same and not stat.S_ISDIR(status.st_mode):
            same = (status.st_size, status.st_mtime_ns) == (wanted.size_bytes, wanted.mtime_ns)
        elif same and wanted.digest:
            same = tree_digest(fd, entry.slot, status, path=entry.old)[1] == wanted.digest
        if not same:
            yield self._said(entry.path, "what was there before was changed, by another name of it")

    def _adjusted(self, path: str, adjust: Adjust) -> Iterator[Changed]:
        status = self.status(path)
        if status is None or status.st_ino != adjust.ino:
            yield self._said(path, "it is gone" if status is None else "it is another file now")
            return
        after = adjust.after
        is_link = stat.S_ISLNK(status.st_mode)
        mode = after.mode if is_link else stat.S_IMODE(status.st_mode)
        if (mode, status.st_uid, status.st_gid) != (after.mode, after.uid, after.gid):
            yield self._said(path, "its mode or owner changed")
        elif after.xattrs is not None and self._xattrs(path) != dict(after.xattrs):
            yield self._said(path, "its extended attributes changed")
        elif not stat.S_ISDIR(status.st_mode) and status.st_mtime_ns != after.mtime_ns:
            yield self._said(path, "it was written or touched")

    def _xattrs(self, path: str) -> dict[str, str]:
        fd = open_beneath(self.lower, path, os.O_PATH)
        try:
            found = read_xattrs(f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)
        return {name: value.hex() for name, value in found.items()}

    def _at(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        return open_beneath(self.lower, folder, os.O_PATH | os.O_DIRECTORY), name or "."

    def _said(self, path: str, reason: str) -> Changed:
        return Changed(place=Place(root=self._root.name, path=path_text(os.fsencode(path))), reason=reason)


def _adjusted_too(item: Made, adjust: Adjust | None) -> Made:
    """Return what was put as the end of the merge left it: another name of a file that it adjusted too."""
    if adjust is None:
        return item
    xattrs = item.xattrs if adjust.after.xattrs is None else adjust.after.xattrs
    return replace(item, mtime_ns=adjust.after.mtime_ns, xattrs=xattrs)


def _difference(item: Made, parent: int, name: str, status: os.stat_result) -> str:
    """Say in which way a file is not the one that was put, "" where it is."""
    stamp = item.stamp
    kind = type_of(status)
    if kind is not stamp.type or status.st_ino != item.ino:
        return "it is another file now"
    mode = stamp.mode if kind is FileType.SYMLINK else stat.S_IMODE(status.st_mode)
    if (mode, status.st_uid, status.st_gid) != (stamp.mode, stamp.uid, stamp.gid):
        return "its mode or owner changed"
    if kind is not FileType.DIRECTORY and status.st_mtime_ns != item.mtime_ns:
        return "it was written or touched"
    if kind is FileType.SYMLINK:
        target = path_text(os.fsencode(os.readlink(name, dir_fd=parent)))
        return "" if target == stamp.link_target else "its target changed"
    if kind is FileType.FILE and not _same_bytes(item, parent, name, status):
        return "its content changed"
    found = read_xattrs(f"/proc/self/fd/{parent}/{name}")
    if {key: value.hex() for key, value in found.items()} != dict(item.xattrs):
        return "its extended attributes changed"
    return ""


def _same_bytes(item: Made, parent: int, name: str, status: os.stat_result) -> bool:
    if status.st_size != item.stamp.size_bytes:
        return False
    try:
        fd = open_file(parent, name, status)
    except PermissionError:
        return True  # nobody but root reads it: its inode, size and time must do
    try:
        return digest_of(fd, status) == item.stamp.digest
    finally:
        os.close(fd)


def _has(fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
