"""Recovery of runs whose resolution was cut off: finished, rolled back, or named with the choices.

What is half done on the host is ended; work that is only staged is never touched here, only named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import Enum

from interlock.model.errors import InputError, IntegrityError, InterlockError, StuckError
from interlock.model.events import StuckChoice
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.runtime import folders as runs
from interlock.runtime import history
from interlock.runtime.merging_lock import workspace_lock
from interlock.runtime.performer import LedgerLost, Performer

Note = Callable[[str], None]

_RESOLVING = frozenset(
    {Phase.INTENDED, Phase.COMMITTING, Phase.SENDING, Phase.STUCK, Phase.DISCARDING, Phase.CLOSED}
)
"""Cut off in one of these, a run is ended by recovery; CLOSED is one that was not sealed yet."""
_LOST_LOG = "put the workspace right by hand; what was staged is in {stage}"


class Ending(Enum):
    """What recovery came to for a run."""

    FINISHED = "finished"
    """Everything that was released is merged and sent."""
    ROLLED_BACK = "rolled-back"
    """The workspace is as before the commit; the work is staged still."""
    HELD_WORK = "held-work"
    """The run was cut off before its commit: what it staged waits for the principal."""
    STUCK = "stuck"
    DAMAGED = "damaged"
    BUSY = "busy"
    """Another process works on it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A run that was cut off, and what came of it.

    Takes: `message`, what is so now; `choices`, the commands that the principal may choose from, if any.
    """

    run_id: str
    workspace: str
    ending: Ending
    message: str
    choices: tuple[str, ...] = ()


def recover_all(note: Note) -> tuple[Recovered, ...]:
    """Recover every run that was cut off, oldest first; a fault in one does not keep the others."""
    found = (recover_run(os.path.join(runs.runs_folder(), run_id), note) for run_id in runs.all_run_ids())
    return tuple(one for one in found if one is not None)


def recover_run(path: str, note: Note, settling: tuple[str, StuckChoice] | None = None) -> Recovered | None:
    """Recover one run.

    Takes: `settling`, a parked request of the run that did not succeed, and what the principal chose for it.
    Returns: None where nothing was cut off: the run is closed, held on purpose, or never began.
    Raises: InputError, where there is nothing to settle.
    """
    run_id = os.path.basename(path)
    try:
        folder = runs.load(path)
    except IntegrityError as error:
        if not os.path.exists(os.path.join(path, "ledger")):
            return None  # it never began: `interlock runs --clean`
        return Recovered(run_id=run_id, workspace="", ending=Ending.DAMAGED, message=error.message)
    if folder.sealed:
        if settling is not None:
            raise InputError(
                f"the run {run_id} is closed: there is nothing to settle in it",
                hint=f"see what it did: interlock show {run_id}",
            )
        if not _undo_is_cut_off(folder):
            return None
    lock = runs.RunLock(path)
    try:
        try:
            lock.acquire(run_id)
        except InputError as error:
            return Recovered(
                run_id=run_id, workspace=folder.workspace(), ending=Ending.BUSY, message=error.message
            )
        try:
            if folder.sealed:
                # else who held the lock has ended it
                return _recover_undo(folder, note) if _undo_is_cut_off(folder) else None
            return _recover(folder, note, settling)
        except (StuckError, LedgerLost) as error:
            return _stuck(folder, error.message, error.hint)
        except OSError as error:
            return _stuck(folder, f"its folder cannot be used: {error.strerror}")
        except InputError as error:
            if settling is not None:
                raise
            # such as a secret that is wanted to send what was released, and is not there
            return _stuck(folder, error.message, error.hint)
        except InterlockError as error:
            return Recovered(
                run_id=run_id,
                workspace=folder.workspace(),
                ending=Ending.DAMAGED,
                message=error.message,
                choices=(
                    _LOST_LOG.format(stage=folder.at("stage")),
                    f"interlock verify {folder.ledger}",
                    f"interlock recover {folder.run_id} --give-up  (close it as it is, keep all that is left)",
                ),
            )
    finally:
        lock.release()


def recover_beside(paths: Sequence[str], note: Note, *, besides: str = "") -> None:
    """End what cut-off merges left in these folders, before something new is staged over them or merged.

    Takes: `besides`, the id of a run to leave alone: the caller's own.
    Raises: StuckError or IntegrityError, where a merge into them can be neither finished nor taken back.
    """
    wanted = [os.path.realpath(path) for path in paths]
    elsewhere: list[str] = []
    for path in runs.merging():
        run_id = os.path.basename(path)
        if run_id == besides:
            continue
        try:
            lowers = [os.path.realpath(lower) for lower in runs.load(path).lowers_of_its_own()]
        except IntegrityError:
            elsewhere.append(run_id)
            continue
        if not any(_overlap(one, other) for one in lowers for other in wanted):
            if not runs.is_locked(path):
                elsewhere.append(run_id)
            continue
        _end_beside(path, lowers, note)
    if elsewhere:
        note(f"a commit elsewhere was cut off ({', '.join(elsewhere)}): interlock recover")


def _end_beside(path: str, lowers: Sequence[str], note: Note) -> None:
    ended = recover_run(path, note)
    if ended is not None and ended.ending is Ending.BUSY:
        # alive, and in its merge: wait for that, no longer
        with workspace_lock(lowers, note):
            if path not in runs.merging():
                return
        raise StuckError(
            f"the commit of another run into this workspace is not ended: {ended.message}",
            hint="wait until that ends, then try again",
        )
    if ended is None:
        return
    hint = f"interlock recover {ended.run_id}"
    match ended.ending:
        case Ending.STUCK:
            raise StuckError(f"an earlier commit into this workspace is stuck: {ended.message}", hint=hint)
        case Ending.DAMAGED:
            raise IntegrityError(
                f"an earlier commit into this workspace was cut off: {ended.message}", hint=hint
            )
        case _:
            note(f"run {ended.run_id}, cut off in its commit: {ended.message}")


def _overlap(one: str, other: str) -> bool:
    return os.path.commonpath((one, other)) in (one, other)


def _recover(
    folder: runs.RunFolder, note: Note, settling: tuple[str, StuckChoice] | None
) -> Recovered | None:
    _cut(folder)
    state = history.read(folder.path).state
    phase = state.phase if state.living is None else state.living
    merge = os.path.exists(folder.at(runs.JOURNAL, "wal"))
    if settling is not None and phase is not Phase.STUCK:
        raise InputError(
            f"no request of the run {folder.run_id} waits for a choice: it is {phase.value}",
            hint=f"see what it did: interlock show {folder.run_id}",
        )
    if phase is Phase.HELD and not merge:
        return None
    if phase is Phase.NEW:
        return Recovered(
            run_id=folder.run_id,
            workspace=folder.workspace(),
            ending=Ending.HELD_WORK,
            message="it never began, and staged nothing",
            choices=("interlock runs --clean",),
        )
    if phase not in _RESOLVING and not merge:
        return _held(folder, Ending.HELD_WORK, f"cut off while {phase.value}; its work is staged")
    from interlock.oracle import Strict

    with workspace_lock([item.lower for item in folder.folders], note):
        performer = history.reopen(folder.path, Strict(), note)
        try:
            _finish(performer, settling)
            return _ended(folder, performer, state.committed)
        finally:
            history.close(performer)


def _undo_is_cut_off(folder: runs.RunFolder) -> bool:
    return any(os.path.exists(folder.at(runs.UNDO, runs.JOURNAL, name)) for name in ("wal", "doing"))


def _recover_undo(folder: runs.RunFolder, note: Note) -> Recovered:
    from interlock.runtime import undoing

    with workspace_lock([item.lower for item in folder.folders], note):
        before = len(undoing.read_record(folder))
        undoing.finish_cut_off(folder)
        is_done = len(undoing.read_record(folder)) > before
    return Recovered(
        run_id=folder.run_id,
        workspace=folder.workspace(),
        ending=Ending.FINISHED if is_done else Ending.ROLLED_BACK,
        message="its undo is done" if is_done else "the workspace is as before its undo",
        choices=() if is_done else (f"interlock undo {folder.run_id}",),
    )


def _cut(folder: runs.RunFolder) -> None:
    """Cut what was not signed off the ledger's end, as every later resolution does: it is no record."""
    from interlock.evidence import LedgerWriter
    from interlock.runtime.keys import read_keys

    key, secret = read_keys(folder.path)
    LedgerWriter.reopen(folder.ledger, key=key, secret=secret).close()


def _finish(performer: Performer, settling: tuple[str, StuckChoice] | None) -> None:
    """Go on from where the write-ahead log brought the run."""
    if settling is not None:
        history.settle(performer, *settling)
    if performer.state.phase is Phase.SENDING:
        # what was released still leaves, each at most once
        history.resume(performer, "strict")


def _ended(folder: runs.RunFolder, performer: Performer, before: int) -> Recovered:
    """Say what the run is now, by its fold. Takes: `before`, what was committed when it was cut off."""
    state = performer.state
    fault = performer.resolution.fault
    match state.phase:
        case Phase.CLOSED:
            return Recovered(
                run_id=folder.run_id,
                workspace=folder.workspace(),
                ending=Ending.FINISHED,
                message="what was released is merged, and the run is closed"
                if state.committed
                else "the run is closed; nothing of it was merged",
            )
        case Phase.STUCK if state.stuck_on:
            return _waiting(folder, state.stuck_on, fault)
        case phase if phase in _RESOLVING:
            return _stuck(folder, fault or f"it is {phase.value}")
        case _ if state.committed > before:  # also a commit of a living command, which died with its monitor
            return _held(folder, Ending.FINISHED, "what was released is merged; the rest is staged")
        case Phase.HELD:
            message = "the workspace is as before the commit; the work is staged still"
            return _held(folder, Ending.ROLLED_BACK, f"{message} ({fault})" if fault else message)
        case phase:
            return _held(folder, Ending.HELD_WORK, f"cut off while {phase.value}; its work is staged")


def _waiting(folder: runs.RunFolder, effect_id: str, fault: str) -> Recovered:
    choose = f"interlock recover {folder.run_id}"
    return Recovered(
        run_id=folder.run_id,
        workspace=folder.workspace(),
        ending=Ending.STUCK,
        message=f"the parked request {effect_id} did not succeed" + (f" ({fault})" if fault else ""),
        choices=(
            f"{choose} --retry {effect_id}  (once more, with the same key; if the first one came, perhaps twice)",
            f"{choose} --skip {effect_id}  (leave it, go on with what follows)",
            f"{choose} --drop {effect_id}  (leave it, refuse what follows)",
        ),
    )


def _held(folder: runs.RunFolder, ending: Ending, message: str) -> Recovered:
    return Recovered(
        run_id=folder.run_id,
        workspace=folder.workspace(),
        ending=ending,
        message=message,
        choices=(f"interlock apply {folder.run_id}", f"interlock discard {folder.run_id}"),
    )


def _stuck(folder: runs.RunFolder, message: str, hint: str = "") -> Recovered:
    return Recovered(
        run_id=folder.run_id,
        workspace=folder.workspace(),
        ending=Ending.STUCK,
        message=message,
        choices=(hint or f"mend what the message names, then: interlock recover {folder.run_id}",),
    )
