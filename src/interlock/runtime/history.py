"""Runs read back: their state by the fold of their ledger, and their resumption.

Nothing else keeps state: what a crash left is what the ledger and the staged folder say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from interlock import staging
from interlock.evidence import LedgerWriter
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.errors import InputError, IntegrityError, StuckError
from interlock.model.nodes import Node
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.monitor import State, outcome_of
from interlock.oracle import Oracle
from interlock.runtime import folders as runs
from interlock.runtime import sending
from interlock.runtime.keys import read_keys
from interlock.runtime.performer import Performer, now_ns, remove_stage
from interlock.verify import ReadNode, read_nodes
from interlock.verify.replay import replay

if TYPE_CHECKING:
    from interlock.runtime.touches import Touches


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A run as its ledger tells it.

    Takes: `pending`, derived nodes that a crash kept from the ledger.
    """

    folder: runs.RunFolder
    nodes: tuple[ReadNode, ...]
    state: State
    pending: tuple[Node, ...]


def read(path: str) -> History:
    """Read a run's ledger and fold it.

    Raises: IntegrityError if the ledger is not what the fold gives, with the node.
    """
    folder = runs.load(path)
    nodes: list[ReadNode] = []
    state = State()
    pending: tuple[Node, ...] = ()
    for item in replay(read_nodes(folder.ledger)):
        nodes.append(item.node)
        state, pending = item.state, item.pending
    return History(folder=folder, nodes=tuple(nodes), state=state, pending=pending)


def reopen(path: str, oracle: Oracle, note: Callable[[str], None]) -> Performer:
    """Take an open run up again: the write-ahead log first, then the ledger.

    Raises: InputError for a closed run; IntegrityError for a damaged one; StuckError from a commit that can
    neither be finished nor undone.
    """
    folder = runs.load(path)
    if folder.sealed:
        raise InputError(
            f"the run {folder.run_id} is closed: nothing of it is staged any more",
            hint=f"see what it did: interlock show {folder.run_id}",
        )
    key, secret = read_keys(path)
    ledger = LedgerWriter.reopen(folder.ledger, key=key, secret=secret)
    history = read(path)
    if history.state.phase is Phase.NEW:
        ledger.close()
        raise InputError(
            f"the run {folder.run_id} never began: nothing of it is staged",
            hint="remove what it left: interlock runs --clean",
        )
    performer = Performer(folder=folder, ledger=ledger, oracle=oracle, note=note, state=history.state)
    performer.touches = _touches(folder)
    performer.append_pending(history.pending)
    _settle(performer)
    return performer


def _touches(folder: runs.RunFolder) -> Touches:
    from interlock.runtime.touches import Touches

    return Touches.load(folder)


def _settle(performer: Performer) -> None:
    """Let the write-ahead log say how a cut-off commit ended."""
    outcome = staging.recover(performer.staged.journal)
    state = performer.state
    match state.phase if state.living is None else state.living:
        case Phase.INTENDED:
            if outcome == "finished":
                # The log was durable, the ledger's word of it was not: say it now.
                performer.staged.merge_finished = True
                performer.feed(ev.IntentRecorded(released=state.released))
            else:
                performer.feed(ev.CommitFailed(reason="cut off before the merge", rolled_back=True))
        case Phase.STUCK if state.stuck_on:
            staging.forget(performer.staged.journal)
        case Phase.SENDING if sending.began(performer.folder, state.sending[0], state.attempt):
            performer.feed(performer.cut_off(state.sending[0]))
        case Phase.DISCARDING if state.living is None:
            performer.again(cmd.Discard())
        case Phase.CLOSED:
            performer.again(cmd.Seal(outcome=outcome_of(state)))
        case Phase.COMMITTING | Phase.STUCK:
            if outcome == "finished":
                performer.feed(ev.ScopeCommitted(applied=state.released_of(files=True)))
            elif outcome == "rolled-back":
                performer.feed(ev.CommitFailed(reason="cut off during the merge", rolled_back=True))
            elif state.policy is not None and state.policy.requests_first:
                # The requests left first, and the files were not even copied yet.
                performer.feed(ev.CommitFailed(reason="cut off before the merge", rolled_back=True))
            else:
                raise IntegrityError(
                    "the ledger says that a merge began, and its log is gone",
                    hint=f"compare the workspace with {performer.folder.at('stage')} by hand",
                )
        case _:
            # An outcome may still lie here, when only forgetting it was cut off.
            staging.forget(performer.staged.journal)


def resume(
    performer: Performer,
    oracle_name: str,
    selection: tuple[str, ...] = (),
    on_conflict: ev.OnConflict = ev.OnConflict.ASK,
) -> None:
    """Resolve an open run now: list what is staged, decide again, ask the oracle, commit.

    Raises: StuckError, where a parked request waits for a choice first.
    """
    if performer.state.stuck_on:
        stuck = performer.state.stuck_on
        close(performer)
        raise StuckError(
            f"the parked request {stuck} did not succeed, and waits for your choice",
            hint=f"interlock recover {performer.folder.run_id} --retry {stuck}, --skip {stuck} or --drop {stuck}",
        )
    if performer.state.phase is not Phase.CLOSED:
        performer.feed(
            ev.Resumed(
                oracle=oracle_name, selection=selection, resumed_at_ns=now_ns(), on_conflict=on_conflict
            )
        )
    close(performer)


def settle(performer: Performer, effect_id: str, choice: ev.StuckChoice) -> None:
    """Go on after a parked request that did not succeed, as the principal chose; `close` is to follow.

    Raises: InputError, where it is not the one that waits for a choice.
    """
    stuck = performer.state.stuck_on
    if performer.state.phase is not Phase.STUCK or stuck != effect_id:
        raise InputError(
            f"the request `{effect_id}` waits for no choice",
            hint=f"the one that does is {stuck}" if stuck else "see the run: interlock show RUN",
        )
    performer.feed(ev.StuckSettled(effect_id=effect_id, choice=choice, settled_at_ns=now_ns()))


def discard(performer: Performer) -> None:
    """Drop all that is still staged and close the run."""
    if performer.state.phase is not Phase.CLOSED:
        performer.feed(ev.DiscardRequested(requested_at_ns=now_ns()))
    close(performer)


def close(performer: Performer) -> None:
    """Close the ledger's files, and remove the stage of a run that came to its end."""
    performer.ledger.close()
    if performer.folder.sealed:
        remove_stage(performer.folder)
