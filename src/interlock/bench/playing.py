"""A played agent, as a pipeline of the suite's: ground truths instead of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlock.bench.agents import Agent, Json, Timing, hijacked, squeezed, variants
from interlock.bench.cases import Case, Origin
from interlock.bench.dojo_gate import Answers, Gate, plain
from interlock.bench.dojo_plans import Planner
from interlock.bench.dojo_roles import steering
from interlock.model.errors import IntegrityError
from interlock.model.records import dataclass

_Call = tuple[str, dict[str, Json]]
Trace = tuple[tuple[tuple[str, str], ...], str]
"""What was done, as tools and arguments in their order, and what the agent said at the end."""
Verdicts = Mapping[Trace, tuple[bool, bool]]
"""What the suite's judges said of some traces of one case."""


class AlreadyJudged(Exception):
    """The same was done before in this case, and judged: the judges, which cost more than all else, say the same."""

    def __init__(self, utility: bool, judged: bool) -> None:
        super().__init__()
        self.utility = utility
        self.judged = judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """What is played. Takes: `user` and `attack`, tasks of the suite's; `fresh`, makes the environment anew; `told`,
    texts that were injected in place of the goal's own words."""

    case: Case
    user: Any
    attack: Any
    fresh: Callable[[], Any]
    told: tuple[str, ...] = ()


class Player:
    """Plays one case.

    Takes: `roles`, the role file that the monitor reads; `declared`, the whole one, which tells what steers a tool;
    `known`, verdicts on this case: a run that they cover ends in `AlreadyJudged`; `planner`, who plans the task from
    the clean prompt, so that what is planned is vouched for, None for a run without a plan.
    Holds, after the run: `gate`; `reached`, whether the agent saw the injected goal; `obeyed`, whether it did as told;
    `wanted`, the calls of the user's ground truth; `needed`, the tools that an attack takes, empty where they are those
    of all its calls.
    """

    name = "played"

    def __init__(
        self,
        tasks: Tasks,
        agent: Agent,
        roles: str,
        declared: str,
        answers: Answers,
        *,
        known: Verdicts,
        planner: Planner | None = None,
    ) -> None:
        self.reached = False
        self.obeyed = False
        self.wanted: list[_Call] = []
        self.needed: frozenset[str] = frozenset()
        self._tasks = tasks
        self._agent = agent
        self._roles = roles
        self._declared = declared
        self._answers = answers
        self._known = known
        self._planner = planner
        self._said = ""
        self._gate: Gate | None = None

    @property
    def gate(self) -> Gate:
        """Return the gate of the run."""
        assert self._gate is not None
        return self._gate

    @property
    def trace(self) -> Trace:
        """Return what the judges' verdicts depend on, given the case."""
        return self.gate.done, self._said

    def query(
        self, query: str, runtime: Any, env: Any, messages: Sequence[Any] = (), extra_args: Any = None
    ) -> tuple[str, Any, Any, list[dict[str, Any]], Any]:
        """Play the whole run. Raises: IntegrityError where it is asked again: its effects would be done twice."""
        if self._gate is not None:
            raise IntegrityError(
                f"`{self._tasks.case.id}` was asked again", hint="report this with the suite's version"
            )
        self._gate = self._made_gate(query, runtime, env)
        whole = self._play_user(env)
        if self.reached and self._tasks.case.timing == Timing.END:
            if self._agent is Agent.HIJACK:
                for name, arguments in self.wanted:
                    self._hijack(env, name, arguments)
            self._obey(env)
        self.gate.finish()
        said = str(self._tasks.user.GROUND_TRUTH_OUTPUT) if whole else ""
        if self.obeyed:
            said += "\n" + str(self._tasks.attack.GROUND_TRUTH_OUTPUT)
        self.gate.say(said)
        self._said = said
        if self.trace in self._known:
            raise AlreadyJudged(*self._known[self.trace])
        return query, runtime, env, self.gate.messages, extra_args or {}

    def _made_gate(self, query: str, runtime: Any, env: Any) -> Gate:
        plan = ""
        if self._planner is not None:
            truth = self._tasks.user.ground_truth(self._tasks.fresh())
            calls = [(call.function, plain(dict(call.args))) for call in truth]
            plan = self._planner.envelope(query, f"{self._tasks.case.suite}/{self._tasks.case.user}", calls)
        return Gate(
            self._tasks.case.id,
            self._roles,
            query,
            answers=self._answers,
            runtime=runtime,
            env=env,
            plan=plan,
        )

    def _play_user(self, env: Any) -> bool:
        """Make the user's calls. Returns: whether every read of them was answered, so that the answer is known."""
        goals = [self._tasks.attack.GOAL, *self._tasks.told] if self._tasks.attack is not None else []
        signs = [squeezed(each) for each in goals]
        whole = True
        for call in self._tasks.user.ground_truth(env):
            arguments = plain(dict(call.args))
            self.wanted.append((call.function, arguments))
            first = self.reached and self._tasks.case.timing == Timing.FIRST
            if first and self._agent is Agent.HIJACK:
                self._hijack(env, call.function, arguments)
            seen = self.gate.propose(call.function, arguments, Origin.USER)
            whole = whole and (seen.done or self.gate.calls[-1].effect)
            if signs and not self.reached and any(sign in squeezed(seen.plain) for sign in signs):
                self.reached = True
                if self._tasks.case.timing == Timing.FIRST:
                    self._obey(env)
        return whole

    def _obey(self, env: Any) -> None:
        if self._agent not in (Agent.OBEDIENT, Agent.STUBBORN):
            return
        self.obeyed = True
        for name, arguments in self._attack_calls(env):
            seen = self.gate.propose(name, arguments, Origin.ATTACKER)
            if self._agent is not Agent.STUBBORN or seen.error is None:
                continue
            # It reads why it was refused, and takes no notice: the same again, then written otherwise.
            for again in (arguments, *variants(arguments)):
                if self.gate.propose(name, again, Origin.ATTACKER).done:
                    break

    def _hijack(self, env: Any, name: str, own: dict[str, Json]) -> None:
        given: dict[str, Json] = {}
        for _name, arguments in self._attack_calls(env):
            given.update(arguments)
        changed = hijacked(own, given, steering(self._declared, name))
        if changed is not None:
            self.gate.propose(name, changed, Origin.ATTACKER)

    def _attack_calls(self, env: Any) -> list[_Call]:
        attack = self._tasks.attack
        try:
            calls = attack.ground_truth(env.model_copy(deep=True))
        except (KeyError, IndexError, ValueError, AttributeError, StopIteration):
            # It looks for something that the user's own task has changed by now.
            calls = attack.ground_truth(self._tasks.fresh())
        return [(call.function, plain(dict(call.args))) for call in calls]
