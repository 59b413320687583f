"""What a seeing oracle costs beside the agent: calls a task, and its tokens over the agent's.

The prompts are the product's own, written for each question that the real fold puts; the model is one that only counts,
and answers as somebody who knows. Both sides are counted alike: a token is four characters, and the agent sends all
that was said before with each of its turns.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from interlock.bench import agentdyn, dojo, oracle_answers
from interlock.bench.agents import Agent, Json, canonical
from interlock.bench.cases import Case, Origin
from interlock.bench.compare import SCHEMA
from interlock.bench.dojo_gate import Asked, Gate, Seen
from interlock.bench.dojo_roles import role_text
from interlock.bench.dojo_runs import How
from interlock.bench.dojo_suites import VERSION, environment, installed, quiet, suites
from interlock.bench.folding import Folding
from interlock.bench.made_with import source_digest
from interlock.bench.playing import Player, Tasks
from interlock.bench.spread import streamed
from interlock.model.records import dataclass
from interlock.monitor.state import Decided
from interlock.oracle.models import Budget, Completion, Identity, Limits, Price, Request, Usage
from interlock.oracle.seeing.seeing import EVIDENCE_BYTES, Seeing
from interlock.policy.loading import load_policy
from interlock.runtime.question_context import Trajectory

CHARACTERS_A_TOKEN = 4
CONTEXT_TOKENS = 128_000
_REASON = (
    "the task asks for this step, and its values are those that the task names or tells the agent to look up"
)
_KEY = "0123456789abcdef"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one run took.

    Takes: `group`, whose run it is; `calls` and `oracle`, calls of the oracle and their characters; `schemas`, those of
    the answers' schemas; `agent`, characters of the agent's turns; `with_tools`, the same with the tools' definitions
    in each turn.
    """

    group: str
    attacked: bool
    calls: int
    oracle: int
    schemas: int
    agent: int
    with_tools: int


class CountingModel:
    """A model that counts what it is sent, and answers as it is told to. Holds: `calls`, `characters`."""

    def __init__(self) -> None:
        self.identity = Identity(provider="counting", model="counting")
        self.context_tokens = CONTEXT_TOKENS
        self.price = Price()
        self.releases = False
        self.calls = 0
        self.characters = 0
        self.schemas = 0

    def complete(self, request: Request, *, deadline_s: float) -> Completion:
        """Count a request, and answer on each of its effects alike."""
        del deadline_s
        schema: Any = request.schema
        ids = schema["properties"]["answers"]["items"]["properties"]["id"]["enum"]
        decision = "release" if self.releases else "refuse"
        text = json.dumps({"answers": [{"id": one, "reason": _REASON, "decision": decision} for one in ids]})
        self.calls += 1
        self.characters += sum(len(message.text) for message in request.messages) + len(text)
        self.schemas += len(json.dumps(schema))
        return Completion(text=text, usage=Usage(), model="counting", finish="stop")


class Oracle:
    """The seeing oracle over a model that counts. Takes: `evidence_bytes`, as the product's."""

    def __init__(self, evidence_bytes: int = EVIDENCE_BYTES) -> None:
        self.model = CountingModel()
        endless = Budget(Limits(calls=None, tokens=None, seconds=None))
        self._seeing = Seeing(
            self.model,
            word="counting",
            budget=endless,
            key_source=lambda: _KEY,
            evidence_bytes=evidence_bytes,
        )

    def releases(self, asked: Asked) -> bool:
        """Put a question to it. Holds: it answers as somebody who knows."""
        self.model.releases = asked.good
        return oracle_answers.released(oracle_answers.put(self._seeing, asked))


class _Gate(Gate):
    """A gate that counts what the agent's model would be sent. Holds: `agent`, `turns`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.said = len(given[2])
        self.agent = 0
        self.turns = 0

    def propose(self, name: str, arguments: dict[str, Json], origin: Origin) -> Seen:
        seen = super().propose(name, arguments, origin)
        call = len(name) + len(canonical(arguments))
        self._turn(call)
        self.said += len(seen.text)
        return seen

    def say(self, text: str) -> None:
        super().say(text)
        self._turn(len(text))

    def _turn(self, answer: int) -> None:
        self.turns += 1
        self.agent += self.said + answer
        self.said += answer


class _Player(Player):
    """A played agent, whose turns are counted."""

    counted: _Gate

    def _made_gate(self, query: str, runtime: Any, env: Any) -> Gate:
        self.counted = _Gate(
            self._tasks.case.id, self._roles, query, answers=self._answers, runtime=runtime, env=env
        )
        return self.counted


def of_dojo(case: Case, *, evidence_bytes: int = EVIDENCE_BYTES) -> Cost:
    """Play a case of AgentDojo under the shipped role file: alone faithfully, attacked obediently."""
    from agentdojo.functions_runtime import FunctionsRuntime

    suite = suites()[case.suite]
    user = suite.user_tasks[case.user]
    attack = suite.injection_tasks[case.injection] if case.injection else None
    settings = dojo.Settings(agent=Agent.OBEDIENT)
    injections = dojo.injected(case, settings)
    fresh = partial(_fresh, user, case.suite, injections)
    oracle = Oracle(evidence_bytes)
    roles = role_text(case.suite)
    tasks = Tasks(case=case, user=user, attack=attack, fresh=fresh)
    player = _Player(tasks, Agent.OBEDIENT, roles, roles, oracle.releases, known={})
    with quiet():
        player.query(str(user.PROMPT), FunctionsRuntime(suite.tools), fresh())
    return Cost(
        group=case.suite,
        attacked=bool(case.injection),
        calls=oracle.model.calls,
        oracle=oracle.model.characters,
        schemas=oracle.model.schemas,
        agent=player.counted.agent,
        with_tools=player.counted.agent + sum(definitions(case.suite)) * player.counted.turns,
    )


def _fresh(user: Any, suite: str, injections: tuple[tuple[str, str], ...]) -> Any:
    return user.init_environment(environment(suite, injections))


@cache
def definitions(suite: str) -> tuple[int, ...]:
    """Return the characters of each tool's definition, as a model is told of it in every turn."""
    from agentdojo.functions_runtime import FunctionsRuntime

    return tuple(
        len(
            json.dumps(
                {
                    "name": name,
                    "description": tool.description,
                    "parameters": tool.parameters.model_json_schema(),
                }
            )
        )
        for name, tool in FunctionsRuntime(suites()[suite].tools).functions.items()
    )


def of_recorded(
    work: agentdyn.Work,
    turns: Mapping[str, tuple[int, int]],
    *,
    a_definition: int,
    evidence_bytes: int = EVIDENCE_BYTES,
) -> list[Cost]:
    """Replay recorded runs of real models.

    Takes: `turns`, of each run by its id how many turns it has, and their characters; `a_definition`, how long a tool's
    definition is thought to be, as these were not recorded.
    """
    found = []
    for run, attack in zip(work.runs, work.attacks, strict=True):
        oracle = Oracle(evidence_bytes)

        def asked(
            fold: Folding, item: Decided, good: bool, oracle: Oracle = oracle, task: str = run.task
        ) -> bool:
            return oracle.releases(
                Asked(
                    case="",
                    key="",
                    good=good,
                    effect=item.effect,
                    task=task,
                    verdict=item.verdict,
                    context=lambda: context_of(fold, item),
                )
            )

        agentdyn.replay_run(run, attack, work.roles[run.suite], asked)
        count, characters = turns[run.id]
        found.append(
            Cost(
                group=run.model,
                attacked=run.attacked,
                calls=oracle.model.calls,
                oracle=oracle.model.characters,
                schemas=oracle.model.schemas,
                agent=characters,
                with_tools=characters + count * a_definition * tools_of(work.roles[run.suite]),
            )
        )
    return found


def context_of(fold: Folding, item: Decided) -> Any:
    """Return what an oracle is shown of a run so far."""
    trajectory = Trajectory()
    for seq, event, state in fold.story:
        trajectory.take(seq, event, state)
    return trajectory.context(fold.state, ((item.effect, item.verdict),))


@cache
def tools_of(roles: str) -> int:
    """Return how many tools a role file declares."""
    return len(load_policy(roles, filename="roles").tools.tools)


def turns_of(place: Path) -> dict[str, tuple[int, int]]:
    """Return how many turns recorded runs have, and their characters, by the run's id: each turn sends all that was
    said before it."""
    found = {}
    for path in sorted(place.iterdir()) if place.is_dir() else (place,):
        model = path.name.removesuffix(".gz").removesuffix(".jsonl")
        with gzip.open(path, "rt", encoding="utf-8") if path.name.endswith(".gz") else path.open() as file:
            for line in file:
                run = json.loads(line)
                key = f"{run['suite']}/{run['user_task']}/{run['injection_task'] or 'none'}/{model}"
                found[key] = _turns(run["messages"])
    return found


def _turns(messages: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    said = total = count = 0
    for message in messages:
        own = len(message.get("text") or "")
        own += sum(len(call["tool"]) + len(canonical(call["args"])) for call in message.get("calls") or ())
        if message["role"] == "assistant":
            count += 1
            total += said + own
        said += own
    return count, total


def measure(
    how: How, runs: Path, catalogue: Path, *, chosen: Sequence[str], evidence_bytes: int = EVIDENCE_BYTES
) -> dict[str, Any]:
    """Measure AgentDojo and the recorded runs. Returns: the result document."""
    cases = dojo.cases(chosen)
    played: list[Cost] = []
    for cost in streamed(partial(of_dojo, evidence_bytes=evidence_bytes), cases, jobs=how.jobs, ray=how.ray):
        played.append(cost)
        how.told(len(played), len(cases))
    turns = turns_of(runs)
    known = [size for suite in chosen for size in definitions(suite)]
    a_definition = sum(known) // len(known)
    recorded = [
        cost
        for work in agentdyn.works_of(runs, catalogue)
        for cost in of_recorded(work, turns, a_definition=a_definition, evidence_bytes=evidence_bytes)
    ]
    return {
        "schema": SCHEMA,
        "bench": "oracle-cost",
        "command": f"interlock bench cost --runs {runs} --catalogue {catalogue}",
        "evidence_bytes": evidence_bytes,
        "a_definition": a_definition,
        "made_with": {"source": source_digest(), "agentdojo": installed(), "suites_version": VERSION},
        "rows": [
            *_rows("AgentDojo", played),
            *_rows("AgentDyn, recorded", recorded),
        ],
    }


def _rows(bench: str, costs: Sequence[Cost]) -> Iterator[dict[str, Any]]:
    groups = sorted({cost.group for cost in costs})
    for group in ("", *groups):
        for attacked in (False, True):
            of = [cost for cost in costs if cost.attacked is attacked and group in ("", cost.group)]
            if of:
                yield {"bench": bench, "group": group or "all", "attacked": attacked, **_sums(of)}


def _sums(of: Sequence[Cost]) -> dict[str, Any]:
    calls = sum(cost.calls for cost in of)
    oracle, schemas = sum(cost.oracle for cost in of), sum(cost.schemas for cost in of)
    agent, with_tools = sum(cost.agent for cost in of), sum(cost.with_tools for cost in of)
    return {
        "runs": len(of),
        "calls_a_run": round(calls / len(of), 4),
        "runs_without_a_call": round(sum(not cost.calls for cost in of) / len(of), 4),
        "tokens_a_call": round(oracle / CHARACTERS_A_TOKEN / calls) if calls else None,
        "oracle_tokens_a_run": round(oracle / CHARACTERS_A_TOKEN / len(of)),
        "agent_tokens_a_run": round(agent / CHARACTERS_A_TOKEN / len(of)),
        "over_agent": round(oracle / agent, 4),
        "agent_tokens_a_run_with_tools": round(with_tools / CHARACTERS_A_TOKEN / len(of)),
        "over_agent_with_tools": round((oracle + schemas) / with_tools, 4),
    }
