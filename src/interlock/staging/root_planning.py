"""The plan of one root's merge: the steps that turn its host folder into what was released."""

import errno
import os
import stat
from collections.abc import Mapping, Sequence

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.errors import IntegrityError
from interlock.model.places import Place
from interlock.staging.attribute_planning import AttributePlan
from interlock.staging.layers import OpenRoot
from interlock.staging.merge_plan import PlannedPut, StageItem, Substitute, takes_substitute
from interlock.staging.name_planning import Names
from interlock.staging.planned_root import PlannedRoot, parent_of, raw_path
from interlock.staging.stamps import before_stamp
from interlock.staging.wal import Adjust, Identity, Take


class RootPlan:
    """The steps of one open root; it is planned when it is made. Paths are `os.fsdecode` text relative to the root.

    Takes: `number`, the root's own; `changes`, the released ones; `listed`, all of the root; `substitutes`, what
    released files hold instead of their staged bytes.
    Holds: with `conflicts`, places where the host differs from what was listed, the rest is not to be used.
    """

    def __init__(
        self,
        opened_root: OpenRoot,
        number: int,
        changes: Sequence[FileChange],
        listed: Sequence[FileChange],
        substitutes: Mapping[Place, Substitute],
    ) -> None:
        self._number = number
        self._root = PlannedRoot(opened_root, changes)
        self._names = Names(self._root, listed)
        self._attributes = AttributePlan(self._root, number)
        self._substitutes = substitutes
        self._units: dict[str, str] = {}  # a created folder's path -> its path in `new`
        self._pending_links: list[int] = []
        self._first: os.stat_result | None = None
        self.conflicts: list[Place] = []
        self.items: list[StageItem] = []
        self.takes: list[Take] = []
        self.puts: list[PlannedPut] = []
        self.adjusts: tuple[Adjust, ...] = ()
        self.restores: tuple[Adjust, ...] = ()
        for change in changes:
            self._add(change)
        if not self.conflicts:
            attributes = self._attributes
            self.items = self._names.link_to_host(self.items, self._pending_links, attributes.adjusted)
            if len(changes) == len(listed):
                attributes.touch_changed_folders(self._units.keys())
            self.adjusts, self.restores = attributes.framed(self._units, self.takes)

    def sorted_takes(self) -> list[Take]:
        """Return the takes, deeper paths first, so that each path is still as before the merge."""
        return sorted(self.takes, key=lambda take: -take.path.count("/"))

    def _add(self, change: FileChange) -> None:
        root = self._root
        path = raw_path(change.place)
        old = raw_path(change.source) if change.source is not None else self._root.host_path(path)
        current: FileStamp | None = None
        if change.before is not None:
            whole = change.kind in (ChangeKind.DELETE, ChangeKind.REPLACE)
            try:
                # before the content is read: an edit after that is found when the step compares with this
                self._first = root.host_status(old)
                current = before_stamp(root.lower, old, leaving=root.leaving, whole=whole)
            except OSError as error:
                # ESTALE: another file came to its place while it was read
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
                    raise
                current = None
            if current != change.before:
                self.conflicts.append(change.place)
                return
        match change.kind:
            case ChangeKind.DELETE:
                self._take(change, old, is_move=False)
                self._attributes.touch(parent_of(path))
            case ChangeKind.RENAME:
                if self._is_taken(path):
                    self.conflicts.append(change.place)
                    return
                slot = self._take(change, old, is_move=True)
                ino = self.takes[-1].identity.ino
                self.puts.append(
                    PlannedPut(root=self._number, path=path, slot=slot, ino=ino, is_move=True, replaces=None)
                )
                self._attributes.touch(parent_of(path))
                self._attributes.touch(root.paths.to_merged(parent_of(old)))
                if change.before != change.after or root.upper_xattrs(path) != root.host_xattrs(old):
                    self._attributes.adjust(path, old)
                else:
                    self._attributes.touch(path)
            case ChangeKind.CREATE:
                self._create(change, path)
            case ChangeKind.MODIFY | ChangeKind.REPLACE:
                self._swap(change, path)
            case ChangeKind.ATTRIBUTES:
                status = root.host_status(old)
                is_folder = stat.S_ISDIR(status.st_mode)
                if not is_folder and (status.st_nlink > 1 or not root.upper_has(path)):
                    # in place it would reach the file's other names, perhaps outside of the root
                    self._swap(change, path)
                else:
                    self._attributes.adjust(path, old, self._substitutes.get(change.place))

    def _create(self, change: FileChange, path: str) -> None:
        parent, _, name = path.rpartition("/")
        unit = self._units.get(parent) if parent else None
        if unit is None:
            if self._is_taken(path):
                self.conflicts.append(change.place)
                return
            slot = self._slot("n")
            self.puts.append(
                PlannedPut(root=self._number, path=path, slot=slot, ino=0, is_move=False, replaces=None)
            )
            self._attributes.touch(parent)
            self._stage(change, path, slot)
        else:
            self._stage(change, path, f"{unit}/{name}")

    def _is_taken(self, path: str) -> bool:
        """Say whether the host has something at a place that must be free when its step comes."""
        if parent_of(path) in self._units:
            return False
        old = self._root.host_path(path)
        return not self._root.is_freed(old) and self._root.host_has(old)

    def _swap(self, change: FileChange, path: str) -> None:
        slot = self._slot("n")
        digest = change.before.digest if change.before is not None else ""
        identity = self._identity(digest if change.kind is ChangeKind.REPLACE else "")
        self.puts.append(
            PlannedPut(root=self._number, path=path, slot=slot, ino=0, is_move=False, replaces=identity)
        )
        self._attributes.touch(parent_of(path))
        self._stage(change, path, slot)

    def _stage(self, change: FileChange, path: str, staged: str) -> None:
        if change.after is None:
            raise IntegrityError(f"the change at `{change.place}` says nothing of what is to be there")
        upper_path, entry = path, ""
        if change.kind in (ChangeKind.MODIFY, ChangeKind.ATTRIBUTES):
            upper_path, entry = self._names.staged_name(path)
        if change.after.type is FileType.DIRECTORY:
            self._units[path] = staged
        elif change.place not in self._substitutes and not entry:
            # what only the index has differs from the host's file, and so is no further name of that
            self._pending_links.append(len(self.items))
        self.items.append(
            StageItem(
                root=self._number,
                path=staged,
                upper_path=upper_path,
                entry=entry,
                after=change.after,
                instead=self._substitutes.get(change.place) if takes_substitute(change) else None,
            )
        )

    def _take(self, change: FileChange, old: str, *, is_move: bool) -> str:
        slot = self._slot("m" if is_move else "o")
        digest = change.before.digest if change.before is not None and not is_move else ""
        identity = self._identity(digest)
        self.takes.append(Take(root=self._number, path=old, slot=slot, identity=identity, is_move=is_move))
        return slot

    def _slot(self, kind: str) -> str:
        return f"{kind}{len(self.takes) + len(self.puts)}"

    def _identity(self, digest: str) -> Identity:
        """Return which file the change that is being added was listed against."""
        status = self._first
        assert status is not None
        return Identity(
            ino=status.st_ino,
            mode=status.st_mode,
            uid=status.st_uid,
            gid=status.st_gid,
            size_bytes=status.st_size,
            mtime_ns=status.st_mtime_ns,
            digest=digest if stat.S_ISDIR(status.st_mode) else "",
        )
