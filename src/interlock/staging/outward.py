"""Where a staged symlink leads: out of its root, or not."""

import os

from interlock.staging.roots import StagedRoot
from interlock.staging.syscalls import open_beneath

_HOPS_LIMIT = 40


class LinkTracer:
    """Follows symlinks on paper through a root's merged view: the staged copy over the host's folder.

    Holds: nothing is opened but folders, and no symlink is followed by the kernel.
    """

    def __init__(self, root: StagedRoot, upper_fd: int, lower_fd: int) -> None:
        self._lower = root.lower.rstrip("/")
        self._beside = root.beside
        self._fds = (upper_fd, lower_fd)

    def leads_outward(self, link_path: str, target: str) -> bool:
        """Say whether a link at `link_path` leaves the root, now or once a folder on its way is made.

        Takes: `link_path`, relative to the root; `target`, as the link holds it.
        Returns: True also where it cannot be told: too many hops, or `..` after a name that is not there.
        """
        return self._leaves(link_path, target) and not self._leads_beside(link_path, target)

    def _leads_beside(self, link_path: str, target: str) -> bool:
        """Say whether a link leads into another staged folder, by its text and on the host alike."""
        parts = target.split("/")
        while parts and parts[0] == "..":
            del parts[0]
        if not self._beside or ".." in parts:
            return False  # a link on the way may make anything of a `..`
        path = os.path.normpath(os.path.join(self._lower, os.path.dirname(link_path), target))
        real = os.path.realpath(path)
        return any(_below(path, folder) and _below(real, folder) for folder in self._beside)

    def _leaves(self, link_path: str, target: str) -> bool:
        here = link_path.split("/")[:-1]
        todo = target.split("/")[::-1]
        if target.startswith("/"):
            inside = self._inside(target)
            if inside is None:
                return True
            here, todo = [], inside.split("/")[::-1]
        hops = 0
        missing = False
        while todo:
            name = todo.pop()
            if name in ("", "."):
                continue
            if name == "..":
                if missing or not here:
                    return True
                here.pop()
                continue
            further = None if missing else self._look(here, name)
            if further is None:
                missing = missing or not self._exists(here, name)
                here.append(name)
                continue
            hops += 1
            if hops > _HOPS_LIMIT:
                return True
            if further.startswith("/"):
                inside = self._inside(further)
                if inside is None:
                    return True
                here, further = [], inside
            todo.extend(further.split("/")[::-1])
        return False

    def _inside(self, target: str) -> str | None:
        """Return what of an absolute target lies below the root, None where it does not."""
        if target == self._lower:
            return ""
        return target[len(self._lower) + 1 :] if target.startswith(self._lower + "/") else None

    def _look(self, folder: list[str], name: str) -> str | None:
        """Return the target of a symlink in the merged view, None for anything else."""
        for fd in self._fds:
            parent = self._parent(fd, folder)
            if parent is None:
                continue
            try:
                return os.readlink(name, dir_fd=parent)
            except FileNotFoundError:
                continue
            except OSError:
                return None
            finally:
                os.close(parent)
        return None

    def _exists(self, folder: list[str], name: str) -> bool:
        for fd in self._fds:
            parent = self._parent(fd, folder)
            if parent is None:
                continue
            try:
                os.stat(name, dir_fd=parent, follow_symlinks=False)
            except OSError:
                continue
            else:
                return True
            finally:
                os.close(parent)
        return False

    @staticmethod
    def _parent(fd: int, folder: list[str]) -> int | None:
        try:
            return open_beneath(fd, "/".join(folder), os.O_PATH | os.O_DIRECTORY)
        except OSError:
            return None


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
