"""Files with several names in a plan: where the staged copy has one, and which new file is a host file's other name."""

import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import replace

from interlock.model.effects import FileChange, FileType
from interlock.staging.indexed import alone_in_index
from interlock.staging.linked import Handle, handle_at, host_names, origin_of, shows_host
from interlock.staging.merge_plan import StageItem
from interlock.staging.planned_root import PlannedRoot, raw_path
from interlock.staging.stamps import paths_of_inodes
from interlock.staging.syscalls import open_beneath


class Names:
    """The names of one root's files. Takes: `listed`, the root's whole listing, released or not."""

    def __init__(self, root: PlannedRoot, listed: Sequence[FileChange]) -> None:
        self._root = root
        self._listed = listed
        self._linked: dict[Handle, str] | None = None
        self._alone: dict[Handle, str] | None = None

    def staged_name(self, path: str) -> tuple[str, str]:
        """Return where the staged copy has a changed file: there, or at another name of the host's file.

        Returns: its path in the layer; with an entry of the index, where only that has it.
        """
        root = self._root
        if root.upper_has(path):
            return path, ""
        folder, _, name = root.host_path(path).rpartition("/")
        fd = open_beneath(root.lower, folder, os.O_PATH | os.O_DIRECTORY)
        try:
            handle = handle_at(fd, name)
        finally:
            os.close(fd)
        if handle is None:
            return path, ""
        if self._alone is None:
            self._alone = alone_in_index(root.open.root, root.open.index_fd)
        if handle in self._alone:
            return path, self._alone[handle]
        return self._linked_names().get(handle, path), ""

    def _linked_names(self) -> dict[Handle, str]:
        """Return one place in the layer for each host file that it stands for at several names."""
        if self._linked is None:
            self._linked = {}
            for change in self._listed:
                if change.after is None or change.after.type is FileType.DIRECTORY:
                    continue
                path = raw_path(change.place)
                origin = self._origin(path)
                if origin is not None:
                    self._linked.setdefault(origin, path)
        return self._linked

    def _origin(self, path: str) -> Handle | None:
        folder, _, name = path.rpartition("/")
        try:
            fd = open_beneath(self._root.upper, folder, os.O_PATH | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return origin_of(self._root.open, fd, name, os.stat(name, dir_fd=fd, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return None
        finally:
            os.close(fd)

    def link_to_host(
        self, items: list[StageItem], new: Sequence[int], adjusted: Collection[str]
    ) -> list[StageItem]:
        """Find new files that are further names of a host file which itself stays.

        Takes: `new`, the positions of the items that may be; `adjusted`, where the host's file stays and only gets
        other attributes.
        Returns: the items, with their `host_link`.
        """
        root, out = self._root, list(items)
        wanted: dict[int, list[int]] = {}
        origins: dict[Handle, int] = {}
        for index in new:
            upper_path = items[index].upper_path
            status = root.upper_status(upper_path)
            if status.st_nlink > 1:
                origin = self._origin(upper_path) if status.st_ino not in wanted else None
                if origin is not None:
                    origins[origin] = status.st_ino
                wanted.setdefault(status.st_ino, []).append(index)
        if not wanted:
            return out
        for path, ino in paths_of_inodes(root.upper, wanted):
            change = root.changed.get(path)
            old = root.paths.to_lower(path)
            if change is not None and path not in adjusted:
                continue
            if change is None and not self._stays(path, path, old):
                continue
            _link(out, wanted[ino], old)
        for old, handle in host_names(root.open, origins):
            # a name that the layer does not hold, of a host file which it knows by another name
            path = root.paths.to_merged(old)
            upper_path = items[wanted[origins[handle]][0]].upper_path
            if self._stays(path, upper_path, old) and shows_host(root.open, path, old):
                _link(out, wanted[origins[handle]], old)
        return out

    def _stays(self, path: str, upper_path: str, old: str) -> bool:
        """Say whether a staged file, without a released change at `path`, is just the host's file."""
        root = self._root
        if path in root.changed or root.goes(old):
            return False
        try:
            host, upper = root.host_status(old), root.upper_status(upper_path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        same = (host.st_mode, host.st_uid, host.st_gid, host.st_size, host.st_mtime_ns) == (
            upper.st_mode,
            upper.st_uid,
            upper.st_gid,
            upper.st_size,
            upper.st_mtime_ns,
        )
        if not same or stat.S_ISLNK(host.st_mode):
            return same
        return root.upper_xattrs(upper_path) == root.host_xattrs(old)


def _link(items: list[StageItem], indexes: Sequence[int], old: str) -> None:
    for index in indexes:
        items[index] = replace(items[index], host_link=old)
