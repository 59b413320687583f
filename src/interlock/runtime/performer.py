"""The runtime's loop: performs what the core commands and feeds back what came of it.

One `match` performs commands, in order, and stops at the first that fails; the failure becomes an event, so
that the core decides what it means and the ledger holds it. The only broad `except` of Interlock is here, and
it ends in refusal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from typing import TYPE_CHECKING, assert_never

from interlock import policy, staging
from interlock.evidence import LedgerWriter
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import Effect, FileChange
from interlock.model.errors import InterlockError, StuckError
from interlock.model.nodes import Node
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.model.requests import NetResponse, Outcome
from interlock.model.verdicts import SemanticException
from interlock.monitor import State, step
from interlock.oracle import Oracle, Question, ask
from interlock.runtime.folders import NET_FOLDER, RunFolder
from interlock.runtime.keys import forget_keys

if TYPE_CHECKING:
    from interlock.runtime.traffic import Traffic

BATCH = 256
"""Staged changes an event: large enough that 100,000 files are a few hundred nodes."""


class LedgerLost(InterlockError):
    """The ledger cannot be written any more, so nothing can be released any more."""

    code = "ledger-lost"
    exit_status = 4


@dataclass(slots=True)
class Resolution:
    """What a run came to, for the person who started it."""

    refusals: list[tuple[str, str, SemanticException]] = field(default_factory=list)
    turned_away: list[tuple[str, str, SemanticException]] = field(default_factory=list)
    """Requests that were refused while the command ran, and so were told to it at once."""
    committed: int = 0
    skipped: tuple[str, ...] = ()
    held: bool = False
    asked: bool = False
    """Whether an oracle had anything to answer."""
    stuck: str = ""
    fault: str = ""
    fault_status: int = 0
    """The exit status that the fault's class has (docs/errors.md)."""
    sent: list[tuple[str, str, NetResponse]] = field(default_factory=list)
    """Per parked request that left: effect id, URL, what came back."""


class Performer:
    """Holds a run's state and performs commands until the core has no more.

    Takes: `folder`, the run; `ledger`, open for appending; `oracle`, who answers what is deferred; `note`,
    called with one line on long work (progress).
    """

    def __init__(
        self,
        *,
        folder: RunFolder,
        ledger: LedgerWriter,
        oracle: Oracle,
        note: Callable[[str], None],
        state: State | None = None,
    ) -> None:
        self.folder = folder
        self.ledger = ledger
        self.oracle = oracle
        self.state = state if state is not None else State()
        self.resolution = Resolution()
        self.journal = folder.at("journal")
        self.traffic: Traffic | None = None
        """The run's network, while the command runs and has used it."""
        self.merge_finished = False
        """Set by recovery: the write-ahead log had ended the merge already."""
        self._note = note
        self.roots = tuple(
            staging.StagedRoot(
                name=item.name,
                lower=item.lower,
                upper=item.upper,
                mode=folder.staging,
                xattr_prefix=folder.xattr_prefix,
            )
            for item in folder.folders
        )

    def feed(self, event: ev.Event) -> None:
        """Take an event and perform all that follows from it.

        Raises: LedgerLost if the ledger cannot be written; nothing was released that it does not hold.
        """
        self.state, commands = step(self.state, event)
        for command in commands:
            try:
                for answer in self._perform(command):
                    self.feed(answer)
            except LedgerLost:
                raise
            except Exception as error:  # noqa: BLE001 - the one place: any fault ends in refusal
                self._fault(command, error)
                return

    def append_pending(self, nodes: Sequence[Node]) -> None:
        """Append derived nodes that a crash kept from the ledger (`replay` gives them)."""
        for node in nodes:
            self._append(node)

    def _fault(self, command: cmd.Command, error: Exception) -> None:
        name = type(command).__name__
        reason = error.message if isinstance(error, InterlockError) else f"{type(error).__name__}: {error}"
        self.resolution.fault = f"{name}: {reason}"
        self.resolution.fault_status = error.exit_status if isinstance(error, InterlockError) else 70
        if self.state.phase in (Phase.CLOSED, Phase.HELD, Phase.STUCK):
            return
        self.feed(ev.Faulted(where=name, reason=reason))

    def _perform(self, command: cmd.Command) -> Iterator[ev.Event]:
        match command:
            case cmd.Append():
                self._append(command.node)
            case cmd.ListChanges():
                yield from self._list_changes()
            case cmd.Ask() if command.now:
                self.sign()
                yield self._ask_now(command)
            case cmd.Ask():
                self._barrier()
                self.resolution.asked = True
                yield self._ask(command)
            case cmd.LetPass():
                self._secure(durable=command.durable)
                if self.traffic is not None:
                    self.traffic.let_pass(command.effect_id)
            case cmd.TurnAway():
                told = (command.effect_id, command.object, command.exception)
                running = self.state.phase is Phase.RUNNING
                (self.resolution.turned_away if running else self.resolution.refusals).append(told)
                if self.traffic is not None:
                    self.traffic.turn_away(command.effect_id, command.exception)
            case cmd.Park():
                self._barrier()
                if self.traffic is not None:
                    self.traffic.park(command.effect_id)
            case cmd.AnswerInside():
                if self.traffic is not None:
                    self.traffic.answer_inside(command.effect_id, command.subject)
            case cmd.Send():
                self._barrier()
                yield from self._send(command.effect_id)
            case cmd.RecordIntent():
                yield self._record_intent(command)
            case cmd.Commit():
                yield self._commit(command)
            case cmd.Discard():
                self._forget_merge()
                for root in self.roots:
                    staging.discard(root)
                remove_below(self.folder.path, (NET_FOLDER,))
                yield ev.ScopeDiscarded()
            case cmd.Notify():
                self.resolution.refusals.extend(command.refusals)
            case cmd.Hold():
                self._barrier()
                self._forget_merge()
                self.resolution.held = True
            case cmd.Seal():
                self.ledger.seal(command.outcome)
                forget_keys(self.folder.path)
            case _:
                assert_never(command)

    def _append(self, node: Node) -> None:
        try:
            self.ledger.append(node)
        except (OSError, InterlockError) as error:
            raise LedgerLost(
                f"the ledger cannot be written: {error}",
                hint=f"free space below {self.folder.path}, then: interlock apply {self.folder.run_id}",
            ) from error

    def sign(self) -> None:
        """Hand all to the kernel, signed: it survives our fall, not yet a loss of power. Raises: LedgerLost."""
        self._secure(durable=False)

    def _secure(self, *, durable: bool) -> None:
        try:
            if durable:
                self.ledger.harden()
            else:
                self.ledger.sign()
        except (OSError, InterlockError) as error:
            raise LedgerLost(
                f"the ledger cannot be written: {error}",
                hint=f"free space below {self.folder.path}, then: interlock apply {self.folder.run_id}",
            ) from error

    def _barrier(self) -> None:
        try:
            self.ledger.barrier()
        except (OSError, InterlockError) as error:
            raise LedgerLost(
                f"the ledger cannot be made durable: {error}",
                hint=f"free space below {self.folder.path}, then: interlock apply {self.folder.run_id}",
            ) from error

    def _forget_merge(self) -> None:
        """Drop the merge's outcome, once the ledger's word of it is durable."""
        if self.state.phase is Phase.STUCK or not os.path.exists(self.journal):
            return
        self._barrier()
        staging.forget(self.journal)

    def _list_changes(self) -> Iterator[ev.Event]:
        batch: list[FileChange] = []
        seen = 0
        for root in self.roots:
            for change in staging.list_changes(root, judges_content=_judges_content):
                if len(batch) == BATCH:
                    yield self._listed(batch, last=False)
                    batch = []
                batch.append(change)
                seen += 1
                if seen % 10_000 == 0:
                    self._note(f"{seen:,} changes listed")
        yield self._listed(batch, last=True)

    def _listed(self, batch: list[FileChange], *, last: bool) -> ev.ChangesListed:
        return ev.ChangesListed(changes=tuple(batch), last=last)

    def _ask(self, command: cmd.Ask) -> ev.Event:
        question = Question(task=self.state.task, deferred=command.deferred, diff=self.diff)
        return ask(self.oracle, question)

    def _ask_now(self, command: cmd.Ask) -> ev.Event:
        """Ask while the command runs; a person needs its terminal, so it is stopped meanwhile."""
        asked = tuple(effect.id for effect, _verdict in command.deferred)
        question = Question(task=self.state.task, deferred=command.deferred, diff=self.diff, now=True)
        with self.traffic.held_still() if self.traffic is not None else nullcontext():
            return replace(ask(self.oracle, question), asked=self.state.resolving or asked)

    def _send(self, effect_id: str) -> Iterator[ev.Event]:
        """Send a parked request, at most once in the life of its run."""
        from interlock.runtime import sending

        (item,) = (one for one in self.state.parked if one.effect.id == effect_id)
        if self.traffic is not None:
            self.traffic.send(effect_id)
            return
        self._note(f"sending {item.effect.operation.removeprefix('net.')} {item.effect.object}")
        response = sending.send(self.folder, self.state, effect_id)
        yield self.sent(effect_id, response)

    def sent(self, effect_id: str, response: NetResponse) -> ev.ResponseReceived:
        """Note how a parked request came back, and return the event."""
        (item,) = (one for one in self.state.parked if one.effect.id == effect_id)
        self.resolution.sent.append((effect_id, item.effect.object, response))
        if response.outcome is Outcome.DONE:
            self.resolution.committed += 1
        else:
            self.resolution.fault = f"{item.effect.object}: {response.outcome.value}: {response.detail}"
            self.resolution.fault_status = StuckError.exit_status
        return ev.ResponseReceived(effect_id=effect_id, response=response)

    def diff(self, effect: Effect) -> str:
        """Return the effect's text difference for a review."""
        change = effect.change
        if change is None:
            return (effect.request.body_text or "") if effect.request is not None else ""
        (root,) = (item for item in self.roots if item.name == change.place.root)
        return staging.unified_diff(root, change)

    def _record_intent(self, command: cmd.RecordIntent) -> ev.Event:
        """Make the intent durable: in the ledger first, then the bytes and the write-ahead log."""
        self._barrier()
        wanted = set(command.released)
        listed, released = [], []
        for item in self.state.decided():
            if item.effect.change is not None:
                listed.append(item.effect.change)
                if item.effect.id in wanted:
                    released.append(item.effect.change)
        if not released:
            # Requests alone: the ledger holds their intent already.
            return ev.IntentRecorded(released=command.released)
        try:
            plan = staging.plan(self.roots, listed, released)
            self.resolution.skipped = tuple(str(place) for place in plan.skipped)
            staging.prepare(plan, self.journal)
        except (OSError, InterlockError) as error:
            staging.recover(self.journal)
            return ev.CommitFailed(reason=self._why(error), rolled_back=True)
        return ev.IntentRecorded(released=command.released)

    def _commit(self, command: cmd.Commit) -> ev.Event:
        if not self.merge_finished:
            try:
                staging.apply(self.journal)
            except StuckError as error:
                self.resolution.stuck = self._why(error)
                return ev.CommitFailed(reason=error.message, rolled_back=False)
            except (OSError, InterlockError) as error:
                return ev.CommitFailed(reason=self._why(error), rolled_back=True)
        self.merge_finished = False
        self.resolution.committed += len(command.released)
        return ev.ScopeCommitted(applied=command.released)

    def _why(self, error: Exception) -> str:
        reason = (
            error.message
            if isinstance(error, InterlockError)
            else (error.strerror or str(error) if isinstance(error, OSError) else str(error))
        )
        self.resolution.fault = reason
        # A system's error in a merge is a merge that failed.
        self.resolution.fault_status = error.exit_status if isinstance(error, InterlockError) else 5
        return reason


def _judges_content(path: str) -> bool:
    # The table of executable effects is loaded when something is staged, and not at every start.
    return policy.judges_content(path)


def now_ns() -> str:
    """Return UTC now, nanoseconds since 1970, as the ledger writes it."""
    return str(time.time_ns())


def remove_stage(folder: RunFolder) -> None:
    """Remove what only an open run needs: stage, scratch and journal. The ledger stays."""
    if not folder.sealed:
        raise StuckError("a run that is not sealed keeps its staged files")
    remove_below(folder.path, ("stage", "scratch", "journal", NET_FOLDER))


def remove_below(path: str, names: Sequence[str]) -> None:
    """Remove folders of a run, following no link.

    Raises: StuckError, naming the folder that resists.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for name in names:
            staging.remove_tree(descriptor, name)
    except OSError as error:
        raise StuckError(
            f"`{path}` could not be cleaned: {error.strerror}", hint=f"remove by hand: rm -rf {path}/stage"
        ) from error
    finally:
        os.close(descriptor)
