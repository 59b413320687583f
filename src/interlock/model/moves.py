"""Which file of a listing was moved, told from what the listing records: pure, over the changes alone."""

from collections.abc import Iterable, Mapping, Sequence

from interlock.model.effects import ChangeKind, Effect, FileChange, FileStamp, FileType
from interlock.model.records import dataclass

_NOT_READ = "stat:"
_ARRIVE = (ChangeKind.CREATE, ChangeKind.MODIFY, ChangeKind.REPLACE)
_LEAVE = (ChangeKind.DELETE, ChangeKind.REPLACE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One end of a move.

    Takes: `other`, the change at the other end; `arrived`, whether the file is new here, else it left; `edited`,
    whether its content changed on the way.
    """

    other: FileChange
    arrived: bool
    edited: bool

    @property
    def words(self) -> str:
        """Return it as one line for a person."""
        if not self.arrived:
            return f"moved to `{self.other.place}`"
        return f"moved from `{self.other.place}`" + (", and edited" if self.edited else "")


def moved_files(changes: Sequence[FileChange]) -> Mapping[int, Moved]:
    """Return the moves of single files among the changes of one listing: position of a change -> its end.

    Holds: only what is sure. A removal names where its content lives on (`needs`); it is a move where that is one
    place, no other removal names it, and the bytes are the same, or differ, which the listing ties by the file's own
    origin alone. Of a file whose bytes were not read nothing is told.
    """
    arrivals = {
        (change.place.root, change.place.path): index
        for index, change in enumerate(changes)
        if change.kind in _ARRIVE and change.after is not None and change.after.type is FileType.FILE
    }
    named: dict[tuple[str, str], int] = {}
    leaving: list[tuple[int, int]] = []
    for index, change in enumerate(changes):
        for path in change.needs:
            key = (change.place.root, path)
            named[key] = named.get(key, 0) + 1
        if change.kind not in _LEAVE or change.before is None or change.before.type is not FileType.FILE:
            continue
        target = arrivals.get((change.place.root, change.needs[0])) if len(change.needs) == 1 else None
        if target is not None and target != index and _was_read(change.before):
            leaving.append((index, target))
    found: dict[int, Moved] = {}
    for old, new in leaving:
        left, came = changes[old], changes[new]
        if named[(came.place.root, came.place.path)] > 1:
            continue
        assert left.before is not None
        assert came.after is not None
        edited = left.before.digest != came.after.digest
        found[old] = Moved(other=came, arrived=False, edited=edited)
        found[new] = Moved(other=left, arrived=True, edited=edited)
    return found


def _was_read(stamp: FileStamp) -> bool:
    return stamp.digest != "" and not stamp.digest.startswith(_NOT_READ)


def moved_effects(effects: Iterable[Effect]) -> Mapping[str, Moved]:
    """Return the moves among the effects of one listing: effect's id -> its end of the move."""
    files = [(effect.id, effect.change) for effect in effects if effect.change is not None]
    moves = moved_files([change for _, change in files])
    return {files[index][0]: moved for index, moved in moves.items()}
