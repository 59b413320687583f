"""Between an agent and a suite's tools: each call is put to the monitor first, and only what it lets pass is done.

Holds: three records are kept apart. What was proposed, with its fate (`calls`); what the suite's judges may read, which
is what was done alone, since they take a call in the agent's messages for one that happened (`messages`); and what the
agent reads, refusals and placeholders too (the answers of `propose`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from interlock.bench.agents import Json, canonical, texts
from interlock.bench.cases import CallResult, Origin
from interlock.bench.folding import Answered, Folding
from interlock.bench.guarded_folding import GuardedFolding
from interlock.model.effects import Effect
from interlock.model.records import dataclass
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Verdict
from interlock.monitor.state import Decided

if TYPE_CHECKING:
    from interlock.oracle.context import Context

READ = "tool.read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an oracle is asked. Takes: `key`, which names the effect in its case, whatever was refused before it;
    `good`, whether the user wants it; `task`, the user's words; `verdict`, why nothing vouched for it; `context`, what
    a model may be shown of the run so far."""

    case: str
    key: str
    good: bool
    effect: Effect
    task: str
    verdict: Verdict
    context: Callable[[], Context] | None = None


Answers = Callable[[Asked], bool]
"""Says whether an effect is released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of a proposal. Takes: `text`, what the agent reads; `plain`, the texts of an answer as they are;
    `found`, the suite's own value; `error`, what the tool or the monitor says went wrong."""

    done: bool
    text: str
    plain: str
    found: Any = ""
    error: str | None = None


class Gate:
    """One run's gate.

    Takes: `case_id`, for the oracle's keys; `roles`, a role file; `answers`, the oracle; `runtime` and `env`, the
    suite's; `plan`, the signed plan that vouches, `""` for none.
    """

    folds: ClassVar[Callable[..., Folding | GuardedFolding]] = GuardedFolding
    """What decides: the SDK, with a ledger for each run; or the fold alone (`folding`)."""

    def __init__(
        self,
        case_id: str,
        roles: str,
        query: str,
        *,
        answers: Answers,
        runtime: Any,
        env: Any,
        plan: str = "",
    ) -> None:
        self.calls: list[CallResult] = []
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": blocks(query)}]
        self._done: list[tuple[str, str]] = []
        self._case = case_id
        self._query = query
        self._answers = answers
        self._runtime = runtime
        self._env = env
        self._origin = Origin.USER
        self._key = ""
        self._times: Counter[str] = Counter()
        self._waiting: dict[str, tuple[str, bool]] = {}
        self._plan = plan
        self._fold = self._opened(roles, query)

    @property
    def done(self) -> tuple[tuple[str, str], ...]:
        """Return what was done, as tools and arguments, in the order in which it was."""
        return tuple(self._done)

    @property
    def questions(self) -> int:
        """Return how many questions the oracle was asked."""
        return self._fold.questions

    def propose(self, name: str, arguments: dict[str, Json], origin: Origin) -> Seen:
        """Put a call to the monitor, and make it where that lets it pass."""
        text = canonical(arguments)
        said = f"{origin.value}:{name}:{text}"
        self._times[said] += 1
        # The number of an effect depends on what was refused before it; this does not.
        self._origin, self._key = origin, f"{said}#{self._times[said]}"
        judged = self._fold.call(ToolCall(call=f"c{len(self.calls) + 1}", tool=name, arguments=text))
        effect = judged.item.effect
        seen = Seen(done=False, text=judged.told, plain=judged.told, error=judged.told)
        if judged.parked:
            self._waiting[effect.id] = (self._key, origin is Origin.USER)
            seen = replace(seen, error=None, found=judged.told)
        elif judged.fate.left:
            seen, answer = self._make(name, arguments)
            self._fold.returned(judged, text=answer.text, structured=answer.structured, failed=answer.failed)
        self.calls.append(
            CallResult(
                effect_id=effect.id,
                tool=name,
                arguments=text,
                origin=origin,
                fate=judged.fate.value,
                effect=effect.operation != READ,
                vouched=judged.vouched,
                executed=judged.fate.left,
                failed=judged.fate.left and seen.error is not None,
                missing=judged.missing,
                why=judged.why,
            )
        )
        return seen

    def finish(self) -> None:
        """End the task: what waits is asked about, and made or dropped."""
        self._fold.finish()
        for at, call in enumerate(self.calls):
            fate = self._fold.fates[call.effect_id]
            if fate.value != call.fate:
                self.calls[at] = replace(call, fate=fate.value, executed=fate.left)

    def say(self, text: str) -> None:
        """End the messages with what the agent says."""
        self.messages.append({"role": "assistant", "content": blocks(text), "tool_calls": None})

    def _opened(self, roles: str, query: str) -> Folding | GuardedFolding:
        """Begin the run that decides."""
        more = {"plan": self._plan} if self._plan else {}
        return self.folds(roles, query, oracle=self._release, send=self._send, **more)

    def _release(self, item: Decided) -> bool:
        key, own = self._waiting.get(item.effect.id, (self._key, self._origin is Origin.USER))
        good = own or item.effect.operation == READ
        asked = Asked(
            case=self._case,
            key=key,
            good=good,
            effect=item.effect,
            task=self._query,
            verdict=item.verdict,
            context=partial(self._context, item),
        )
        return self._answers(asked)

    def _context(self, item: Decided) -> Context:
        from interlock.runtime.question_context import Trajectory

        trajectory = Trajectory()
        for seq, event, state in self._fold.story:
            trajectory.take(seq, event, state)
        return trajectory.context(self._fold.state, ((item.effect, item.verdict),))

    def _send(self, item: Decided) -> Answered:
        call = item.effect.tool
        assert call is not None
        _seen, answer = self._make(call.tool, json.loads(call.arguments))
        if answer.failed:
            (at,) = (at for at, each in enumerate(self.calls) if each.effect_id == item.effect.id)
            self.calls[at] = replace(self.calls[at], failed=True)
        return answer

    def _make(self, name: str, arguments: dict[str, Json]) -> tuple[Seen, Answered]:
        from agentdojo.functions_runtime import FunctionCall

        self._done.append((name, canonical(arguments)))
        found, error = self._runtime.run_function(self._env, name, dict(arguments))
        value = plain(found)
        prose = isinstance(value, str)
        answer = str(error) if error else value if isinstance(value, str) else canonical(value)
        call = FunctionCall(function=name, args=arguments)
        self.messages.append({"role": "assistant", "content": blocks(""), "tool_calls": [call]})
        self.messages.append(
            {
                "role": "tool",
                "content": blocks(answer),
                "tool_call": call,
                "tool_call_id": None,
                "error": error,
            }
        )
        seen = Seen(
            done=True,
            text=answer,
            plain=answer if error else "\n".join(texts(value)),
            found=found,
            error=error,
        )
        structured = None if error or prose else answer
        return seen, Answered(text=answer, structured=structured, failed=error is not None)


def blocks(text: str) -> list[dict[str, str]]:
    """Return a text as the suite's messages hold it."""
    return [{"type": "text", "content": text}]


def plain(value: Any) -> Any:
    """Return a value of the suite's as JSON values alone."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
