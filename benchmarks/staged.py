"""Where a run's time goes: the stages' medians, as a note below a row."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from statistics import median

from benchmarks.ground import Ground
from benchmarks.rows import NotRun

_STAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stages.py")


def stages_note(
    at: Ground, command: tuple[str, ...], rounds: int, tidy: Callable[[], None] = lambda: None
) -> str:
    """Run a command in a child that keeps a clock on each stage, and tell what each took.

    Takes: `tidy`, called after each run.
    """
    try:
        gathered: dict[str, list[float]] = {}
        for _ in range(rounds):
            began_ns = time.monotonic_ns()
            told = at.run((at.interpreter, "-P", _STAGES, str(began_ns), *command), at.workspace)
            ended_ns = time.monotonic_ns()
            tidy()
            answer = json.loads(told.splitlines()[-1])
            stages: dict[str, float] = answer["stages_ms"]
            stages["exit"] = (ended_ns - answer["ended_ns"]) / 1e6
            for stage, spent_ms in stages.items():
                gathered.setdefault(stage, []).append(spent_ms)
    except NotRun as reason:
        return f"stages not run: {reason}"
    return "ms by stage: " + ", ".join(f"{stage} {median(values):.1f}" for stage, values in gathered.items())
