"""One run of the real fold over tool calls, without a sandbox: events in, verdicts out.

Holds: every verdict comes from `interlock.monitor.step`; nothing here decides but the caller's own answers to what was
deferred.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from hashlib import sha256

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.records import dataclass
from interlock.model.requests import Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import Decision
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


Oracle = Callable[[Decided], bool]
"""Says whether what was deferred is released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A call with its verdict. Takes: `parked`, whether it got a placeholder; `reason`, of the verdict."""

    item: Decided
    fate: Fate
    parked: bool = False

    @property
    def vouched(self) -> bool:
        """Say whether the policy released it without asking anybody."""
        return self.item.verdict.decision is Decision.RELEASE


class Folding:
    """A run: open it with a policy and a task, then give it calls and results in their order.

    Takes: `policy_text`, a policy file; `oracle`, who answers what is deferred; `name`, how the record calls them.
    """

    def __init__(self, policy_text: str, task: str, *, oracle: Oracle, name: str = "bench") -> None:
        self.state = State()
        self.questions = 0
        self._oracle = oracle
        self._name = name
        self._fates: dict[str, Fate] = {}
        self._sent: list[str] = []
        self._queue: list[ev.Event] = []
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

    def call(self, call: ToolCall) -> Judged:
        """Give a call to the monitor. Returns: its verdict and what became of it."""
        effect_id = f"e{self.state.proposed + 1}"
        self._give(ev.ToolCalled(call=call))
        item = self.state.latest
        assert item is not None
        fate = self._fates[effect_id]
        return Judged(item=item, fate=fate, parked=fate is Fate.PARKED)

    def returned(self, judged: Judged, *, text: str, structured: str | None, failed: bool) -> None:
        """Give what a call that was done gave back."""
        whole = structured if structured is not None else text
        self._give(
            ev.ToolReturned(
                effect_id=judged.item.effect.id,
                result=ToolResult(
                    outcome=Outcome.FAILED if failed else Outcome.DONE,
                    text=whole if len(whole) <= MAX_TEXT else None,
                    structured=structured is not None,
                    size_bytes=len(whole.encode()),
                    digest=sha256(whole.encode()).hexdigest(),
                ),
            )
        )

    def _give(self, event: ev.Event) -> None:
        self._queue.append(event)
        while self._queue:
            self.state, commands = step(self.state, self._queue.pop(0))
            for command in commands:
                self._perform(command)

    def _perform(self, command: cmd.Command) -> None:
        if isinstance(command, cmd.LetPass):
            asked = self._fates.get(command.effect_id) is Fate.ASKED_RELEASED
            self._fates[command.effect_id] = Fate.ASKED_RELEASED if asked else Fate.VOUCHED
        elif isinstance(command, cmd.TurnAway):
            asked = self._fates.get(command.effect_id) is Fate.ASKED_REFUSED
            self._fates[command.effect_id] = Fate.ASKED_REFUSED if asked else Fate.REFUSED
        elif isinstance(command, cmd.Park):
            self._fates[command.effect_id] = Fate.PARKED
        elif isinstance(command, cmd.Ask):
            self._queue.append(self._answer(command))

    def _answer(self, command: cmd.Ask) -> ev.Event:
        answers: list[ev.Answer] = []
        items = {item.effect.id: item for item in (*self.state.opened, *self.state.parked)}
        for effect, _verdict in command.deferred:
            self.questions += 1
            good = self._oracle(items[effect.id])
            self._fates[effect.id] = Fate.ASKED_RELEASED if good else Fate.ASKED_REFUSED
            answers.append(
                ev.Answer(
                    effect_id=effect.id,
                    decision=Decision.RELEASE if good else Decision.REFUSE,
                    reason="the bench's answer",
                )
            )
        return ev.OracleAnswered(
            oracle=self._name, answers=tuple(answers), asked=tuple(answer.effect_id for answer in answers)
        )
