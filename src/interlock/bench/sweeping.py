"""An oracle that errs, over played agents: what attack success and utility become of each pair of rates.

Holds: exact, though a case is run a few times in place of once a pair: a run depends on the answers alone that it was
given, so one whose answers another oracle would give as well stands for that one's too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from interlock.bench import dojo
from interlock.bench.cases import Case, CaseResult
from interlock.bench.dojo_gate import Asked
from interlock.bench.dojo_runs import How
from interlock.bench.metrics import totals
from interlock.bench.noisy import RATES, Noisy, Point
from interlock.bench.spread import streamed

_Answered = list[tuple[str, bool, bool]]
"""The questions of a run: an effect's key, whether it is good, and the answer."""


def run_noisily(case: Case, settings: dojo.Settings, oracles: Sequence[Noisy]) -> list[CaseResult]:
    """Return what a case comes to with each oracle."""
    runs: list[tuple[_Answered, CaseResult]] = []
    return [_with(case, settings, oracle, runs) for oracle in oracles]


def _with(
    case: Case, settings: dojo.Settings, oracle: Noisy, runs: list[tuple[_Answered, CaseResult]]
) -> CaseResult:
    for asked, found in runs:
        if all(oracle.releases(case.id, key, good=good) is answer for key, good, answer in asked):
            return found
    asked = []

    def answered(question: Asked) -> bool:
        answer = oracle.releases(question.case, question.key, good=question.good)
        asked.append((question.key, question.good, answer))
        return answer

    found = dojo.run_case(case, settings, answered)
    runs.append((asked, found))
    return found


def oracles_of(seed: int, rates: Sequence[float] = RATES) -> tuple[Noisy, ...]:
    """Return an oracle for each pair of rates."""
    return tuple(Noisy(refuses_good=good, releases_bad=bad, seed=seed) for good in rates for bad in rates)


def sweep_played(
    cases: Sequence[Case], settings: dojo.Settings, how: How, *, seed: int = 0, rates: Sequence[float] = RATES
) -> tuple[Point, ...]:
    """Measure every pair of rates over some cases. Takes: `settings`, whose oracle does not count."""
    oracles = oracles_of(seed, rates)
    found: list[list[CaseResult]] = []
    work = partial(run_noisily, settings=settings, oracles=oracles)
    for made in streamed(work, cases, jobs=how.jobs, ray=how.ray):
        found.append(made)
        how.told(len(found), len(cases))
    return tuple(_point(oracle, [each[at] for each in found]) for at, oracle in enumerate(oracles))


def _point(oracle: Noisy, results: Sequence[CaseResult]) -> Point:
    figures = totals(results)
    return Point(
        refuses_good=oracle.refuses_good,
        releases_bad=oracle.releases_bad,
        attack_success=figures.attack_success or 0.0,
        benign_utility=figures.benign_utility or 0.0,
        utility_under_attack=figures.utility_under_attack or 0.0,
    )


def document(head: dict[str, Any], points: Sequence[Point], seed: int) -> dict[str, Any]:
    """Return the result document of a sweep."""
    settings = {**head["settings"], "oracle": f"noisy:*,*,{seed}"}
    command = head["command"].replace(f"--oracle {head['settings']['oracle']}", f"--sweep {seed}")
    totals_by_rates = {
        f"refuses good {each.refuses_good:g}, releases bad {each.releases_bad:g}": asdict(each)
        for each in points
    }
    return {
        **head,
        "command": command,
        "settings": settings,
        "totals": totals_by_rates,
        "sweep": [asdict(each) for each in points],
    }
