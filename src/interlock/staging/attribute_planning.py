"""The attributes that a merge sets in place: of what only changed in these, and of the folders around its steps."""

import os
import stat
from collections.abc import Collection, Mapping, Sequence, Set

from interlock.model.effects import ChangeKind
from interlock.staging.merge_plan import Substitute
from interlock.staging.planned_root import PlannedRoot, parent_of
from interlock.staging.stamps import open_folder
from interlock.staging.wal import Adjust, Attributes, Take


class AttributePlan:
    """The adjustments of one root, gathered while its changes are planned. Takes: `number`, the root's own."""

    def __init__(self, root: PlannedRoot, number: int) -> None:
        self._root = root
        self._number = number
        self._touched: dict[str, None] = {}
        self._adjusted: dict[str, Adjust] = {}

    @property
    def adjusted(self) -> Collection[str]:
        """Return the paths that get other attributes in place."""
        return self._adjusted.keys()

    def touch(self, folder: str) -> None:
        """Note a folder whose entries change, and with them its time."""
        self._touched[folder] = None

    def adjust(self, path: str, old: str, instead: Substitute | None = None) -> None:
        """Plan the staged attributes for an entry that stays, or those of what stands for it."""
        host, upper = self._root.host_status(old), self._root.upper_status(path)
        symlink = stat.S_ISLNK(host.st_mode)
        after = _attributes(upper, None if symlink else self._root.upper_xattrs(path))
        if instead is not None:
            after = Attributes(
                mode=instead.after.mode,
                uid=instead.after.uid,
                gid=instead.after.gid,
                mtime_ns=host.st_mtime_ns,
                xattrs=after.xattrs if instead.xattrs is None else _hexed(instead.xattrs),
            )
        self._adjusted[path] = Adjust(
            root=self._number,
            path=path,
            ino=host.st_ino,
            after=after,
            before=_attributes(host, None if symlink else self._root.host_xattrs(old)),
        )

    def touch_changed_folders(self, units: Set[str]) -> None:
        """When all is released, give every folder the time that it has in the staged copy.

        Takes: `units`, folders that are new: they are staged whole, with their times.
        """
        above_moves: set[str] = set()
        for path, change in self._root.changed.items():
            if change.kind is ChangeKind.RENAME:
                while path := parent_of(path):
                    above_moves.add(path)
        whole = units - above_moves
        self._touch_changed(self._root.upper, "", units, whole)

    def _touch_changed(self, fd: int, path: str, units: Set[str], whole: Set[str]) -> None:
        with os.scandir(fd) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        if path not in self._touched and path not in units:
            host = self._root.host_folder(self._root.paths.to_lower(path))
            if host is not None and host.st_mtime_ns != os.fstat(fd).st_mtime_ns:
                self.touch(path)
        for name in names:
            child = f"{path}/{name}" if path else name
            if child in whole:
                continue
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            below = open_folder(fd, name, status, lend_mode=True)
            try:
                self._touch_changed(below, child, units, whole)
            finally:
                os.close(below)

    def framed(
        self, units: Collection[str], takes: Sequence[Take]
    ) -> tuple[tuple[Adjust, ...], tuple[Adjust, ...]]:
        """Plan the attributes of the folders around, which change as entries come and go.

        Takes: `units`, folders that are new.
        Returns: what the merge sets at its end, and what a rollback sets at its own; deeper paths first.
        """
        root = self._root
        restores: dict[str, Adjust] = {}
        for folder in self._touched:
            try:
                upper: os.stat_result | None = root.upper_status(folder)
            except (FileNotFoundError, NotADirectoryError):
                upper = None
            old = root.paths.to_lower(folder)
            host = None if folder in units else root.host_folder(old)
            if host is not None:
                self._restore(restores, old, host)
                if upper is None and not root.goes(old):
                    # another name of a linked file lies here; the folder itself was not changed
                    upper = host
            if upper is None or not stat.S_ISDIR(upper.st_mode) or folder in self._adjusted:
                continue
            if host is None:
                if folder in units:
                    after = _attributes(upper, None)
                    self._adjusted[folder] = Adjust(
                        root=self._number, path=folder, ino=0, after=after, before=None
                    )
                continue
            before = _attributes(host, None)
            after = Attributes(mode=before.mode, uid=before.uid, gid=before.gid, mtime_ns=upper.st_mtime_ns)
            self._adjusted[folder] = Adjust(
                root=self._number, path=folder, ino=host.st_ino, after=after, before=before
            )
        for take in takes:
            host = root.host_folder(parent_of(take.path))
            if host is not None:
                self._restore(restores, parent_of(take.path), host)
        return _deepest_first(self._adjusted), _deepest_first(restores)

    def _restore(self, restores: dict[str, Adjust], folder: str, host: os.stat_result) -> None:
        before = _attributes(host, None)
        restores[folder] = Adjust(
            root=self._number, path=folder, ino=host.st_ino, after=before, before=before
        )


def _deepest_first(adjusts: Mapping[str, Adjust]) -> tuple[Adjust, ...]:
    return tuple(sorted(adjusts.values(), key=lambda adjust: -_depth(adjust.path)))


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


def _attributes(status: os.stat_result, xattrs: dict[str, bytes] | None) -> Attributes:
    return Attributes(
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        mtime_ns=status.st_mtime_ns,
        xattrs=None if xattrs is None else _hexed(xattrs),
    )


def _hexed(xattrs: Mapping[str, bytes]) -> dict[str, str]:
    return {name: value.hex() for name, value in xattrs.items()}
