"""A cut-off merge that can be neither finished nor taken back, left as it is by the principal, and its run closed.

Nothing more of it is merged or sent, and nothing of the host is touched. What the merge released is *unknown* from then
on, in the ledger too; the log, the staged work and the host's own files that the merge had taken stay for the person.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from interlock import staging
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.errors import InputError, InterlockError
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.monitor import State
from interlock.runtime import folders as runs
from interlock.runtime import history
from interlock.runtime.merging_lock import workspace_lock
from interlock.runtime.recovering import Ending, recover_run
from interlock.staging.journal import KEPT

_MERGING = (Phase.INTENDED, Phase.COMMITTING, Phase.STUCK)

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """What is in doubt of a merge.

    Takes: `reason`, why it cannot be ended; `places`, what it released, as text: each may be as before or as
    after; `kept`, folders in which the run's work and the host's own files lie.
    """

    run_id: str
    path: str
    workspace: str
    reason: str
    places: tuple[str, ...]
    kept: tuple[str, ...]


def look(path: str, note: Note) -> Doubt:
    """Try to end a run's merge once more, and say what is in doubt where that fails.

    Raises: InputError, where there is nothing to give up; IntegrityError, where the ledger itself is damaged.
    """
    ended = recover_run(path, note)
    run_id = os.path.basename(path)
    if ended is None or ended.ending not in (Ending.STUCK, Ending.DAMAGED):
        said = f": {ended.message}" if ended is not None else ""
        raise InputError(
            f"there is nothing to give up of the run {run_id}{said}",
            hint=f"see the run: interlock show {run_id}",
        )
    state = history.read(path).state
    _check(run_id, state)
    folder = runs.load(path)
    from interlock.runtime.story import tell

    effects = tell(path).effects
    return Doubt(
        run_id=run_id,
        path=path,
        workspace=folder.workspace(),
        reason=ended.message,
        places=tuple(
            effects[effect_id].effect.object
            for effect_id in state.released_of(files=True)
            if effect_id in effects
        ),
        kept=(folder.at(KEPT), *_beside(folder)),
    )


def give_up(doubt: Doubt, note: Note) -> None:
    """Close the run and leave the merge as it is; killed in between, the same command goes on with it.

    Raises: InputError, where it is another process's, or was ended meanwhile; StuckError, OSError.
    """
    folder = runs.load(doubt.path)
    lock = runs.RunLock(doubt.path)
    lock.acquire(folder.run_id)
    try:
        with workspace_lock([item.lower for item in folder.folders], note):
            _close(folder, doubt, note)
    finally:
        lock.release()


def _close(folder: runs.RunFolder, doubt: Doubt, note: Note) -> None:
    from interlock.evidence import LedgerWriter
    from interlock.oracle import Strict
    from interlock.runtime.keys import read_keys
    from interlock.runtime.performer import Performer, now_ns

    told = history.read(folder.path)
    _check(folder.run_id, told.state)
    key, secret = read_keys(folder.path)
    ledger = LedgerWriter.reopen(folder.ledger, key=key, secret=secret)
    performer = Performer(folder=folder, ledger=ledger, oracle=Strict(), note=note, state=told.state)
    performer.append_pending(told.pending)
    # from here on nothing goes on with the merge, whatever is cut off
    staging.give_up(folder.at(runs.JOURNAL))
    _set_aside(folder)
    if told.state.given_up:
        performer.again(cmd.Discard())
    else:
        performer.feed(ev.DiscardRequested(requested_at_ns=now_ns(), given_up=doubt.reason))
    history.close(performer)


def _check(run_id: str, state: State) -> None:
    phase = state.phase if state.living is None else state.living
    if state.stuck_on:
        raise InputError(
            f"the run {run_id} waits for your choice on a parked request, not for the end of a merge",
            hint=f"interlock recover {run_id} --retry, --skip or --drop {state.stuck_on}",
        )
    if phase not in _MERGING and not (state.given_up and phase is Phase.DISCARDING):
        raise InputError(
            f"no merge of the run {run_id} is under way: it is {phase.value}",
            hint=f"interlock apply {run_id}, or interlock discard {run_id}",
        )


def _set_aside(folder: runs.RunFolder) -> None:
    """Move the stage away and leave an empty one; may be repeated. The journal follows with the run's end."""
    kept = folder.at(KEPT)
    os.makedirs(kept, mode=0o700, exist_ok=True)
    if os.path.isdir(folder.at("stage")) and not os.path.lexists(os.path.join(kept, "stage")):
        os.rename(folder.at("stage"), os.path.join(kept, "stage"))
    for path in (kept, folder.path):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    for item in folder.folders:
        for path in (item.upper, item.work):
            os.makedirs(path, mode=0o700, exist_ok=True)


def _beside(folder: runs.RunFolder) -> tuple[str, ...]:
    """Return the folders outside of the run's own in which the merge put and took files."""
    from interlock.staging.journal import locked

    try:
        with locked(folder.at(runs.JOURNAL), create=False) as held:
            stages = (held.stages() if held is not None else None) or []
    except InterlockError:
        # damaged too: say where they would be
        return tuple(f"{os.path.dirname(item.lower)}/.interlock-*" for item in folder.folders)
    return tuple(path for path in stages if os.path.isdir(path) and not path.startswith(folder.path + "/"))
