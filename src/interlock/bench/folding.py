"""One run of the real fold over tool calls, without a sandbox: events in, verdicts out.

Holds: every verdict comes from `interlock.monitor.step`; nothing here decides but the caller's own answers to what was
deferred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from enum import Enum
from hashlib import sha256

from interlock.bench import telling
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.records import dataclass
from interlock.model.requests import Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import CheckOutcome, Decision, Guard
from interlock.monitor.state import Decided, State
from interlock.monitor.step import step

MAX_TEXT = 200_000


class Fate(Enum):
    """What became of a call."""

    VOUCHED = "vouched"
    ASKED_RELEASED = "asked-released"
    ASKED_REFUSED = "asked-refused"
    PARKED = "parked"
    REFUSED = "refused"

    @property
    def left(self) -> bool:
        """Say whether the call was done."""
        return self in (Fate.VOUCHED, Fate.ASKED_RELEASED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a tool gave back. Takes: `text`, as the agent reads it; `structured`, its canonical JSON, None of prose."""

    text: str
    structured: str | None = None
    failed: bool = False


Oracle = Callable[[Decided], bool]
"""Says whether what was deferred is released."""
Sender = Callable[[Decided], Answered]
"""Makes a call that had waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A call with its verdict. Takes: `told`, what the agent reads where the call was not done."""

    item: Decided
    fate: Fate
    told: str = ""

    @property
    def parked(self) -> bool:
        """Say whether the agent got a placeholder."""
        return self.fate is Fate.PARKED

    @property
    def vouched(self) -> bool:
        """Say whether the policy released it without asking anybody."""
        return self.item.verdict.decision is Decision.RELEASE

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the roles that nothing vouched for, in their order by name."""
        if self.vouched:
            return ()
        derived = {derivation.role for derivation in self.item.verdict.derivations}
        return tuple(sorted({value.role for value in self.item.effect.steering} - derived))

    @property
    def why(self) -> str:
        """Return which rules vouched, or the roles that nothing vouched for, or else the guard that held it."""
        verdict = self.item.verdict
        if self.vouched:
            rules = sorted({f"{each.role} by {each.rule}" for each in verdict.derivations})
            return ", ".join(rules) or "nothing steers it"
        held = [check for check in verdict.checks if check.outcome is not CheckOutcome.PASS]
        return ", ".join(self.missing) or (held[-1].guard.value if held else Guard.PROVENANCE.value)


class Folding:
    """A run: open it with a policy and a task, give it calls and results in their order, then finish it.

    Takes: `policy_text`, a policy file; `oracle`, who answers what is deferred; `send`, who makes a call that had
    waited, None where nothing can; `name`, how the record calls the oracle.
    """

    def __init__(
        self, policy_text: str, task: str, *, oracle: Oracle, send: Sender | None = None, name: str = "bench"
    ) -> None:
        self.state = State()
        self.questions = 0
        self._oracle = oracle
        self._send = send
        self._name = name
        self._items: dict[str, Decided] = {}
        self._fates: dict[str, Fate] = {}
        self._told: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._queue: list[ev.Event] = []
        self.story: list[tuple[int, ev.Event, State]] = []
        """Each event with the seq of its node, -1 where it wrote none, and the state after it."""
        self._give(ev.TaskGiven(run_id="bench", task=task, argv=("bench",), started_at_ns="0"))
        self._give(
            ev.BoundaryStood(
                roots=(),
                standing=ev.Standing.USER,
                staging=ev.Staging.COPY,
                oracle=name,
                policy_name="bench",
                policy_digest=sha256(policy_text.encode()).hexdigest(),
                policy_text=policy_text,
                receipt=(),
                degraded=(),
                file_events="none",
            )
        )

    @property
    def fates(self) -> Mapping[str, Fate]:
        """Return what became of each call so far, by the effect's id: what is parked is settled by `finish`."""
        return self._fates

    def call(self, call: ToolCall) -> Judged:
        """Give a call to the monitor. Returns: its verdict and what became of it."""
        effect_id = f"e{self.state.proposed + 1}"
        held = tuple(subject for word, subject in self._tokens.items() if word in call.arguments)
        self._give(ev.ToolCalled(call=replace(call, placeholders=held) if held else call))
        return Judged(
            item=self._items[effect_id], fate=self._fates[effect_id], told=self._told.get(effect_id, "")
        )

    def returned(self, judged: Judged, *, text: str, structured: str | None, failed: bool) -> None:
        """Give what a call that was done gave back."""
        self._give(
            returned_event(judged.item.effect.id, Answered(text=text, structured=structured, failed=failed))
        )

    def forked(self, oracle: Oracle) -> Folding:
        """Return the same run once more as it stands now, with another oracle: what comes then changes this one not."""
        found = copy(self)
        found._oracle = oracle
        found._items, found._fates = dict(self._items), dict(self._fates)
        found._told, found._tokens = dict(self._told), dict(self._tokens)
        found._queue, found.story = [], list(self.story)
        return found

    def finish(self) -> None:
        """End the task: what is parked is asked about, and made or dropped."""
        self._give(ev.CommandExited(code=0, signal=0, ended_at_ns="0"))

    def _give(self, given: ev.Event) -> None:
        self._queue.append(given)
        while self._queue:
            event = self._queue.pop(0)
            self.state, commands = step(self.state, event)
            seq = next((one.node.seq for one in commands if isinstance(one, cmd.Append)), -1)
            self.story.append((seq, event, self.state))
            if self.state.latest is not None:
                self._items.setdefault(self.state.latest.effect.id, self.state.latest)
            for command in commands:
                self._perform(command)

    def _perform(self, command: cmd.Command) -> None:
        match command:
            case cmd.LetPass():
                self._passed(command.effect_id)
            case cmd.TurnAway():
                self._turned_away(command.effect_id)
                self._told[command.effect_id] = telling.refusal(command.exception)
            case cmd.Park():
                self._fates[command.effect_id] = Fate.PARKED
                self._tokens[telling.token(command.effect_id)] = command.effect_id
                self._told[command.effect_id] = telling.placeholder(command.effect_id)
            case cmd.Ask():
                self._queue.append(self._answer(command))
            case cmd.Notify():
                for effect_id, _object, _exception in command.refusals:
                    self._turned_away(effect_id)
            case cmd.Send():
                self._queue.append(self._sent(command.effect_id))
            case cmd.Hold() if command.stuck:
                # What was to follow goes on, as an agent's next calls do after one that failed.
                self._queue.append(
                    ev.StuckSettled(effect_id=command.stuck, choice=ev.StuckChoice.SKIP, settled_at_ns="0")
                )
            case cmd.ListChanges():
                self._queue.append(ev.ChangesListed(changes=(), last=True))
            case cmd.RecordIntent():
                self._queue.append(ev.IntentRecorded(released=command.released))
            case cmd.Discard():
                self._queue.append(ev.ScopeDiscarded())
            case _:
                pass

    def _passed(self, effect_id: str) -> None:
        asked = self._items[effect_id].verdict.decision is Decision.DEFER
        self._fates[effect_id] = Fate.ASKED_RELEASED if asked else Fate.VOUCHED

    def _turned_away(self, effect_id: str) -> None:
        asked = self._items[effect_id].verdict.decision is Decision.DEFER
        self._fates[effect_id] = Fate.ASKED_REFUSED if asked else Fate.REFUSED

    def _sent(self, effect_id: str) -> ev.Event:
        assert self._send is not None, "a parked call needs somebody who makes it"
        self._passed(effect_id)
        return returned_event(effect_id, self._send(self._items[effect_id]))

    def _answer(self, command: cmd.Ask) -> ev.Event:
        answers: list[ev.Answer] = []
        for effect, _verdict in command.deferred:
            self.questions += 1
            good = self._oracle(self._items[effect.id])
            answers.append(
                ev.Answer(
                    effect_id=effect.id,
                    decision=Decision.RELEASE if good else Decision.REFUSE,
                    reason="the bench's answer",
                )
            )
        return ev.OracleAnswered(
            oracle=self._name,
            answers=tuple(answers),
            asked=tuple(answer.effect_id for answer in answers) if command.now else (),
        )


def returned_event(effect_id: str, answer: Answered) -> ev.ToolReturned:
    """Return how a call came back, as an event."""
    whole = answer.structured if answer.structured is not None else answer.text
    content = whole.encode("utf-8", "surrogatepass")
    return ev.ToolReturned(
        effect_id=effect_id,
        result=ToolResult(
            outcome=Outcome.FAILED if answer.failed else Outcome.DONE,
            text=whole if len(whole) <= MAX_TEXT else None,
            structured=answer.structured is not None,
            size_bytes=len(content),
            digest=sha256(content).hexdigest(),
        ),
    )
