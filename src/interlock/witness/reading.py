"""What a ledger has to show a witness: its newest head, as signed, and the leaves below it."""

import os

from interlock.model.errors import InputError, IntegrityError
from interlock.model.records import dataclass
from interlock.verify import Report, WitnessedHead, read_leaves, read_witness, verify_path

NOTE_FILE = "heads.note"
_NOTE_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A ledger's newest head. Takes: `note`, as it was signed; `ledger`, its folder; `report`, how it verified."""

    note: bytes
    ledger: str
    report: Report

    @property
    def count(self) -> int:
        """Return how many nodes it vouches for."""
        return int(self.note.split(b"\n", 2)[1])

    def leaves(self) -> list[bytes]:
        """Return the leaf hashes of the structure tree below it."""
        return read_leaves(self.ledger, self.count)


def read_head(ledger: str, seen: tuple[WitnessedHead, ...] = ()) -> Head:
    """Read a ledger's newest head, and verify the ledger.

    Takes: `seen`, heads of it that a witness has: the ledger must extend each of them.
    Raises: InputError, where it has no head yet; IntegrityError, where it does not verify, or was rolled back.
    """
    try:
        with open(os.path.join(ledger, NOTE_FILE), "rb") as file:
            note = file.read(_NOTE_BYTES)
    except FileNotFoundError:
        raise InputError(
            "the run has no signed head yet", hint="wait for its first effect, or for its end"
        ) from None
    report = verify_path(ledger, witness=seen)
    if report.verdict == "tampered":
        raise IntegrityError(
            f"nothing was given to the witness: {report.detail} ({report.reason})",
            hint="do not rely on this ledger; keep the witness's heads: they show what was signed",
        )
    return Head(note=note, ledger=ledger, report=report)


def heads_in(path: str, run_id: str) -> tuple[WitnessedHead, ...]:
    """Return the heads in a file of witnessed notes, none where there is no file.

    Raises: InputError, for another run's file, or one that is none.
    """
    if not os.path.lexists(path):
        return ()
    heads = read_witness(path)
    if any(head.origin != f"interlock-ledger/{run_id}" for head in heads):
        raise InputError(f"`{path}` holds heads of another run", hint="name a folder, or a file for each run")
    return heads
