"""One root as its merge is planned: both of its sides, by path, and what the released changes take from it."""

import errno
import os
import stat
from collections.abc import Sequence

from interlock.model.dependencies import PathMap, host_path
from interlock.model.effects import ChangeKind, FileChange
from interlock.model.places import Place, path_bytes
from interlock.staging.layers import OpenRoot
from interlock.staging.stamps import read_xattrs
from interlock.staging.syscalls import open_beneath


class PlannedRoot:
    """One open root with the changes of it that are released. Paths are `os.fsdecode` text relative to the root.

    Holds: `paths` knows the released moves; `changed` the released changes, by their paths.
    """

    def __init__(self, opened_root: OpenRoot, changes: Sequence[FileChange]) -> None:
        self.open = opened_root
        self.upper, self.lower = opened_root.upper_fd, opened_root.lower_fd
        self.leaving = frozenset(opened_root.moved)
        released_moves = {
            raw_path(change.source): raw_path(change.place)
            for change in changes
            if change.kind is ChangeKind.RENAME and change.source is not None
        }
        self.paths = PathMap(released_moves)
        self.changed: dict[str, FileChange] = {raw_path(change.place): change for change in changes}
        self._replaced = self._host_paths(changes, ChangeKind.REPLACE)
        self._gone = self._host_paths(changes, ChangeKind.DELETE)

    def _host_paths(self, changes: Sequence[FileChange], kind: ChangeKind) -> set[str]:
        return {self.host_path(raw_path(change.place)) for change in changes if change.kind is kind}

    def host_path(self, path: str) -> str:
        """Return where the host has what the merged view shows at a path."""
        return host_path(path, self.paths)

    def is_freed(self, old: str) -> bool:
        """Say whether what the host has at one of its paths moves away or is removed."""
        return old in self.leaving or old in self._gone

    def goes(self, old: str) -> bool:
        """Say whether a host folder goes away with a released removal, at it or above it."""
        while old:
            if old in self._gone or old in self._replaced:
                return True
            old = parent_of(old)
        return False

    def host_status(self, old: str) -> os.stat_result:
        """Return what the host has. Raises: OSError."""
        return _status(self.lower, old)

    def upper_status(self, path: str) -> os.stat_result:
        """Return what the staged copy's own folder has. Raises: OSError."""
        return self.open.loans.true(_status(self.upper, path))

    def host_has(self, old: str) -> bool:
        """Say whether the host has anything at one of its paths."""
        try:
            self.host_status(old)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def upper_has(self, path: str) -> bool:
        """Say whether the staged copy's own folder has anything at a path."""
        try:
            self.upper_status(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def host_folder(self, old: str) -> os.stat_result | None:
        """Return the status of a folder of the host, None where it has none there."""
        try:
            status = self.host_status(old)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status if stat.S_ISDIR(status.st_mode) else None

    def host_xattrs(self, old: str) -> dict[str, bytes]:
        """Return the extended attributes that the host has there and a merge keeps."""
        return _xattrs_at(self.lower, old, lend_mode=False)

    def upper_xattrs(self, path: str) -> dict[str, bytes]:
        """Return the extended attributes that the staged copy has there and a merge keeps."""
        return _xattrs_at(self.upper, path, lend_mode=True)


def raw_path(place: Place) -> str:
    """Return a place's path as `os.fsdecode` writes it."""
    return os.fsdecode(path_bytes(place.path))


def parent_of(path: str) -> str:
    """Return the path of the folder above."""
    return path.rpartition("/")[0]


def _status(dir_fd: int, path: str) -> os.stat_result:
    """Raises: NotADirectoryError, also where a link stands in place of a folder on the way: nothing is below it."""
    parent, _, name = path.rpartition("/")
    try:
        fd = open_beneath(dir_fd, parent, os.O_PATH | os.O_DIRECTORY)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    try:
        return os.stat(name or ".", dir_fd=fd, follow_symlinks=False)
    finally:
        os.close(fd)


def _xattrs_at(dir_fd: int, path: str, *, lend_mode: bool) -> dict[str, bytes]:
    fd = open_beneath(dir_fd, path, os.O_PATH)
    try:
        return read_xattrs(f"/proc/self/fd/{fd}", lend_mode=lend_mode)
    finally:
        os.close(fd)
