"""What a merge will do: the plan's data."""

from interlock.model.effects import FileStamp
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.staging.roots import StagedRoot
from interlock.staging.wal import Adjust, Identity, Take


@dataclass(frozen=True, slots=True, kw_only=True)
class StageItem:
    """One file to be copied into the stage folder.

    Takes: `path`, in the stage folder's `new`, the slot first; `upper_path`, where the staged copy has it;
    `after`, what it must be; `host_link`, a host file that it is to be another name of, or None.
    """

    root: int
    path: str
    upper_path: str
    after: FileStamp
    host_link: str | None = None


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
    (devices, FIFOs, sockets).
    """

    roots: tuple[StagedRoot, ...]
    items: tuple[StageItem, ...]
    takes: tuple[Take, ...]
    puts: tuple[PlannedPut, ...]
    adjusts: tuple[Adjust, ...]
    restores: tuple[Adjust, ...]
    merged: tuple[Place, ...]
    skipped: tuple[Place, ...]
