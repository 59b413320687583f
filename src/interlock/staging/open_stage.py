"""A root and its stage folder, open for the steps of a merge."""

import os
import stat

from interlock.model.errors import StuckError
from interlock.model.places import Place, path_text
from interlock.staging.renaming import ino_at
from interlock.staging.syscalls import open_beneath
from interlock.staging.wal import WalRoot

NEW, OLD, MOVED = "new", "old", "moved"
PLACED, ADJUSTED = "placed", "adjusted"
MARKS = (PLACED, ADJUSTED)
"""Folders in a stage folder that say which border all of its steps have passed."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class OpenStage:
    """A root and its stage folder, open for the steps; to be closed.

    Takes: `adjusts`, the paths that the merge gives their attributes at its end, on the way forward and back.
    """

    def __init__(self, root: WalRoot, adjusts: frozenset[str]) -> None:
        self.root = root
        self._adjusts = adjusts
        self._fds: list[int] = []
        try:
            self.fd = self._open(root.lower, None, _LOOK)
            self.stage = self._open(root.stage, None)
            found, self.device = os.fstat(self.fd), os.fstat(self.stage).st_dev
            # a device's number may be another one after a start of the machine; the two must share one
            if (found.st_dev, found.st_ino) != (self.device, root.ino):
                raise StuckError(
                    f"the folder of root `{root.name}` is another one than when the merge began",
                    hint="put the folder back to its path, then run recover again",
                )
            self.new, self.old, self.moved = (self._open(name, self.stage) for name in (NEW, OLD, MOVED))
        except BaseException:
            self.close()
            raise
        self._parent: tuple[str, int] | None = None

    def _open(self, path: str, dir_fd: int | None, flags: int = _FOLDER) -> int:
        fd = os.open(path, flags, dir_fd=dir_fd)
        self._fds.append(fd)
        return fd

    def close(self) -> None:
        """Close every folder."""
        self.forget_parent()
        while self._fds:
            os.close(self._fds.pop())

    def forget_parent(self) -> None:
        """Drop the remembered folder: paths mean something else in the next phase."""
        parent = getattr(self, "_parent", None)
        if parent is not None:
            os.close(parent[1])
        self._parent = None

    def at(self, path: str) -> tuple[int, str]:
        """Return the open folder above a path of the root, and the name in it.

        Raises: OSError; ELOOP where a symlink has come into the way.
        """
        folder, _, name = path.rpartition("/")
        if self._parent is None or self._parent[0] != folder:
            self.forget_parent()
            self._parent = (folder, self._look_into(folder))
        return self._parent[1], name or "."

    def _look_into(self, folder: str) -> int:
        """Open a folder to look up and rename in it, which needs no right to list.

        One that this merge closed to its owner before it was cut off is opened again: it is adjusted once more.
        """
        try:
            fd = open_beneath(self.fd, folder, _LOOK)
        except PermissionError:
            pass
        else:
            if not _is_closed(os.fstat(fd)):
                return fd
            os.close(fd)
        parts = folder.split("/") if folder else []
        for count in range(len(parts) + 1):
            path = "/".join(parts[:count])
            pin = open_beneath(self.fd, path, _LOOK)
            try:
                status = os.fstat(pin)
                if path in self._adjusts and _is_closed(status):
                    os.chmod(f"/proc/self/fd/{pin}", stat.S_IMODE(status.st_mode) | stat.S_IXUSR)
            finally:
                os.close(pin)
        return open_beneath(self.fd, folder, _LOOK)

    def is_marked(self, mark: str) -> bool:
        """Say whether all steps have passed a border."""
        return ino_at(self.stage, mark) != 0

    def mark(self, mark: str) -> None:
        """Mark a border as passed."""
        if not self.is_marked(mark):
            os.mkdir(mark, 0o700, dir_fd=self.stage)

    def unmark(self, mark: str) -> None:
        """Mark a border as not passed any more."""
        if self.is_marked(mark):
            os.rmdir(mark, dir_fd=self.stage)

    def place(self, path: str) -> Place:
        """Return the place of a path of the root."""
        return Place(root=self.root.name, path=path_text(os.fsencode(path)))


def _is_closed(status: os.stat_result) -> bool:
    return not status.st_mode & stat.S_IXUSR and status.st_uid == os.geteuid() != 0
