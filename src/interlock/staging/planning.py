"""The plan of a merge: the steps that turn the host's folders into what was released."""

import errno
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from interlock.model.dependencies import PathMap, host_path, unmet
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.errors import InputError, IntegrityError
from interlock.model.places import Place, path_bytes
from interlock.staging.errors import ConflictError
from interlock.staging.layers import OpenRoot, opened
from interlock.staging.linked import Handle, handle_at, host_names, origin_of, shows_host
from interlock.staging.merge_plan import (
    MergePlan,
    PlannedPut,
    StageItem,
    Substitute,
    substituted,
    takes_substitute,
)
from interlock.staging.roots import StagedRoot
from interlock.staging.stamps import before_stamp, open_folder, paths_of_inodes, read_xattrs
from interlock.staging.syscalls import open_beneath
from interlock.staging.wal import Adjust, Attributes, Identity, Take

_SPECIAL = (FileType.SOCKET, FileType.CHARACTER_DEVICE, FileType.BLOCK_DEVICE)


def plan(
    roots: Sequence[StagedRoot],
    changes: Sequence[FileChange],
    released: Collection[FileChange | Place],
    substitutes: Mapping[Place, Substitute] | None = None,
) -> MergePlan:
    """Plan the merge of the released changes and check that the host still is as it was listed.

    Takes: `changes`, the complete listings of the roots, in their order; `released`, some of them, as
    changes or as places (a place stands for every change there); `substitutes`, by place, what released files
    hold instead of their staged bytes.
    Raises: InputError, where a released change cannot be merged without one that is not, or a substitute
    is for no released file; ConflictError, where the host differs from a `before`; IntegrityError where it
    cannot be read.
    """
    instead = substitutes or {}
    chosen = _chosen(changes, released)
    missing = unmet(changes, chosen)
    if missing:
        pairs = "; ".join(
            f"`{changes[index].place}` cannot be merged without `{changes[need].place}`"
            for index, need in missing[:5]
        )
        more = f" (and {len(missing) - 5} more)" if len(missing) > 5 else ""
        raise InputError(pairs + more, hint="release both, or refuse both")
    skipped = [i for i in sorted(chosen) if _is_special(changes[i])]
    picked = [substituted(changes[i], instead) for i in sorted(chosen) if not _is_special(changes[i])]
    for place in instead.keys() - {change.place for change in picked if takes_substitute(change)}:
        raise InputError(f"`{place}` is no released file, so nothing can stand for its bytes")
    planners: list[_RootPlanner] = []
    for number, root in enumerate(roots):
        mine = [change for change in picked if change.place.root == root.name]
        if not mine:
            continue
        listed = [change for change in changes if change.place.root == root.name]
        try:
            with opened(root) as opened_root:
                planners.append(_RootPlanner(opened_root, number, mine, listed, instead))
        except OSError as error:
            raise IntegrityError(
                f"root `{root.name}` cannot be read for the merge: {error.strerror}",
                hint="nothing was changed",
            ) from error
    conflicts = tuple(place for planner in planners for place in planner.conflicts)
    if conflicts:
        shown = ", ".join(f"`{place}`" for place in conflicts[:5])
        more = f" and {len(conflicts) - 5} more" if len(conflicts) > 5 else ""
        raise ConflictError(
            f"the host changed since the changes were listed: {shown}{more}",
            places=conflicts,
            hint="look at both sides, then list the changes again; nothing was merged",
        )
    return MergePlan(
        roots=tuple(roots),
        items=tuple(item for planner in planners for item in planner.items),
        takes=tuple(take for planner in planners for take in planner.sorted_takes()),
        puts=tuple(put for planner in planners for put in planner.puts),
        adjusts=tuple(adjust for planner in planners for adjust in planner.adjusts),
        restores=tuple(adjust for planner in planners for adjust in planner.restores),
        merged=tuple(change.place for change in picked),
        skipped=tuple(changes[i].place for i in skipped),
    )


def _chosen(changes: Sequence[FileChange], released: Collection[FileChange | Place]) -> frozenset[int]:
    places = {one for one in released if isinstance(one, Place)}
    keys = {(one.kind, one.place) for one in released if isinstance(one, FileChange)}
    known = {change.place for change in changes}
    for place in sorted((places | {place for _, place in keys}) - known, key=str):
        raise InputError(f"no staged change at `{place}`", hint="list the changes again")
    return frozenset(
        index
        for index, change in enumerate(changes)
        if change.place in places or (change.kind, change.place) in keys
    )


def _is_special(change: FileChange) -> bool:
    return change.after is not None and change.after.type in _SPECIAL


class _RootPlanner:
    """Plans one root. Paths are `os.fsdecode` text relative to the root."""

    def __init__(
        self,
        opened_root: OpenRoot,
        number: int,
        changes: Sequence[FileChange],
        listed: Sequence[FileChange],
        substitutes: Mapping[Place, Substitute],
    ) -> None:
        self._open = opened_root
        self._number = number
        self._upper, self._lower = opened_root.upper_fd, opened_root.lower_fd
        self._leaving = frozenset(opened_root.moved)
        released_moves = {
            _path(change.source): _path(change.place)
            for change in changes
            if change.kind is ChangeKind.RENAME and change.source is not None
        }
        self._map = PathMap(released_moves)
        self._units: dict[str, str] = {}  # a created folder's path -> its path in `new`
        self._touched: dict[str, None] = {}
        self._pending_links: list[int] = []
        self._changed: dict[str, FileChange] = {_path(change.place): change for change in changes}
        self._adjusted: dict[str, Adjust] = {}
        self._replaced = {
            host_path(_path(c.place), self._map) for c in changes if c.kind is ChangeKind.REPLACE
        }
        self._gone = {host_path(_path(c.place), self._map) for c in changes if c.kind is ChangeKind.DELETE}
        self._listed = listed
        self._substitutes = substitutes
        self._linked: dict[Handle, str] | None = None
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
            self._link_to_host()
            if len(changes) == len(listed):
                self._touch_changed_folders(self._upper, "")
            self._frame()

    def sorted_takes(self) -> list[Take]:
        """Return the takes, deeper paths first, so that each path is still as before the merge."""
        return sorted(self.takes, key=lambda take: -take.path.count("/"))

    def _add(self, change: FileChange) -> None:
        path = _path(change.place)
        old = _path(change.source) if change.source is not None else host_path(path, self._map)
        current: FileStamp | None = None
        if change.before is not None:
            whole = change.kind in (ChangeKind.DELETE, ChangeKind.REPLACE)
            try:
                # before the content is read: an edit after that is found when the step compares with this
                self._first = self._host_status(old)
                current = before_stamp(self._lower, old, leaving=self._leaving, whole=whole)
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
                self._touch(_parent(path))
            case ChangeKind.RENAME:
                if self._is_taken(path):
                    self.conflicts.append(change.place)
                    return
                slot = self._take(change, old, is_move=True)
                ino = self.takes[-1].identity.ino
                self.puts.append(
                    PlannedPut(root=self._number, path=path, slot=slot, ino=ino, is_move=True, replaces=None)
                )
                self._touch(_parent(path))
                self._touch(self._map.to_merged(_parent(old)))
                if change.before != change.after or self._xattrs(path) != self._host_xattrs(old):
                    self._adjust(path, old)
                else:
                    self._touch(path)
            case ChangeKind.CREATE:
                self._create(change, path)
            case ChangeKind.MODIFY | ChangeKind.REPLACE:
                self._swap(change, path, old)
            case ChangeKind.ATTRIBUTES:
                status = self._host_status(old)
                if not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1:
                    # in place it would reach the file's other names, perhaps outside of the root
                    self._swap(change, path, old)
                else:
                    self._adjust(path, old, self._substitutes.get(change.place))

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
            self._touch(parent)
            self._stage(change, path, slot)
        else:
            self._stage(change, path, f"{unit}/{name}")

    def _is_taken(self, path: str) -> bool:
        """Say whether the host has something at a place that must be free when its step comes."""
        if _parent(path) in self._units:
            return False
        old = host_path(path, self._map)
        return old not in self._leaving and old not in self._gone and self._host_has(old)

    def _swap(self, change: FileChange, path: str, old: str) -> None:
        slot = self._slot("n")
        digest = change.before.digest if change.before is not None else ""
        identity = self._identity(digest if change.kind is ChangeKind.REPLACE else "")
        self.puts.append(
            PlannedPut(root=self._number, path=path, slot=slot, ino=0, is_move=False, replaces=identity)
        )
        self._touch(_parent(path))
        self._stage(change, path, slot)

    def _stage(self, change: FileChange, path: str, staged: str) -> None:
        if change.after is None:
            raise IntegrityError(f"the change at `{change.place}` says nothing of what is to be there")
        if change.after.type is FileType.DIRECTORY:
            self._units[path] = staged
        elif change.place not in self._substitutes:
            self._pending_links.append(len(self.items))
        upper_path = path
        if change.kind in (ChangeKind.MODIFY, ChangeKind.ATTRIBUTES):
            upper_path = self._upper_name(path)
        self.items.append(
            StageItem(
                root=self._number,
                path=staged,
                upper_path=upper_path,
                after=change.after,
                instead=self._substitutes.get(change.place) if takes_substitute(change) else None,
            )
        )

    def _upper_name(self, path: str) -> str:
        """Return where the staged copy has a changed file: there, or at another name of the host's file."""
        try:
            self._upper_status(path)
        except (FileNotFoundError, NotADirectoryError):
            folder, _, name = host_path(path, self._map).rpartition("/")
            fd = open_beneath(self._lower, folder, os.O_PATH | os.O_DIRECTORY)
            try:
                handle = handle_at(fd, name)
            finally:
                os.close(fd)
            return self._linked_names().get(handle, path) if handle is not None else path
        return path

    def _linked_names(self) -> dict[Handle, str]:
        """Return one place in the layer for each host file that it stands for at several names."""
        if self._linked is None:
            self._linked = {}
            for change in self._listed:
                if change.after is None or change.after.type is FileType.DIRECTORY:
                    continue
                path = _path(change.place)
                origin = self._origin(path)
                if origin is not None:
                    self._linked.setdefault(origin, path)
        return self._linked

    def _origin(self, path: str) -> Handle | None:
        folder, _, name = path.rpartition("/")
        try:
            fd = open_beneath(self._upper, folder, os.O_PATH | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return origin_of(self._open, fd, name, os.stat(name, dir_fd=fd, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return None
        finally:
            os.close(fd)

    def _touch_changed_folders(self, fd: int, path: str) -> None:
        """When all is released, give every folder the time that it has in the staged copy."""
        with os.scandir(fd) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        if path not in self._touched:
            host = self._host_folder(self._map.to_lower(path))
            if host is not None and host.st_mtime_ns != os.fstat(fd).st_mtime_ns:
                self._touch(path)
        for name in names:
            child = f"{path}/{name}" if path else name
            if child in self._units:
                continue  # staged whole, with its times
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            below = open_folder(fd, name, status, lend_mode=True)
            try:
                self._touch_changed_folders(below, child)
            finally:
                os.close(below)

    def _take(self, change: FileChange, old: str, *, is_move: bool) -> str:
        slot = self._slot("m" if is_move else "o")
        digest = change.before.digest if change.before is not None and not is_move else ""
        identity = self._identity(digest)
        self.takes.append(Take(root=self._number, path=old, slot=slot, identity=identity, is_move=is_move))
        return slot

    def _slot(self, kind: str) -> str:
        return f"{kind}{len(self.takes) + len(self.puts)}"

    def _touch(self, folder: str) -> None:
        self._touched[folder] = None

    def _adjust(self, path: str, old: str, instead: Substitute | None = None) -> None:
        host, upper = self._host_status(old), self._upper_status(path)
        symlink = stat.S_ISLNK(host.st_mode)
        after = _attributes(upper, None if symlink else self._xattrs(path))
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
            before=_attributes(host, None if symlink else self._host_xattrs(old)),
        )

    def _frame(self) -> None:
        """Plan the attributes of the folders around, which change as entries come and go."""
        restores: dict[str, Adjust] = {}
        for folder in self._touched:
            try:
                upper: os.stat_result | None = self._upper_status(folder)
            except (FileNotFoundError, NotADirectoryError):
                upper = None
            old = self._map.to_lower(folder)
            host = None if folder in self._units else self._host_folder(old)
            if host is not None:
                self._restore(restores, old, host)
                if upper is None and not self._goes(old):
                    # another name of a linked file lies here; the folder itself was not changed
                    upper = host
            if upper is None or not stat.S_ISDIR(upper.st_mode) or folder in self._adjusted:
                continue
            if host is None:
                if folder in self._units:
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
        for take in self.takes:
            host = self._host_folder(_parent(take.path))
            if host is not None:
                self._restore(restores, _parent(take.path), host)
        self.adjusts = tuple(sorted(self._adjusted.values(), key=lambda adjust: -_depth(adjust.path)))
        self.restores = tuple(sorted(restores.values(), key=lambda adjust: -_depth(adjust.path)))

    def _goes(self, path: str) -> bool:
        """Say whether a host folder goes away with a released removal, at it or above it."""
        while path:
            if path in self._gone or path in self._replaced:
                return True
            path = _parent(path)
        return False

    def _restore(self, restores: dict[str, Adjust], folder: str, host: os.stat_result) -> None:
        before = _attributes(host, None)
        restores[folder] = Adjust(
            root=self._number, path=folder, ino=host.st_ino, after=before, before=before
        )

    def _link_to_host(self) -> None:
        """Find new files that are further names of a host file which itself stays."""
        wanted: dict[int, list[int]] = {}
        origins: dict[Handle, int] = {}
        for index in self._pending_links:
            upper_path = self.items[index].upper_path
            status = self._upper_status(upper_path)
            if status.st_nlink > 1:
                origin = self._origin(upper_path) if status.st_ino not in wanted else None
                if origin is not None:
                    origins[origin] = status.st_ino
                wanted.setdefault(status.st_ino, []).append(index)
        if not wanted:
            return
        for path, ino in paths_of_inodes(self._upper, wanted):
            change = self._changed.get(path)
            old = self._map.to_lower(path)
            if change is not None and path not in self._adjusted:
                continue
            if change is None and not self._stays(path, path, old):
                continue
            self._link_items(wanted[ino], old)
        for old, handle in host_names(self._open, origins):
            # a name that the layer does not hold, of a host file which it knows by another name
            path = self._map.to_merged(old)
            items = wanted[origins[handle]]
            upper_path = self.items[items[0]].upper_path
            if self._stays(path, upper_path, old) and shows_host(self._open, path, old):
                self._link_items(items, old)

    def _link_items(self, indexes: list[int], old: str) -> None:
        for index in indexes:
            self.items[index] = replace(self.items[index], host_link=old)

    def _stays(self, path: str, upper_path: str, old: str) -> bool:
        """Say whether a staged file, without a released change at `path`, is just the host's file."""
        if path in self._changed or self._goes(old):
            return False
        try:
            host, upper = self._host_status(old), self._upper_status(upper_path)
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
        return self._xattrs(upper_path) == self._host_xattrs(old)

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

    def _host_status(self, path: str) -> os.stat_result:
        return _status(self._lower, path)

    def _upper_status(self, path: str) -> os.stat_result:
        return _status(self._upper, path)

    def _host_has(self, path: str) -> bool:
        try:
            self._host_status(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _host_folder(self, path: str) -> os.stat_result | None:
        try:
            status = self._host_status(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status if stat.S_ISDIR(status.st_mode) else None

    def _xattrs(self, path: str) -> dict[str, bytes]:
        return _xattrs_at(self._upper, path, lend_mode=True)

    def _host_xattrs(self, path: str) -> dict[str, bytes]:
        return _xattrs_at(self._lower, path, lend_mode=False)


def _path(place: Place) -> str:
    return os.fsdecode(path_bytes(place.path))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


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
