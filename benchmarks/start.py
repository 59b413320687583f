"""Start and stop: `true` through the command line's own process, and the stages that the time goes to."""

from __future__ import annotations

import time
from statistics import median

from benchmarks.ground import Ground, ground, users
from benchmarks.plan import Plan
from benchmarks.rounds import figure, interleaved, said
from benchmarks.rows import Goal, NotRun, Row, not_run
from benchmarks.staged import stages_note

GOAL_MS = 130.0


def start(plan: Plan) -> list[Row]:
    """Measure start + stop of `true`, for root and for an ordinary user."""
    rows = []
    for who in users():
        name = f"start/true/{who}"
        try:
            with ground(who, plan.parent) as at:
                rows.append(_true(name, at, plan))
        except NotRun as reason:
            rows.append(not_run(name, "ms", reason))
    return rows


def _true(name: str, at: Ground, plan: Plan) -> Row:
    rounds = plan.rounds(31, 3)

    def bare() -> float:
        began = time.perf_counter()
        at.on_bare("true")
        return time.perf_counter() - began

    def inside() -> float:
        began = time.perf_counter()
        at.inside("true")
        return time.perf_counter() - began

    def python_alone() -> float:
        began = time.perf_counter()
        at.on_bare(at.interpreter, "-c", "pass")
        return time.perf_counter() - began

    bare_times, inside_times, python_times = interleaved(bare, inside, python_alone, rounds=rounds, warm=2)
    without, within = figure(bare_times), figure(inside_times)
    note = said(within, without)
    note += f"; of it {median(python_times) * 1e3:.1f} ms are a bare `python -c pass`"
    note += "\n" + stages_note(at, ("true",), plan.rounds(11))
    return Row(
        name=name,
        value=within.median * 1e3,
        unit="ms",
        baseline=without.median * 1e3,
        goal=Goal(bound=GOAL_MS),
        note=note,
    )
