"""Which staged changes cannot be merged without which others: pure, over the changes alone."""

from collections.abc import Mapping, Sequence

from interlock.model.effects import ChangeKind, FileChange, FileType


class PathMap:
    """Old and new paths of moved folders within one root.

    Takes: `moved`, old path on the host -> new path in the merged view, in either writing of paths.
    """

    def __init__(self, moved: Mapping[str, str]) -> None:
        self._forward = dict(moved)
        self._backward = {new: old for old, new in moved.items()}

    def to_lower(self, path: str) -> str:
        """Return where the host has what the merged view shows at `path` (if it has it)."""
        return _replace_prefix(path, self._backward)

    def to_merged(self, path: str) -> str:
        """Return where the merged view shows what the host has at `path` (if it shows it)."""
        return _replace_prefix(path, self._forward)


def _replace_prefix(path: str, table: Mapping[str, str]) -> str:
    if not table:
        return path
    prefix = path
    while prefix:
        found = table.get(prefix)
        if found is not None:
            return found + path[len(prefix) :]
        prefix = prefix.rpartition("/")[0]
    return path


def moved_folders(changes: Sequence[FileChange], root: str) -> dict[str, str]:
    """Return the moves of one root among the changes: old path -> new path, in `path_text` writing."""
    return {
        change.source.path: change.place.path
        for change in changes
        if change.kind is ChangeKind.RENAME and change.source is not None and change.place.root == root
    }


def requirements(changes: Sequence[FileChange]) -> tuple[tuple[int, ...], ...]:
    """Return, for each change by its position, the positions of the changes that it needs directly.

    A change needs: the change that makes, replaces or moves the nearest folder above it; what frees
    its place (a removal there, or a move away from there); to remove a folder, every move out of it; and what
    the listing says that it stands with (`needs`).
    """
    roots = sorted({change.place.root for change in changes})
    maps = {root: PathMap(moved_folders(changes, root)) for root in roots}
    makers: dict[tuple[str, str], int] = {}
    removals: dict[tuple[str, str], int] = {}
    movers: dict[tuple[str, str], int] = {}
    named = {(change.place.root, path) for change in changes for path in change.needs}
    standing: dict[tuple[str, str], int] = {}
    for index, change in enumerate(changes):
        key = (change.place.root, change.place.path)
        if change.kind is ChangeKind.DELETE:
            removals[key] = index
        elif change.kind in (ChangeKind.CREATE, ChangeKind.RENAME, ChangeKind.REPLACE):
            makers[key] = index
        if change.kind is ChangeKind.RENAME and change.source is not None:
            movers[(change.source.root, change.source.path)] = index
        if key in named:
            standing[key] = index
    out: list[tuple[int, ...]] = []
    for index, change in enumerate(changes):
        root, path = change.place.root, change.place.path
        needs: set[int] = set()
        parent = path
        while parent:
            parent = parent.rpartition("/")[0]
            maker = makers.get((root, parent))
            if maker is not None:
                needs.add(maker)
                break
        if change.kind in (ChangeKind.CREATE, ChangeKind.RENAME):
            old = host_path(path, maps[root])
            for found in (removals.get((root, path)), movers.get((root, old))):
                if found is not None and found != index:
                    needs.add(found)
        for wanted in change.needs:
            found = standing.get((root, wanted))
            if found is not None and found != index:
                needs.add(found)
        removes_folder = (
            change.kind in (ChangeKind.DELETE, ChangeKind.REPLACE)
            and change.before is not None
            and change.before.type is FileType.DIRECTORY
        )
        if removes_folder and movers:
            old = host_path(path, maps[root])
            needs.update(
                mover
                for (owner, source), mover in movers.items()
                if owner == root and source.startswith(old + "/")
            )
        out.append(tuple(sorted(needs)))
    return tuple(out)


def host_path(path: str, paths: PathMap) -> str:
    """Return the host's path of what stood at a place of the merged view before the command.

    A moved folder's new place is not its old place: only the folders above it are mapped back.
    """
    parent, _, name = path.rpartition("/")
    lower_parent = paths.to_lower(parent)
    return f"{lower_parent}/{name}" if lower_parent else name


def unmet(changes: Sequence[FileChange], released: frozenset[int]) -> tuple[tuple[int, int], ...]:
    """Return each (change, needed change) where the first is released and the second is not."""
    return tuple(
        (index, need)
        for index, needs in enumerate(requirements(changes))
        if index in released
        for need in needs
        if need not in released
    )
