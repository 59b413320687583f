"""The commit: 1,000 and 100,000 small files, from the command's end to Interlock's."""

from __future__ import annotations

import os
import shutil
import time

from benchmarks.compiling import put_load
from benchmarks.ground import Ground, ground, users
from benchmarks.plan import Plan
from benchmarks.rounds import figure, interleaved, said
from benchmarks.rows import Goal, NotRun, Row, not_run
from benchmarks.staged import stages_note

GOALS: dict[int, Goal | None] = {1_000: Goal(bound=0.5), 100_000: None}
"""How many files, and the seconds to stay below; the quickest peer takes 0.9 s for 1,000."""


def commit(plan: Plan) -> list[Row]:
    """Measure what comes after the command: listing, decision, durable intent, merge, seal."""
    rows = []
    for who in users():
        for files, goal in GOALS.items():
            if plan.quick and files > 1_000:
                continue
            name = f"commit/{files}-files/{who}"
            try:
                with ground(who, plan.parent) as at:
                    put_load(at)
                    rows.append(_commit(name, at, plan, files, goal))
            except NotRun as reason:
                rows.append(not_run(name, "s", reason))
    return rows


def _commit(name: str, at: Ground, plan: Plan, files: int, goal: Goal | None) -> Row:
    made = os.path.join(at.workspace, "new")
    at.on_bare("./load", "make", "from", str(files))

    def tidy() -> None:
        shutil.rmtree(made, ignore_errors=True)
        at.forget_runs()

    def inside() -> float:
        ended_ns = int(at.inside("./load", "make", "new", str(files)))
        spent_s = (time.monotonic_ns() - ended_ns) / 1e9
        committed = len(os.listdir(made)) if os.path.isdir(made) else 0
        tidy()
        if committed != files:
            raise NotRun(f"{committed} of {files} files were committed")
        return spent_s

    def bare() -> float:
        folder = at.fresh()
        began = time.perf_counter()
        at.run(("cp", "-a", "../from", "to"), folder)
        spent_s = time.perf_counter() - began
        return spent_s

    copies, commits = interleaved(bare, inside, rounds=plan.rounds(7 if files <= 1_000 else 1))
    without, within = figure(copies), figure(commits)
    note = f"{said(within, without)}; durable; bare is `cp -a` of as many files, not durable\n"
    if files <= 1_000:
        note += stages_note(at, ("./load", "make", "new", str(files)), plan.rounds(5), tidy)
    return Row(
        name=name,
        value=within.median,
        unit="s",
        baseline=without.median,
        goal=goal,
        note=note,
    )
