"""What one merge did, entry by entry, as its log tells it, and which undoing needs which other.

Two worlds of paths: `path`, where the merge left something (the host now), and `old`, where it was before.
"""

import os
from collections.abc import Mapping, Sequence
from enum import Enum

from interlock.model.dependencies import PathMap, host_path
from interlock.model.places import Place, path_text
from interlock.model.records import dataclass
from interlock.staging.keeping import Kept
from interlock.staging.wal import Adjust, Identity, Wal


class Deed(Enum):
    """What a merge did to a place."""

    CREATED = "created"
    MOVED = "moved"
    REPLACED = "replaced"
    REMOVED = "removed"
    ADJUSTED = "adjusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that a merge did and an undo takes back.

    Takes: `key`, stable over the undos of one merge; `staged`, of what was put, its path in the stage folder;
    `slot`, where what was there is kept; `identity`, of that, or of a moved folder.
    """

    key: str
    root: int
    deed: Deed
    path: str
    old: str
    ino: int = 0
    staged: str = ""
    slot: str = ""
    identity: Identity | None = None
    adjust: Adjust | None = None

    def place(self, wal: Wal) -> Place:
        """Return where it is now (or was, for what was removed)."""
        path = self.old if self.deed is Deed.REMOVED else self.path
        return Place(root=wal.roots[self.root].name, path=path_text(os.fsencode(path)))

    def source(self, wal: Wal) -> Place | None:
        """Return where a moved folder goes back to, None for everything else."""
        if self.deed is not Deed.MOVED:
            return None
        return Place(root=wal.roots[self.root].name, path=path_text(os.fsencode(self.old)))


def moves_of(wal: Wal) -> tuple[PathMap, ...]:
    """Return per root where the merge moved folders: old path -> new path."""
    sources = {(take.root, take.slot): take.path for take in wal.takes if take.is_move}
    moved: list[dict[str, str]] = [{} for _ in wal.roots]
    for put in wal.puts:
        if put.is_move:
            moved[put.root][sources[put.root, put.slot]] = put.path
    return tuple(PathMap(one) for one in moved)


def entries_of(kept: Kept, done: frozenset[str] = frozenset()) -> tuple[Entry, ...]:
    """List what a kept merge did, but for what is undone already."""
    wal = kept.wal
    if wal is None:
        return ()
    maps = moves_of(wal)
    taken = {(take.root, take.slot): take for take in wal.takes if take.is_move}
    framed = {(one.root, one.ino) for one in wal.restores}
    out: list[Entry] = []
    for number, put in enumerate(wal.puts):
        old = host_path(put.path, maps[put.root])
        deed, identity = Deed.CREATED, put.replaces
        if put.is_move:
            take = taken[put.root, put.slot]
            deed, old, identity = Deed.MOVED, take.path, take.identity
        elif put.replaces is not None:
            deed = Deed.REPLACED
        out.append(
            Entry(
                key=f"p{number}",
                root=put.root,
                deed=deed,
                path=put.path,
                old=old,
                ino=put.ino,
                staged="" if put.is_move else put.slot,
                slot="" if put.is_move else put.slot,
                identity=identity,
            )
        )
    for number, take in enumerate(wal.takes):
        if not take.is_move:
            out.append(
                Entry(
                    key=f"t{number}",
                    root=take.root,
                    deed=Deed.REMOVED,
                    path=spot(take.path, maps[take.root]),
                    old=take.path,
                    slot=take.slot,
                    identity=take.identity,
                )
            )
    for number, adjust in enumerate(wal.adjusts):
        # a folder's without xattrs is the frame around the others; a symlink's never has any
        is_own = adjust.after.xattrs is not None or (adjust.root, adjust.ino) not in framed
        if adjust.before is not None and is_own:
            out.append(
                Entry(
                    key=f"a{number}",
                    root=adjust.root,
                    deed=Deed.ADJUSTED,
                    path=adjust.path,
                    old=maps[adjust.root].to_lower(adjust.path),
                    ino=adjust.ino,
                    adjust=adjust,
                )
            )
    return tuple(entry for entry in out if entry.key not in done)


def spot(old: str, paths: PathMap) -> str:
    """Return where, in the host as the merge left it, something that was at `old` belongs."""
    parent, _, name = old.rpartition("/")
    above = paths.to_merged(parent)
    return f"{above}/{name}" if above else name


def needs_of(entries: Sequence[Entry], maps: Sequence[PathMap]) -> tuple[frozenset[int], ...]:
    """Return, for each entry by its position, the positions of those whose undoing it needs directly.

    What comes back needs the folder above it, where that comes back too, and its place free; what goes needs
    every move into it taken back.
    """
    back: dict[tuple[int, str], int] = {}
    moved: dict[tuple[int, str], int] = {}
    there: dict[tuple[int, str], int] = {}
    for index, entry in enumerate(entries):
        if entry.deed in (Deed.REMOVED, Deed.REPLACED):
            back[entry.root, entry.old] = index
        if entry.deed is Deed.MOVED:
            moved[entry.root, entry.old] = index
        if entry.deed in (Deed.CREATED, Deed.MOVED):
            there[entry.root, entry.path] = index
    out: list[frozenset[int]] = []
    for index, entry in enumerate(entries):
        needs: set[int] = set()
        if entry.deed in (Deed.REMOVED, Deed.MOVED):
            needs.update(_above(entry, back, moved))
            occupant = there.get((entry.root, spot(entry.old, maps[entry.root])))
            if occupant is not None:
                needs.add(occupant)
        if entry.deed in (Deed.CREATED, Deed.REPLACED):
            needs.update(
                other
                for other in moved.values()
                if entries[other].root == entry.root and entries[other].path.startswith(f"{entry.path}/")
            )
        out.append(frozenset(needs - {index}))
    return tuple(out)


def closed(chosen: set[int], needs: Sequence[frozenset[int]]) -> frozenset[int]:
    """Return the chosen positions with everything that they need."""
    todo, out = list(chosen), set(chosen)
    while todo:
        for need in needs[todo.pop()]:
            if need not in out:
                out.add(need)
                todo.append(need)
    return frozenset(out)


def _above(
    entry: Entry, back: Mapping[tuple[int, str], int], moved: Mapping[tuple[int, str], int]
) -> list[int]:
    parent = entry.old
    while parent:
        parent = parent.rpartition("/")[0]
        found = back.get((entry.root, parent))
        if found is not None:
            return [found]
        if (entry.root, parent) in moved:
            return []
    return []
