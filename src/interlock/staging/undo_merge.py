"""The undo itself: a merge in the reverse, with the same log, the same steps and the same safety.

What is kept of a merge is its stage folder, so nothing is copied: the kept files are put, what the merge put is
taken. The log lies in `undo/journal`, and beside it `doing`, what the caller wants to know again when a crash
comes between the undo and its record. Everything stays until `close_undo`.
"""

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress

from interlock.model.errors import StuckError
from interlock.model.records import dataclass
from interlock.staging.errors import ConflictError, MergeFailedError
from interlock.staging.journal import FINISHED, locked
from interlock.staging.keeping import MOVED, NEW, OLD, Kept, drop, remove_below, write_file
from interlock.staging.merging import apply, forget, recover
from interlock.staging.open_stage import MARKS
from interlock.staging.undo_entries import entries_of
from interlock.staging.undoing import UndoPlan

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_TAKEN = ("u", "v")
"""How the slots of an undo's own takes begin (`undo_log`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """An undo that was begun.

    Takes: `number`, of its merge; `keys`, of what it takes back; `is_whole`, whether nothing of the merge is
    left to undo then; `note`, what the caller gave.
    """

    number: int
    keys: tuple[str, ...]
    is_whole: bool
    note: Mapping[str, object]


def perform_undo(plan: UndoPlan, top: str, note: Mapping[str, object]) -> None:
    """Undo as planned, all of it or nothing; `close_undo` is to follow once that is written down.

    Takes: `top`, the run's folder `undo`; `note`, what `pending_undo` is to give back after a crash.
    Raises: ConflictError or MergeFailedError, where the host is exactly as before; StuckError, where it could
    be neither finished nor taken back yet.
    """
    wal = plan.wal
    if wal is None:
        raise AssertionError("a plan without a log is not to be performed")
    journal = _journal(top)
    doing = {"number": plan.kept.number, "keys": plan.keys, "whole": plan.is_whole, "note": note}
    try:
        with locked(journal, create=True) as held:
            if held is None:
                raise AssertionError("the folder was just made")
            if held.read_wal() is not None or held.read_outcome() == FINISHED:
                raise StuckError("an earlier undo is not ended", hint="run interlock undo again")
            held.begin([])
            write_file(f"{journal}/doing", json.dumps(doing).encode(), durable=True)
            for root in wal.roots:
                _arrange(root.stage)
            try:
                held.write_wal(wal)
            except OSError:
                held.drop_wal()
                raise
    except OSError as error:
        raise MergeFailedError(
            f"the undo could not be prepared: {error.strerror}",
            hint="nothing was changed; mend what the message names, then undo again",
        ) from error
    try:
        apply(journal)
    except (ConflictError, MergeFailedError):
        with suppress(OSError):
            pending_undo(top)
        raise


def pending_undo(top: str) -> Doing | None:
    """End an undo that a crash cut off, and return it where it is done and not closed yet.

    Raises: StuckError, where it can be neither finished nor taken back yet; IntegrityError.
    """
    journal = _journal(top)
    if not os.path.isdir(journal):
        return None
    outcome, doing = recover(journal), _doing(journal)
    if outcome == FINISHED and doing is not None:
        return doing
    remove_below(journal, "doing")
    forget(journal)
    return None


def close_undo(top: str, kept: Kept) -> None:
    """Remove what a finished undo took from the host, and what is kept in vain; may be repeated.

    Takes: `kept`, the merge that `pending_undo` names.
    Raises: OSError.
    """
    journal = _journal(top)
    doing = pending_undo(top)
    if doing is None:
        return
    if doing.is_whole:
        write_file(f"{kept.path}/undone", b"", durable=True)
        drop(kept.path, but="undone")
    elif kept.wal is not None:
        slots = {entry.slot for entry in entries_of(kept) if entry.key in doing.keys and entry.slot}
        for root in kept.wal.roots:
            _tidy(root.stage, slots)
    remove_below(journal, "doing")
    forget(journal)


def _journal(top: str) -> str:
    return os.path.join(top, "journal")


def _doing(journal: str) -> Doing | None:
    try:
        with open(f"{journal}/doing", "rb") as file:
            value = json.loads(file.read())
        return Doing(
            number=int(value["number"]),
            keys=tuple(str(key) for key in value["keys"]),
            is_whole=bool(value["whole"]),
            note=dict(value["note"]),
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _arrange(stage: str) -> None:
    """Make a kept stage folder one to merge from: all that was kept is in `new`, no border is passed."""
    fd = os.open(stage, _FOLDER)
    try:
        _unmark(fd)
        for name in os.listdir(f"{stage}/{OLD}"):
            if not name.startswith(_TAKEN):
                os.rename(f"{OLD}/{name}", f"{NEW}/{name}", src_dir_fd=fd, dst_dir_fd=fd)
    finally:
        os.close(fd)


def _tidy(stage: str, slots: Collection[str]) -> None:
    """Remove from a kept stage folder what an undo of a part of it took from the host."""
    fd = os.open(stage, _FOLDER)
    try:
        _unmark(fd)
    finally:
        os.close(fd)
    for part in (NEW, OLD, MOVED):
        for name in os.listdir(f"{stage}/{part}"):
            if name in slots or name.startswith(_TAKEN):
                remove_below(f"{stage}/{part}", name)


def _unmark(fd: int) -> None:
    for mark in MARKS:
        with suppress(FileNotFoundError):
            os.rmdir(mark, dir_fd=fd)
