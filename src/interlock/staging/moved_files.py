"""Where the content of a removed file lives on, so that it is not removed from the host without that.

A file that is moved shows as removed at one place and as new, or as changed, at another. Where the other one is
refused, the removal must not go through alone: the content would be nowhere any more. An overlay tells from which host
file a file of its layer comes (`origin`, as root alone), also where it was edited later. Elsewhere a move keeps a
file's size, its time and, but for a single file, its name; of a single file the bytes are compared too: what was moved
and then changed is not found there.
"""

import errno
import os
import stat
from collections.abc import Iterator

from interlock.model.effects import FileStamp
from interlock.model.places import path_text
from interlock.staging.layers import OpenRoot, mark_of
from interlock.staging.linked import handle_in, status_by_handle
from interlock.staging.stamps import FACTS_PREFIX, Visit, check_depth, digest_of, open_file, open_folder
from interlock.staging.syscalls import open_beneath

_MOST_NEW = 100_000
"""So many new files of a layer are looked at: memory does not grow with a layer."""
_MOST_NEEDS = 256
"""A removed folder stands with so many files by name; beyond, with the new folders that they lie in."""

Facts = tuple[int, int]
Inode = tuple[int, int]
"""Device and number: a root may hold several, as a file system with subvolumes does."""
Found = tuple[str, str]
"""A new file's path, and the topmost new folder that it lies in ("" for none)."""


class MovedFiles:
    """The files of one open root that are new at their place, looked at once and only when a removal asks."""

    def __init__(self, opened_root: OpenRoot) -> None:
        self._open = opened_root
        self._sources = {new: old for old, new in opened_root.moved.items()}
        self._looked = False
        self._by_facts: dict[Facts, list[Found]] = {}
        self._by_origin: dict[Inode, list[Found]] = {}

    def needs_of_file(self, before: FileStamp, lower: os.stat_result) -> tuple[str, ...]:
        """Return the places where a removed file's content is new. Raises: OSError."""
        if not stat.S_ISREG(lower.st_mode) or lower.st_size == 0:
            return ()
        self._look()
        found = [path for path, _ in self._by_origin.get(_inode(lower), ())]
        for path, _ in self._by_facts.get((lower.st_size, lower.st_mtime_ns), ()):
            same = before.digest.startswith(FACTS_PREFIX) or self._digest(path) == before.digest
            if same and path not in found:
                found.append(path)
        return tuple(path_text(os.fsencode(path)) for path in found[:_MOST_NEEDS])

    def may_be(self, status: os.stat_result) -> tuple[Found, ...]:
        """Return which new files may be a file that went with a folder. Raises: OSError."""
        self._look()
        return (
            *self._by_origin.get(_inode(status), ()),
            *self._by_facts.get((status.st_size, status.st_mtime_ns), ()),
        )

    def comes_from(self, path: str, status: os.stat_result) -> bool:
        """Say whether a new file surely is a file of the host."""
        return any(path == one for one, _ in self._by_origin.get(_inode(status), ()))

    def _look(self) -> None:
        if self._looked:
            return
        self._looked = True
        walk = self._walk(self._open.upper_fd, self._open.lower_fd, "", "")
        for count, (path, top, status, origin) in enumerate(walk):
            if count == _MOST_NEW:
                break
            if status.st_size:
                self._by_facts.setdefault((status.st_size, status.st_mtime_ns), []).append((path, top))
            if origin is not None:
                self._by_origin.setdefault(origin, []).append((path, top))

    def _walk(
        self, upper_fd: int, lower_fd: int | None, path: str, top: str
    ) -> Iterator[tuple[str, str, os.stat_result, Inode | None]]:
        """List the files that are new at their place: path, topmost new folder, status, the host file's inode."""
        check_depth(path)
        for name in sorted(os.listdir(upper_fd), key=os.fsencode):
            child = f"{path}/{name}" if path else name
            status = os.stat(name, dir_fd=upper_fd, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                lower = None if lower_fd is None else _status(lower_fd, name)
                if lower is not None and not self._open.is_overlay and _is_alike(lower, status):
                    continue  # a full copy has every file
                origin = self._origin(upper_fd, name)
                if lower is None or origin != _inode(lower):
                    yield child, top, status, origin
            elif stat.S_ISDIR(status.st_mode):
                fd = open_folder(upper_fd, name, status)
                below: int | None = None
                try:
                    below = self._host_folder(fd, child, name, lower_fd)
                    yield from self._walk(fd, below, child, top if below is not None else top or child)
                finally:
                    os.close(fd)
                    if below is not None:
                        os.close(below)

    def _origin(self, dir_fd: int, name: str) -> Inode | None:
        """Return the inode of the host's file that a file of the layer was copied up from; None: not known."""
        if not self._open.is_overlay:
            return None
        at, prefix = f"/proc/self/fd/{dir_fd}/{name}", self._open.root.xattr_prefix
        try:
            handle = handle_in(os.getxattr(at, f"{prefix}origin", follow_symlinks=False))
            status = None if handle is None else status_by_handle(self._open.lower_fd, handle)
        except OSError as error:
            if error.errno in (errno.ENODATA, errno.ENOTSUP, errno.EACCES, errno.EPERM):
                return None
            raise
        return None if status is None else _inode(status)

    def _host_folder(self, fd: int, path: str, name: str, lower_fd: int | None) -> int | None:
        """Open the host's folder that one of the layer stands over; None where it hides it, or there is none."""
        try:
            if path in self._sources:
                return open_beneath(self._open.lower_fd, self._sources[path], os.O_RDONLY | os.O_DIRECTORY)
            if lower_fd is None or (self._open.is_overlay and mark_of(self._open.root, fd, "opaque") == b"y"):
                return None
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=lower_fd)
        except OSError:
            return None  # what cannot be compared counts as new: a removal then needs more, never less

    def _digest(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        at = open_beneath(self._open.upper_fd, folder, os.O_PATH | os.O_DIRECTORY)
        try:
            fd = open_file(at, name, os.stat(name, dir_fd=at, follow_symlinks=False), lend_mode=True)
        finally:
            os.close(at)
        try:
            return digest_of(fd, os.fstat(fd))
        finally:
            os.close(fd)


class Gathering:
    """What of a removed folder lives on elsewhere, gathered while the folder is digested."""

    def __init__(self, moved: MovedFiles) -> None:
        self._moved = moved
        self._paths: dict[str, str] = {}

    def passing(self, path: str, status: os.stat_result) -> None:
        """Take one entry below the folder, by its path on the host."""
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return
        name = path.rpartition("/")[2]
        for new, top in self._moved.may_be(status):
            if new.rpartition("/")[2] == name or self._moved.comes_from(new, status):
                self._paths[new] = top

    def needs(self) -> tuple[str, ...]:
        """Return the places that the folder's removal stands with."""
        found = list(self._paths)
        if len(found) > _MOST_NEEDS:
            found = sorted({top or path for path, top in self._paths.items()})[:_MOST_NEEDS]
        return tuple(path_text(os.fsencode(path)) for path in found)


def both(first: Visit, second: Visit | None) -> Visit:
    """Return a visit that tells two."""
    if second is None:
        return first

    def visit(path: str, status: os.stat_result) -> None:
        first(path, status)
        second(path, status)

    return visit


def _inode(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino


def _status(dir_fd: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return None


def _is_alike(lower: os.stat_result, upper: os.stat_result) -> bool:
    """Say whether a file looks like the host's own at its place: it took no other file in."""
    is_file = stat.S_ISREG(lower.st_mode)
    return is_file and (lower.st_size, lower.st_mtime_ns) == (upper.st_size, upper.st_mtime_ns)
