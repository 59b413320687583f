"""The runtime's loop: performs what the core commands and feeds back what came of it.

One `match` performs commands, in order, and stops at the first that fails; the failure becomes an event, so
that the core decides what it means and the ledger holds it. The only broad `except` of Interlock is here, and
it ends in refusal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, assert_never

from interlock import staging
from interlock.evidence import LedgerWriter
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.errors import InterlockError, StuckError
from interlock.model.labels import Confidentiality
from interlock.model.moves import moved_effects
from interlock.model.nodes import Node
from interlock.model.phases import Phase
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.model.requests import NetResponse, Outcome
from interlock.model.tools import ToolResult
from interlock.model.verdicts import SemanticException
from interlock.monitor import State, step
from interlock.oracle import Elsewhere, Oracle, Question, ask
from interlock.oracle.asking import Way, way_of
from interlock.runtime.folders import NET_FOLDER, RunFolder
from interlock.runtime.keys import forget_keys
from interlock.runtime.staged import StagedWork, remove_below, remove_stage

if TYPE_CHECKING:
    from interlock.boundary import Sandbox
    from interlock.model.effects import Effect
    from interlock.oracle.context import Context
    from interlock.runtime.lens import Lens
    from interlock.runtime.questions import Questions
    from interlock.runtime.touches import Touches

__all__ = ["LedgerLost", "Performer", "Resolution", "now_ns", "remove_below", "remove_stage"]


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
    thrown_away: int = 0
    """Files that the command wrote in HOME where nothing is kept."""
    held: bool = False
    asked: bool = False
    """Whether an oracle had anything to answer."""
    stuck: str = ""
    fault: str = ""
    fault_status: int = 0
    """The exit status that the fault's class has (docs/errors.md)."""
    warnings: list[str] = field(default_factory=list)
    """What the principal has to know in any case."""
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
        self.staged = StagedWork(folder, self.resolution, note)
        self.traffic: Lens | None = None
        """Who holds what the agent wants to leave: the run's network while the command runs and has used it, or guarded
        functions."""
        self.on_ask: Callable[[cmd.Ask], None] | None = None
        """Who takes questions out of the step, to feed their answers later; None where they are asked within it."""
        self.stopped = False
        """Whether another terminal asked for the command's end."""
        self.ended: cmd.EndCommand | None = None
        """Why the core asked for the command's end."""
        self.on_end: Callable[[cmd.EndCommand], None] = _unheard
        self.due: Callable[[], ev.StopReached | None] | None = None
        """Who tells, once, that time or memory is used up; None where neither is bounded."""
        self.scope_oracle: Oracle | None = None
        """Who resolves a scope while the command lives; None where the question goes to another terminal."""
        self.labels_of: tuple[int, int, int] | None = None
        """Which state of the label store the core knows."""
        self.labels: ev.LabelsKnown | None = None
        self.on_question: Callable[[cmd.Ask], None] = _unheard
        self.on_scope_end: Callable[[cmd.EndScope], None] = _unheard
        self.falls_with_agent = False
        """Whether the agent falls where the monitor does: then what only reads needs no signature before it happens."""
        self._note = note
        self._questions: Questions | None = None

    @property
    def sandbox(self) -> Sandbox | None:
        """The sandbox, while the command lives."""
        return self.staged.sandbox

    @sandbox.setter
    def sandbox(self, sandbox: Sandbox | None) -> None:
        self.staged.sandbox = sandbox
        if sandbox is None and self._questions is not None:
            self._questions.close()

    def declares(self, place: Place) -> bool:
        """Say whether a verdict may depend on what is read at a place, by the policy or by its label."""
        policy, knowledge = self.state.policy, self.state.knowledge
        assert policy is not None
        assert knowledge is not None
        return policy.declares(place) or knowledge.places.level_of(place) > Confidentiality.PUBLIC

    @property
    def touches(self) -> Touches | None:
        """What is known of the agent's first touch of each place."""
        return self.staged.touches

    @touches.setter
    def touches(self, touches: Touches | None) -> None:
        self.staged.touches = touches

    def feed(self, event: ev.Event) -> None:
        """Take an event and perform all that follows from it.

        Raises: LedgerLost if the ledger cannot be written; nothing was released that it does not hold.
        """
        if self.due is not None and self.state.phase is Phase.RUNNING and (stop := self.due()) is not None:
            self.feed(stop)
        self.state, commands = step(self.state, event)
        if self._questions is not None:
            self._questions.settle()
        for command in commands:
            try:
                if type(command) is cmd.Append:
                    # Most are, and nothing follows from one.
                    self._append(command.node)
                    continue
                for answer in self._perform(command):
                    self.feed(answer)
            except LedgerLost:
                raise
            except Exception as error:  # noqa: BLE001 - the one place: any fault ends in refusal
                self._fault(command, error)
                return

    def again(self, command: cmd.Command) -> None:
        """Perform a command that a crash cut off. Takes: one that may be performed twice."""
        for answer in self._perform(command):
            self.feed(answer)

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
                if self.state.policy is not None:
                    self.staged.forgets = self.state.policy.forgets
                yield from self.staged.list_changes(living=command.living)
            case cmd.Ask() if self.on_ask is not None:
                self.sign()
                self.resolution.asked = True
                self.on_ask(command)
            case cmd.Ask() if command.now and self._waits_for_answers():
                self.sign()
                if (refused := self.questions().ask(command)) is not None:
                    yield refused
            case cmd.Ask() if command.now:
                self.sign()
                yield self._ask_now(command)
            case cmd.Ask() if self.state.living is not None and self.scope_oracle is None:
                self._barrier()
                self.on_question(command)
            case cmd.Ask():
                self._barrier()
                self.resolution.asked = True
                yield self._ask(command)
            case cmd.LetPass():
                if command.durable or not self.falls_with_agent:
                    self._secure(durable=command.durable)
                if self.traffic is not None:
                    self.traffic.let_pass(command.effect_id, command.redaction)
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
                yield from self._send(command)
            case cmd.RecordIntent():
                yield self._record_intent(command)
            case cmd.Commit():
                with self.staged.merge_lock():
                    yield self.staged.commit(self.state, command)
            case cmd.PutBack():
                yield self.staged.put_back(self.state, command)
            case cmd.EndScope():
                self._end_scope()
                self.on_scope_end(command)
            case cmd.Discard():
                self._barrier()  # a half-emptied stage must never be taken for staged work
                self._forget_merge()
                for root in self.staged.roots:
                    staging.discard(root)
                remove_below(self.folder.path, (NET_FOLDER,))
                yield ev.ScopeDiscarded()
            case cmd.Notify():
                self.resolution.refusals.extend(command.refusals)
            case cmd.EndCommand():
                self.ended = self.ended or command
                self.on_end(command)
            case cmd.Hold():
                self.staged.sync_layers()
                self._barrier()
                self._forget_merge()
                self._held(command)
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
        if self.state.phase is Phase.STUCK or not os.path.exists(self.staged.journal):
            return
        self._barrier()
        staging.forget(self.staged.journal)

    def _ask(self, command: cmd.Ask) -> ev.Event:
        oracle = self.oracle if self.scope_oracle is None else self.scope_oracle
        return ask(oracle, self.question(command))

    def question(self, command: cmd.Ask) -> Question:
        """Return what an oracle is asked about the scope."""
        moves = moved_effects(item.effect for item in self.state.decided())
        return Question(
            task=self.state.task,
            deferred=command.deferred,
            diff=lambda effect: self.staged.diff(effect, moves.get(effect.id)),
            hunks=self.staged.hunks,
            merged=self.staged.merged,
            moved={effect_id: moved.words for effect_id, moved in moves.items()},
            ties=self._ties(command),
            redacted=self.redacted,
            redacts=self._redacts,
            context=lambda: self._context(command),
        )

    def _ties(self, command: cmd.Ask) -> dict[str, str]:
        from interlock.runtime.naming_actions import told_of

        return told_of(self.state, command.deferred)

    def _context(self, command: cmd.Ask) -> Context:
        """Return what a model may be shown of the run so far; the ledger was handed to the kernel before."""
        from interlock.runtime.question_context import context_of

        return context_of(self.folder, command.deferred)

    def redacted(self, effect: Effect) -> str:
        """Return a request as it would leave redacted, for a review. Raises: InputError, if it cannot be."""
        from interlock.runtime.redacted import marked_text

        return marked_text(self.state, effect)

    def _redacts(self, effect: Effect) -> bool:
        from interlock.runtime.redacted import leaves_by_policy

        return leaves_by_policy(self.state, effect)

    def _waits_for_answers(self) -> bool:
        """Say whether an answer in mid-run takes its time; any other oracle answers within its call."""
        return self.traffic is not None and way_of(self.oracle) is not Way.AT_ONCE

    def questions(self) -> Questions:
        """Return the questions of the living command that wait for another terminal."""
        if self._questions is None:
            from interlock.runtime.questions import Questions

            deadline_s = self.oracle.deadline_s if isinstance(self.oracle, Elsewhere) else None
            self._questions = Questions(self, deadline_s, self._note)
        return self._questions

    def question_now(self, command: cmd.Ask) -> Question:
        """Return what an oracle is asked while the command runs."""
        return Question(
            task=self.state.task,
            deferred=command.deferred,
            diff=self.staged.diff,
            now=True,
            ties=self._ties(command),
            redacted=self.redacted,
            redacts=self._redacts,
            context=lambda: self._context(command),
        )

    def _ask_now(self, command: cmd.Ask) -> ev.Event:
        """Ask while the command runs whoever answers at once."""
        asked = tuple(effect.id for effect, _verdict in command.deferred)
        said = ask(self.oracle, self.question_now(command))
        return replace(said, asked=self.state.resolving or asked)

    def _send(self, command: cmd.Send) -> Iterator[ev.Event]:
        """Send a parked request: each attempt at most once in the life of its run."""
        from interlock.runtime import sending

        effect_id = command.effect_id
        (item,) = (one for one in self.state.parked if one.effect.id == effect_id)
        if self.traffic is not None:
            self.traffic.send(effect_id, command.redaction)
            return
        if item.effect.tool is not None:
            yield self._unmade(effect_id, command.attempt)
            return
        self._note(f"sending {item.effect.operation.removeprefix('net.')} {item.effect.object}")
        response = sending.send(self.folder, self.state, effect_id, command.attempt, command.redaction)
        yield self.sent(effect_id, response)

    def _unmade(self, effect_id: str, attempt: int) -> ev.ToolReturned:
        """Say of a parked call whose program is gone that it is not made now, and of a cut off one that it may be."""
        from interlock.runtime import sending

        if sending.began(self.folder, effect_id, attempt):
            event = self.cut_off(effect_id)
            assert isinstance(event, ev.ToolReturned)
            return event
        detail = "it was not made: only the program that guards this function could make it, and that is gone"
        self._failed(effect_id, Outcome.FAILED, detail)
        return ev.ToolReturned(effect_id=effect_id, result=ToolResult(outcome=Outcome.FAILED, detail=detail))

    def cut_off(self, effect_id: str) -> ev.ResponseReceived | ev.ToolReturned:
        """Note that nobody knows what a parked request or call did, since it was cut off, and return the event."""
        from interlock.runtime import sending

        (item,) = (one for one in self.state.parked if one.effect.id == effect_id)
        if item.effect.tool is None:
            return self.sent(effect_id, sending.CUT_OFF)
        result = ToolResult(outcome=Outcome.UNKNOWN, detail=sending.CUT_OFF.detail)
        self._failed(effect_id, result.outcome, result.detail)
        return ev.ToolReturned(effect_id=effect_id, result=result)

    def _failed(self, what: str, outcome: Outcome, detail: str) -> None:
        self.resolution.fault = f"{what}: {outcome.value}: {detail}"
        self.resolution.fault_status = StuckError.exit_status

    def sent(self, effect_id: str, response: NetResponse) -> ev.ResponseReceived:
        """Note how a parked request came back, and return the event."""
        (item,) = (one for one in self.state.parked if one.effect.id == effect_id)
        self.resolution.sent.append((effect_id, item.effect.object, response))
        if response.outcome is Outcome.DONE:
            self.resolution.committed += 1
        else:
            self._failed(item.effect.object, response.outcome, response.detail)
        return ev.ResponseReceived(effect_id=effect_id, response=response)

    def _record_intent(self, command: cmd.RecordIntent) -> ev.Event:
        """Make the intent durable: in the ledger first, then the bytes and the write-ahead log."""
        self._barrier()
        if command.prepare:
            with self.staged.merge_lock():
                failed = self.staged.prepare(self.state, command.released, command.blends)
            if failed is not None:
                return failed
        # Else the requests leave first: the ledger holds the intent of all.
        return ev.IntentRecorded(released=command.released)

    def _end_scope(self) -> None:
        """A living scope is over: its snapshot goes, and nothing of its merge need be remembered."""
        self._forget_merge()
        self.staged.drop_snapshot()

    def _held(self, command: cmd.Hold) -> None:
        self.resolution.held = True
        if command.conflicts:
            shown = ", ".join(f"`{place}`" for place in command.conflicts[:5])
            more = f" and {len(command.conflicts) - 5} more" if len(command.conflicts) > 5 else ""
            self.resolution.fault = (
                f"the host changed them too, so nothing was merged: {shown}{more}; choose: "
                f"interlock apply {self.folder.run_id} --review (or --on-conflict theirs)"
            )
            self.resolution.fault_status = staging.ConflictError.exit_status
        if command.stuck:
            self.resolution.held = False
            self.resolution.stuck = (
                f"{self.resolution.fault}; choose: interlock recover {self.folder.run_id} "
                f"--retry {command.stuck}, --skip {command.stuck} or --drop {command.stuck}"
            )


def _unheard(_command: object) -> None:
    pass


def now_ns() -> str:
    """Return UTC now, nanoseconds since 1970, as the ledger writes it."""
    return str(time.time_ns())
