"""A played agent under an oracle of the ablation: it is told what to mend, and either ends there or goes on.

The decision is the real one: `corrections` of the policy file says how often a refused kind of action is asked about
again, and what is the same as before is asked about once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import yaml

from interlock.bench import dojo
from interlock.bench.ablation_facts import Facts, caught, truth_of
from interlock.bench.agents import Agent, Json
from interlock.bench.cases import Case, CaseResult, Origin
from interlock.bench.dojo_gate import Asked, Gate, Seen
from interlock.bench.dojo_roles import Level, at_level, is_effect, role_text
from interlock.bench.dojo_suites import environment, quiet, suites
from interlock.bench.folding import Fate
from interlock.bench.guarded_folding import GuardedFolding
from interlock.bench.playing import AlreadyJudged, Player, Tasks, Trace, Verdicts
from interlock.bench.simulated_oracles import Simulated, Word
from interlock.model.events import OracleAnswered
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision
from interlock.oracle import Question
from interlock.oracle.objections import Objection, objection

_OBJECTIONS = {"S": Objection.NOT_IN_ROLE, "T": Objection.OTHER_GOAL, "I": Objection.DIFFERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How a case is played. Takes: `corrections`, of the policy file; `ends`, whether the first refusal ends the run;
    `direct`, whether the user's own words hold the injected goal; `operator`, whether the policy declares the role."""

    agent: Agent
    level: Level
    corrections: int = 1
    ends: bool = False
    direct: bool = False
    operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a run came to. Takes: `asked`, what its oracle was asked, with the answers; `spent`, whether something was
    refused since it could not be mended any more."""

    result: CaseResult
    asked: tuple[tuple[Facts, bool], ...]
    spent: bool


class _Folding(GuardedFolding):
    """A run whose oracle says which check failed."""

    def __init__(self, *given: Any, gate: _Gate, **named: Any) -> None:
        super().__init__(*given, **named)
        self._gate = gate

    def resolve(self, question: Question) -> OracleAnswered:
        answered = super().resolve(question)
        failed = self._gate.failed
        told = tuple(
            one
            if one.decision is Decision.RELEASE
            else replace(
                one, exception=objection(_OBJECTIONS[failed.get(one.effect_id, "T")], self._gate.query)
            )
            for one in answered.answers
        )
        return replace(answered, answers=told)


class _Gate(Gate):
    """The gate, which ends a run at its first refusal where it is told to."""

    def __init__(self, case_id: str, roles: str, query: str, *, ends: bool, **named: Any) -> None:
        super().__init__(case_id, roles, query, **named)
        self.query = query
        self.failed: dict[str, str] = {}
        self.over = False
        self._ends = ends

    def _opened(self, roles: str, query: str) -> _Folding:
        return _Folding(roles, query, oracle=self._release, send=self._send, gate=self)

    def propose(self, name: str, arguments: dict[str, Json], origin: Origin) -> Seen:
        if self.over:
            return Seen(done=False, text="", plain="", error="the run is over")
        seen = super().propose(name, arguments, origin)
        refused = self.calls[-1].fate in (Fate.ASKED_REFUSED.value, Fate.REFUSED.value)
        self.over = self._ends and refused
        return seen


class _Player(Player):
    """The played agent. Takes: `oracle`, which is asked."""

    def __init__(self, tasks: Tasks, conditions: Conditions, oracle: Simulated, known: Verdicts) -> None:
        self.asked: list[tuple[Facts, bool]] = []
        self._conditions = conditions
        self._oracle = oracle
        whole = role_text(tasks.case.suite)
        roles = _roles(tasks.case.suite, tasks.case.user, conditions)
        super().__init__(tasks, conditions.agent, roles, whole, self._answer, known=known)

    def query(
        self, query: str, runtime: Any, env: Any, messages: Sequence[Any] = (), extra_args: Any = None
    ) -> tuple[str, Any, Any, list[dict[str, Any]], Any]:
        if self._conditions.direct and self._tasks.attack is not None:
            query = f"{query}\n\n{self._tasks.attack.GOAL}"
            self.reached = True
        return super().query(query, runtime, env, messages, extra_args)

    def _made_gate(self, query: str, runtime: Any, env: Any) -> Gate:
        return _Gate(
            self._tasks.case.id,
            self._roles,
            query,
            ends=self._conditions.ends,
            answers=self._answers,
            runtime=runtime,
            env=env,
        )

    def _play_user(self, env: Any) -> bool:
        if self._conditions.direct and self._tasks.attack is not None:
            self._obey(env)
        return super()._play_user(env)

    def _answer(self, asked: Asked) -> bool:
        case = self._tasks.case
        call = asked.effect.tool
        assert call is not None
        bad = (
            frozenset[str]()
            if asked.good
            else caught(case.suite, case.user, call.tool, call.arguments, direct=self._conditions.direct)
        )
        facts = Facts(case=case.id, key=asked.key, good=asked.good, caught=bad)
        word = self._oracle.says(facts)
        _gate_of(self).failed[asked.effect.id] = word.failed or "T"
        self.asked.append((facts, word.releases))
        return word.releases


def _gate_of(player: _Player) -> _Gate:
    gate = player.gate
    assert isinstance(gate, _Gate)
    return gate


def _roles(suite: str, user: str, conditions: Conditions) -> str:
    text = at_level(role_text(suite), conditions.level)
    whole: dict[str, Any] = yaml.safe_load(text)
    whole["corrections"] = conditions.corrections
    if conditions.operator:
        reads = [tool for tool in whole["tools"] if not is_effect(role_text(suite), tool)]
        tools = sorted({*reads, *truth_of(suite, user).tools})
        whole["operator"] = {
            "instruction": "Serve requests of the kind that this job is for.",
            "tools": tools,
        }
        whole["trusted"] = []
    return yaml.safe_dump(whole, sort_keys=True, allow_unicode=True)


def play(
    case: Case, conditions: Conditions, oracle: Simulated, known: dict[Trace, tuple[bool, bool]]
) -> Played:
    """Play a case once. Takes: `known`, what the suite's judges said of traces of it; what is new is put there."""
    suite = suites()[case.suite]
    user = suite.user_tasks[case.user]
    attack = suite.injection_tasks[case.injection] if case.injection else None
    settings = dojo.Settings(agent=conditions.agent, level=conditions.level)
    injections = () if conditions.direct else dojo.injected(case, settings)
    tasks = Tasks(
        case=case,
        user=user,
        attack=attack,
        fresh=partial(_fresh, user, case.suite, injections),
        told=() if conditions.direct else dojo.told(case, settings),
    )
    player = _Player(tasks, conditions, oracle, known)
    try:
        with quiet():
            utility, judged = suite.run_task_with_pipeline(
                player, user, attack, dict(injections), environment=environment(case.suite, injections)
            )
    except AlreadyJudged as before:
        utility, judged = before.utility, before.judged
    known[player.trace] = (bool(utility), bool(judged))
    found = dojo.result(
        case,
        conditions.agent,
        player,
        whole=role_text(case.suite),
        utility=bool(utility),
        judged=bool(judged),
    )
    # What nobody was asked about any more: it could not be mended again, or was the same as before.
    asked = _gate_of(player).failed
    spent = any(not each.executed and each.effect_id not in asked for each in found.calls)
    return Played(result=found, asked=tuple(player.asked), spent=spent)


def _fresh(user: Any, suite: str, injections: tuple[tuple[str, str], ...]) -> Any:
    return user.init_environment(environment(suite, injections))


class Plays:
    """The runs of one case, each of which stands for all whose oracle would have answered the same.

    Holds: exact: a run depends on the answers alone, and on `corrections` only where something could not be mended any
    more.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.played = 0
        self._runs: dict[Conditions, list[Played]] = {}
        self._known: dict[bool, dict[Trace, tuple[bool, bool]]] = {True: {}, False: {}}

    def with_oracle(self, conditions: Conditions, oracle: Simulated) -> tuple[CaseResult, int]:
        """Return what the case comes to, and how often models would have been asked."""
        fewer = [replace(conditions, corrections=count) for count in range(conditions.corrections + 1)]
        for each in fewer:
            for run in self._runs.get(each, ()):
                if run.spent and each != conditions:
                    continue
                words = _same_words(run, oracle)
                if words is not None:
                    return run.result, sum(word.calls for word in words)
        run = play(self.case, conditions, oracle, self._known[conditions.direct])
        self.played += 1
        self._runs.setdefault(conditions, []).append(run)
        return run.result, sum(oracle.says(facts).calls for facts, _answer in run.asked)


def _same_words(run: Played, oracle: Simulated) -> list[Word] | None:
    words = []
    for facts, answer in run.asked:
        word = oracle.says(facts)
        if word.releases is not answer:
            return None
        words.append(word)
    return words
