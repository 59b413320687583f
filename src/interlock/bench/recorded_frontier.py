"""How much of recorded runs is vouched for, and what slips, as parts of the role files are switched on one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import yaml

from interlock.bench.agentdyn import RunSeen, totals
from interlock.bench.dojo_roles import Level, at_level

FIGURES = (
    "effects_vouched",
    "calls_vouched",
    "effects_under_attack_vouched",
    "slipped",
    "slipped_of_successes",
    "questions_per_task",
)
STEPS = (
    ("the task's own words", ""),
    ("answers about your own state, typed fields of other answers", "fields"),
    ("`delegate`: a file that the task names", "delegate"),
    ("`chooses`: which of your own things", "chooses"),
    ("`links`: those of a site that the task names", "links"),
    ("`makes`: what a call of the run made", "makes"),
)
"""What is switched on, each with all before it, and the key of the role file that does it."""


def frontier(measure: Callable[[Callable[[str], str]], Sequence[RunSeen]]) -> list[dict[str, Any]]:
    """Return the figures of each step.

    Takes: `measure`, which replays the runs with the role files that a function makes of the shipped ones.
    """
    keys = [key for _, key in STEPS]
    found: list[dict[str, Any]] = []
    for number, (name, _) in enumerate(STEPS):
        off = frozenset(keys[number + 1 :])
        figures = totals(measure(partial(without, off=off)))
        found.append({"with": name, **{key: figures[key] for key in FIGURES}})
    return found


@cache
def without(text: str, off: frozenset[str]) -> str:
    """Return a role file in which some keys are switched off: `delegate`, `chooses`, `links`, `makes`; and `fields`,
    without which no answer vouches at all."""
    if not off:
        return text
    whole: dict[str, Any] = yaml.safe_load(at_level(text, Level.TASK) if "fields" in off else text)
    if "delegate" in off:
        whole.pop("delegate", None)
    for tool in whole["tools"].values():
        for key in off:
            tool.pop(key, None)
        if "makes" in off:
            tool.get("output", {}).pop("makes", None)
    return yaml.safe_dump(whole, sort_keys=True, allow_unicode=True)
