"""Where the content of a removed file lives on, so that it is not removed from the host without that.

A file that is moved shows as removed at one place and as new at another. Where the new one is refused, the removal must
not go through alone: the content would be nowhere any more. A move keeps a file's size, its time and, but for a
single file, its name; of a single file the bytes are compared too. What was moved and then changed is not found.
"""

import os
import stat
from collections.abc import Iterator

from interlock.model.effects import FileChange
from interlock.model.places import path_text
from interlock.staging.layers import OpenRoot, mark_of
from interlock.staging.stamps import FACTS_PREFIX, Visit, check_depth, digest_of, open_file, open_folder
from interlock.staging.syscalls import open_beneath

_MOST_NEW = 100_000
"""So many new files of a layer are looked at: memory does not grow with a layer."""
_MOST_NEEDS = 256
"""A removed folder stands with so many files by name; beyond, with the new folders that they lie in."""

Facts = tuple[int, int]


class MovedFiles:
    """The new files of one open root, looked at once and only when a removal asks."""

    def __init__(self, opened_root: OpenRoot) -> None:
        self._open = opened_root
        self._sources = {new: old for old, new in opened_root.moved.items()}
        self._new: dict[Facts, list[tuple[str, str]]] | None = None

    def needs_of_file(self, change: FileChange, lower: os.stat_result) -> tuple[str, ...]:
        """Return the places where a removed file's content is new. Raises: OSError."""
        if not stat.S_ISREG(lower.st_mode) or lower.st_size == 0 or change.before is None:
            return ()
        wanted = change.before.digest
        found = [path for path, _ in self._by_facts().get((lower.st_size, lower.st_mtime_ns), ())]
        if not wanted.startswith(FACTS_PREFIX):
            found = [path for path in found if self._digest(path) == wanted]
        return tuple(path_text(os.fsencode(path)) for path in found[:_MOST_NEEDS])

    def gathering(self) -> "Gathering":
        """Begin to look for the files of a removed folder; see `Gathering`."""
        return Gathering(self._by_facts())

    def _by_facts(self) -> dict[Facts, list[tuple[str, str]]]:
        if self._new is None:
            self._new = {}
            for count, (path, top, status) in enumerate(
                self._walk(self._open.upper_fd, self._open.lower_fd, "", "")
            ):
                if count == _MOST_NEW:
                    break
                self._new.setdefault((status.st_size, status.st_mtime_ns), []).append((path, top))
        return self._new

    def _walk(
        self, upper_fd: int, lower_fd: int | None, path: str, top: str
    ) -> Iterator[tuple[str, str, os.stat_result]]:
        """List the new files: path, the topmost new folder that each lies in ("" for none), and status."""
        check_depth(path)
        for name in sorted(os.listdir(upper_fd), key=os.fsencode):
            child = f"{path}/{name}" if path else name
            status = os.stat(name, dir_fd=upper_fd, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_size:
                if lower_fd is None or not _has(lower_fd, name):
                    yield child, top, status
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

    def __init__(self, new: dict[Facts, list[tuple[str, str]]]) -> None:
        self._new = new
        self._paths: dict[str, str] = {}

    def passing(self, path: str, status: os.stat_result) -> None:
        """Take one entry below the folder, by its path on the host."""
        if not stat.S_ISREG(status.st_mode) or not status.st_size or not self._new:
            return
        name = path.rpartition("/")[2]
        for new, top in self._new.get((status.st_size, status.st_mtime_ns), ()):
            if new.rpartition("/")[2] == name:
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


def _has(dir_fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return False
    return True
