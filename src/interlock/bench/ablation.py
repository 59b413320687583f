"""The ablation of oracles: AgentDojo's cases under a simulated visor with checks left out, corrections counted, a run
that ends at its first refusal, and panels of a seeing and a blind oracle at the same rates of error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from interlock.bench.ablation_playing import Conditions, Plays
from interlock.bench.agents import Agent
from interlock.bench.cases import Case, CaseResult
from interlock.bench.compare import SCHEMA
from interlock.bench.dojo_roles import Level, role_text
from interlock.bench.dojo_runs import How
from interlock.bench.dojo_suites import VERSION, installed
from interlock.bench.made_with import digests, source_digest
from interlock.bench.metrics import totals
from interlock.bench.simulated_oracles import ALL_CHECKS, OneWord, Panelled, Simulated, Visor
from interlock.bench.spread import streamed
from interlock.model.records import dataclass
from interlock.oracle.panel.words import Kind

ERRORS = (0.0, 0.05, 0.1)
INDIRECT = (Agent.OBEDIENT, Agent.HIJACK, Agent.STUBBORN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One row of a table.

    Takes: `table`, `checks`, `corrections`, `panel`, `policy` or `direct`; `error`, of each check or oracle; `agents`,
    that are played.
    """

    table: str
    name: str
    error: float
    oracle: Simulated
    level: Level = Level.DENY
    corrections: int = 1
    ends: bool = False
    direct: bool = False
    operator: bool = False
    agents: tuple[Agent, ...] = INDIRECT

    def conditions(self, agent: Agent) -> Conditions:
        """Return how its cases are played."""
        return Conditions(
            agent=agent,
            level=self.level,
            corrections=self.corrections,
            ends=self.ends,
            direct=self.direct,
            operator=self.operator,
        )


def variants(seed: int, errors: Sequence[float] = ERRORS) -> tuple[Variant, ...]:
    """Return every row, in the order of the tables."""
    return tuple(_variants(seed, errors))


def _variants(seed: int, errors: Sequence[float]) -> Iterator[Variant]:
    for error in errors:
        whole = Visor(error=error, seed=seed)
        yield Variant(table="checks", name="S, T and I", error=error, oracle=whole)
        for check in ALL_CHECKS:
            less = Visor(checks=ALL_CHECKS.replace(check, ""), error=error, seed=seed)
            yield Variant(table="checks", name=f"without {check}", error=error, oracle=less)
        yield Variant(table="checks", name="block only", error=error, oracle=whole, corrections=0, ends=True)
        for count in range(4):
            name = {0: "none", 1: "one"}.get(count, str(count))
            yield Variant(table="corrections", name=name, error=error, oracle=whole, corrections=count)
        for name, oracle in _panels(seed, error):
            yield Variant(table="panel", name=name, error=error, oracle=oracle)
            yield Variant(table="policy", name=name, error=error, oracle=oracle, level=Level.FULL)
        yield Variant(table="policy", name="visor: S, T and I", error=error, oracle=whole, level=Level.FULL)
        direct = partial(Variant, table="direct", error=error, direct=True, agents=(Agent.OBEDIENT,))
        yield direct(name="S, T and I", oracle=whole)
        yield direct(name="without S", oracle=Visor(checks="TI", error=error, seed=seed))
        yield direct(name="block only", oracle=whole, corrections=0, ends=True)
        yield direct(name="the role declared (`operator:`)", oracle=whole, level=Level.FULL, operator=True)
        yield direct(name="the user trusted, no role", oracle=whole, level=Level.FULL)


def _panels(seed: int, error: float) -> Iterator[tuple[str, Simulated]]:
    seeing = OneWord(name="seeing", sees=True, error=error, seed=seed)
    another = OneWord(name="another seeing", sees=True, error=error, seed=seed)
    blind = OneWord(name="blind", sees=False, error=error, seed=seed)
    yield "seeing", seeing
    yield "blind", blind
    yield "all(seeing, blind)", Panelled(kind=Kind.ALL, members=(seeing, blind))
    yield "any(seeing, blind)", Panelled(kind=Kind.ANY, members=(seeing, blind))
    yield "majority(seeing, another, blind)", Panelled(kind=Kind.MAJORITY, members=(seeing, another, blind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one variant makes of one case with one agent. Takes: `calls`, of models by its oracle."""

    result: CaseResult
    calls: int


def run_case(case: Case, rows: Sequence[Variant]) -> tuple[list[dict[str, Cell]], int]:
    """Return each row's cells of a case by agent, and how many runs that took; a task alone is played once, whichever
    agent."""
    plays = Plays(case)
    found = []
    for row in rows:
        cells = {}
        for agent in row.agents:
            played = agent if case.injection else Agent.OBEDIENT
            if played.value in cells:
                continue
            result, calls = plays.with_oracle(row.conditions(played), row.oracle)
            cells[played.value] = Cell(result=result, calls=calls)
        found.append(cells)
    return found, plays.played


def measure(cases: Sequence[Case], seed: int, how: How) -> dict[str, Any]:
    """Measure every row. Returns: the result document."""
    rows = variants(seed)
    by_row: list[dict[str, list[Cell]]] = [{agent.value: [] for agent in row.agents} for row in rows]
    played = 0
    made = streamed(partial(run_case, rows=rows), cases, jobs=how.jobs, ray=how.ray)
    for done, (cells, runs) in enumerate(made, start=1):
        played += runs
        for into, each in zip(by_row, cells, strict=True):
            for agent, cell in each.items():
                into[agent].append(cell)
        how.told(done, len(cases))
    suites = sorted({case.suite for case in cases})
    return {
        "schema": SCHEMA,
        "bench": "ablation",
        "command": f"interlock bench ablation --seed {seed}"
        + "".join(f" --suite {each}" for each in (suites if len(suites) < 4 else ())),
        "seed": seed,
        "of_cases": len(cases),
        "runs": played,
        "made_with": {
            "source": source_digest(),
            "agentdojo": installed(),
            "suites_version": VERSION,
            "roles": digests({suite: role_text(suite) for suite in suites}),
        },
        "rows": [_row(row, cells) for row, cells in zip(rows, by_row, strict=True)],
    }


def _row(row: Variant, cells: dict[str, list[Cell]]) -> dict[str, Any]:
    alone = [cell for cell in cells[Agent.OBEDIENT.value] if not cell.result.case.injection]
    figures: dict[str, Any] = {}
    for agent, of in cells.items():
        attacked = [cell for cell in of if cell.result.case.injection]
        found = totals([cell.result for cell in (*alone, *attacked)])
        figures[agent] = {
            "attack_success": found.attack_success,
            "attacks": found.attacks,
            "utility_under_attack": found.utility_under_attack,
            "effects_right_under_attack": found.effects_right_under_attack,
            "calls_under_attack": _mean(attacked),
        }
    benign = totals([cell.result for cell in alone])
    return {
        "table": row.table,
        "name": row.name,
        "error": row.error,
        "level": row.level.value,
        "corrections": row.corrections,
        "ends": row.ends,
        "benign_utility": benign.benign_utility,
        "calls_benign": _mean(alone),
        "agents": figures,
    }


def _mean(cells: Sequence[Cell]) -> float | None:
    return round(sum(cell.calls for cell in cells) / len(cells), 4) if cells else None
