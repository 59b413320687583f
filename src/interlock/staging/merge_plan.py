"""What a merge will do: the plan's data."""

from collections.abc import Mapping
from dataclasses import replace

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.staging.roots import StagedRoot
from interlock.staging.wal import Adjust, Identity, Take


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitute:
    """What a released file is to hold instead of its staged bytes: some of its hunks, or a merge.

    Takes: `place`, of the change; `path`, a file of our own with the bytes, absolute; `after`, what the file will
    be; `xattrs`, those that the file gets, None for the staged copy's.
    """

    place: Place
    path: str
    after: FileStamp
    xattrs: Mapping[str, bytes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageItem:
    """One file to be copied into the stage folder.

    Takes: `path`, in the stage folder's `new`, the slot first; `upper_path`, where the staged copy has it;
    `entry`, its name in the overlay's index where that alone has it, else ""; `after`, what it must be; `host_link`,
    a host file that it is to be another name of, or None; `instead`, what stands for its staged bytes, or None.
    """

    root: int
    path: str
    upper_path: str
    after: FileStamp
    entry: str = ""
    host_link: str | None = None
    instead: Substitute | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPut:
    """A `Put` whose slot is still to be filled; `ino` 0 until then, except for a moved folder."""

    root: int
    path: str
    slot: str
    ino: int
    is_move: bool
    replaces: Identity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """Everything that a merge will do, checked against the host as it is now.

    Takes: `merged`, the places of the released changes; `skipped`, released places that are never merged
    (devices, sockets).
    """

    roots: tuple[StagedRoot, ...]
    items: tuple[StageItem, ...]
    takes: tuple[Take, ...]
    puts: tuple[PlannedPut, ...]
    adjusts: tuple[Adjust, ...]
    restores: tuple[Adjust, ...]
    merged: tuple[Place, ...]
    skipped: tuple[Place, ...]


def takes_substitute(change: FileChange) -> bool:
    """Say whether other bytes than the staged ones can stand for a change's."""
    return change.kind is not ChangeKind.DELETE and (
        change.after is not None and change.after.type is FileType.FILE
    )


def substituted(change: FileChange, substitutes: Mapping[Place, Substitute]) -> FileChange:
    """Return the change to what stands for the staged bytes, where something does."""
    found = substitutes.get(change.place)
    if found is None or not takes_substitute(change):
        return change
    same = change.before is not None and (
        (change.before.digest, change.before.size_bytes) == (found.after.digest, found.after.size_bytes)
    )
    # the host has these bytes already: only what else changed is left to do
    kind = ChangeKind.ATTRIBUTES if same and change.kind is ChangeKind.MODIFY else change.kind
    return replace(change, kind=kind, after=found.after)
