"""The pause: how long a busy agent stands still while its staged files are held fast."""

from __future__ import annotations

import json
import os
import tempfile

from benchmarks.ground import Ground, ground, users
from benchmarks.plan import Plan
from benchmarks.rounds import figure, said
from benchmarks.rows import Goal, NotRun, Row, not_run

FILES = 1000
GOAL_MS = 50.0
_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pausing.py")


def pause(plan: Plan) -> list[Row]:
    """Measure the agent's largest gap during a snapshot of 1,000 changed files of 4 KB."""
    rows = []
    for who in users():
        name = f"scope/pause-{FILES}-files/{who}"
        try:
            with ground(who, plan.parent) as at:
                rows.append(_pause(name, at, plan))
        except NotRun as reason:
            rows.append(not_run(name, "ms", reason))
    return rows


def _pause(name: str, at: Ground, plan: Plan) -> Row:
    told: list[dict[str, float]] = []
    for _ in range(plan.rounds(9, 1)):
        folder = tempfile.mkdtemp(dir=at.base)
        at.give(folder)
        words = (at.interpreter, "-P", _PROGRAM, at.workspace, folder, str(FILES))
        told.append(json.loads(at.run(words, at.workspace).splitlines()[-1]))
    gaps, pauses, wholes = (figure([one[key] for one in told]) for key in ("gap", "pause", "whole"))
    note = f"{said(gaps)}; the agent's own largest gap while it stamps the time; by the monitor's clock it stood "
    note += f"still {pauses.median:.1f} ms; the whole snapshot {wholes.median:.0f} ms, copied while the agent works"
    return Row(name=name, value=gaps.median, unit="ms", goal=Goal(bound=GOAL_MS), note=note)
