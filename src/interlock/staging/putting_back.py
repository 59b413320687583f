"""The way back of a discard while the agent lives: its view becomes what the host has, through the view itself.

The layer under a mounted overlay must not be touched, so each change is undone as the agent could undo it: what was
made is removed, what was removed is made again, what was moved is moved back. In which order:

1. folders that were moved go to passing names at the top, the deepest first;
2. what was made goes, what lies in a folder before the folder;
3. what was removed is made again and the moved folders go to their old places, a folder before what lies in it;
4. content is written back, then attributes, those of folders last.

Open files go on: one that is open for writing gets the host's content in place (its holder writes on in it, and that
shows as new work); one that is only read or runs keeps its own, which no longer has a name; the same holds for what
was made and is gone, a working directory too. A folder that was moved back is still the same folder.
"""

import errno
import os
from collections.abc import Callable, Collection

from interlock.model.dependencies import PathMap, host_path, moved_folders
from interlock.model.effects import ChangeKind, FileChange, FileType
from interlock.model.places import Place, path_bytes
from interlock.model.records import dataclass
from interlock.staging.dependents import with_dependents
from interlock.staging.listing import list_changes
from interlock.staging.restoring import View
from interlock.staging.roots import StagedRoot

_STILL_DIFFERS = "it still differs from the host"
_UNSAID = "it cannot be put back"


@dataclass(frozen=True, slots=True, kw_only=True)
class PutBack:
    """What came of a discard while the agent lives.

    Takes: `places`, where the view is the host's again; `failed`, where it is not, each with the reason.
    """

    places: tuple[Place, ...]
    failed: tuple[tuple[Place, str], ...]


def put_back(root: StagedRoot, merged: str, places: Collection[Place] | None) -> PutBack:
    """Make the agent's view equal to what the host has.

    Takes: `root`, over the living layer; `merged`, a path to the view's mount (`Sandbox.view`); `places`, of
    changes, None for all. What cannot stand without one of them goes too: whatever lies in a folder that goes.
    Returns: each place with its outcome; whoever asked for one that failed must not let the agent go on.
    Raises: IntegrityError, where the layer cannot be read; OSError, where the view cannot be opened.
    Holds: nobody writes to the layer meanwhile (the caller lets the agent stand still); host files are only read;
    a listing finds nothing any more at the places put back.
    """
    changes = _listed(root)
    wanted = [index for index, change in enumerate(changes) if places is None or change.place in places]
    chosen = sorted(with_dependents(changes, wanted))
    if not chosen:
        return PutBack(places=(), failed=())
    view = View(root, merged, whole=places is None)
    try:
        failed = _Way(root, view, changes, chosen, settles=places is None).go()
    finally:
        view.close()
    left = {change.place for change in _listed(root)}
    reasons: dict[Place, str] = {}
    for index in chosen:
        place = changes[index].place
        if index in failed:
            reasons.setdefault(place, failed[index])
        elif place in left:
            reasons.setdefault(place, _STILL_DIFFERS)
    done = dict.fromkeys(changes[index].place for index in chosen)
    return PutBack(
        places=tuple(place for place in done if place not in reasons), failed=tuple(reasons.items())
    )


def _listed(root: StagedRoot) -> tuple[FileChange, ...]:
    return tuple(list_changes(root, judges_content=lambda path: False))


class _Way:
    """The way back of the chosen changes."""

    def __init__(
        self,
        root: StagedRoot,
        view: View,
        changes: tuple[FileChange, ...],
        chosen: list[int],
        *,
        settles: bool,
    ) -> None:
        self._view = view
        self._changes = changes
        self._chosen = chosen
        self._settles = settles
        self._failed: dict[int, str] = {}
        moved = {_raw(old): _raw(new) for old, new in moved_folders(changes, root.name).items()}
        back = {
            _raw(changes[index].place.path) for index in chosen if changes[index].kind is ChangeKind.RENAME
        }
        self._paths = PathMap(moved)
        self._kept = PathMap({old: new for old, new in moved.items() if new not in back})
        self._back = back
        self._leaving = frozenset(moved)
        self._out: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def go(self) -> dict[int, str]:
        """Go all of it. Returns: the reasons of what failed, by position."""
        moves = [index for index in self._chosen if self._changes[index].kind is ChangeKind.RENAME]
        for index in sorted(moves, key=lambda one: self._place(one).count("/"), reverse=True):
            self._try(index, self._take_out)
        for index in reversed(self._chosen):
            if self._changes[index].kind in (ChangeKind.CREATE, ChangeKind.REPLACE):
                self._try(index, self._remove)
        makes = [
            index
            for index in self._chosen
            if self._changes[index].kind in (ChangeKind.DELETE, ChangeKind.REPLACE)
        ]
        self._view.seek_peers(self._host(index) for index in makes)
        for index in sorted((*makes, *moves), key=lambda one: self._final(one).count("/")):
            self._try(index, self._put_in if index in moves else self._make)
        for index in self._chosen:
            if self._changes[index].kind in (ChangeKind.MODIFY, ChangeKind.ATTRIBUTES):
                self._try(index, self._restore)
        # a folder's times are the host's again only where all in it is
        touched = self._view.folders() if self._settles else ()
        owners = {self._final(index): index for index in self._chosen}
        for path in sorted({*touched, *self._folders}, key=_depth, reverse=True):
            self._settle(path, owners)
        return self._failed

    def _try(self, index: int, step: Callable[[int], None]) -> None:
        try:
            step(index)
        except OSError as error:
            self._failed.setdefault(index, error.strerror or _UNSAID)

    def _take_out(self, index: int) -> None:
        path = self._place(index)
        self._out[path] = self._view.take_out(path)

    def _remove(self, index: int) -> None:
        self._view.remove(PathMap(self._out).to_merged(self._place(index)))

    def _put_in(self, index: int) -> None:
        path = self._place(index)
        if path in self._out:
            self._view.put_in(self._out[path], self._final(index))
            self._folders[self._final(index)] = self._host(index)

    def _make(self, index: int) -> None:
        folders = self._view.make(self._final(index), self._host(index), self._leaving)
        self._folders.update(folders)

    def _restore(self, index: int) -> None:
        change = self._changes[index]
        if change.before is not None and change.before.type is FileType.DIRECTORY:
            self._folders[self._final(index)] = self._host(index)
        else:
            content = change.kind is ChangeKind.MODIFY
            self._view.restore(self._final(index), self._host(index), content=content)

    def _settle(self, path: str, owners: dict[str, int]) -> None:
        try:
            self._view.settle_folder(path, self._folders.get(path, path))
        except OSError as error:
            if path not in self._folders and error.errno in (errno.ENOENT, errno.ENOTDIR):
                return  # the host has none: what is in its way was told already
            while path and path not in owners:
                path = path.rpartition("/")[0]
            if path in owners:
                self._failed.setdefault(owners[path], error.strerror or _UNSAID)

    def _place(self, index: int) -> str:
        return _raw(self._changes[index].place.path)

    def _host(self, index: int) -> str:
        """Return where the host has what stood at a change's place."""
        change = self._changes[index]
        if change.kind is ChangeKind.RENAME and change.source is not None:
            return _raw(change.source.path)
        return host_path(self._place(index), self._paths)

    def _final(self, index: int) -> str:
        """Return the change's place once the moved folders are back."""
        path = self._place(index)
        at = path
        while at and at not in self._back:
            at = at.rpartition("/")[0]
        if not at:
            return path
        folder, _, name = self._host(index).rpartition("/")
        above = self._kept.to_merged(folder)
        return f"{above}/{name}" if above else name


def _raw(path: str) -> str:
    return os.fsdecode(path_bytes(path))


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0
