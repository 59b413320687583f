"""Many generated trajectories through the code and through `spec`: how many, how they were decided, where they differ.

Run `python -m tests.differential.many --trajectories 100000`; each part has a seed of its own, so a run can be had again.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.differential import changes, drawn, test_network, test_tools

PART = 2_000
"""Trajectories of one search: a longer one remembers more than it finds."""
Compare = Callable[..., list[str]]
KINDS: dict[str, tuple[st.SearchStrategy[Any], Compare, tuple[str, ...]]] = {
    "changes": (drawn.cases(), changes.compare, ("policy", "trajectory", "effects")),
    "requests": (test_network.cases(), test_network.compare, ("policy", "trajectory", "requests")),
    "calls": (
        st.builds(lambda policy, case: (policy, *case), test_tools.policies(), test_tools.cases()),
        test_tools.compare,
        ("policy", "task", "trajectory"),
    ),
}


@dataclass(slots=True)
class Counts:
    """What became of trajectories. Takes: `differ`, the smallest case of each part in which both differ, as JSON."""

    trajectories: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    differ: list[str] = field(default_factory=list)

    def add(self, other: "Counts") -> None:
        """Count what another part found too."""
        self.trajectories.update(other.trajectories)
        self.decisions.update(other.decisions)
        self.differ += other.differ


def search(kind: str, number: int, wanted: int) -> Counts:
    """Compare so many trajectories of a kind. Takes: `number`, the seed."""
    counts = Counts()
    cases, compare, names = KINDS[kind]
    failing: list[str] = []

    def check(case: tuple[Any, ...]) -> None:
        try:
            decisions = compare(*case)
        except AssertionError:
            failing[:] = [json.dumps(dict(zip(names, case, strict=True)), ensure_ascii=False)]
            raise
        counts.trajectories[kind] += 1
        counts.decisions.update(decisions)

    limits = settings(
        max_examples=wanted,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    try:
        seed(number)(limits(given(cases)(check)))()
    except AssertionError:
        counts.differ += failing
    return counts


def parts(trajectories: int, first: int) -> list[tuple[str, int, int]]:
    """Return the searches that make up so many trajectories, the kinds in turn: kind, seed, how many."""
    made: list[tuple[str, int, int]] = []
    each = -(-trajectories // len(KINDS))
    for kind in KINDS:
        left = each
        while left > 0:
            made.append((kind, first + len(made), min(PART, left)))
            left -= PART
    return made


def _search(part: tuple[str, int, int]) -> Counts:
    return search(*part)


def main() -> int:
    """Run the command; see `--help`."""
    form = argparse.ArgumentParser(prog="python -m tests.differential.many", description=__doc__)
    form.add_argument("--trajectories", type=int, default=100_000)
    form.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    form.add_argument("--seed", type=int, default=1)
    form.add_argument("--keep", metavar="FOLDER", help="write the cases that differ below this folder")
    chosen = form.parse_args()
    counts, began = Counts(), time.monotonic()
    with multiprocessing.get_context("forkserver").Pool(chosen.workers, maxtasksperchild=4) as pool:
        for found in pool.imap_unordered(_search, parts(chosen.trajectories, chosen.seed)):
            counts.add(found)
    told = ", ".join(f"{number:,} of {kind}" for kind, number in sorted(counts.trajectories.items()))
    decided = ", ".join(f"{number:,} {decision}" for decision, number in sorted(counts.decisions.items()))
    print(f"{counts.trajectories.total():,} trajectories against spec ({told}), seed {chosen.seed}")
    print(f"decisions: {decided}")
    print(f"{len(counts.differ)} differ; {time.monotonic() - began:.0f} s with {chosen.workers} workers")
    for number, case in enumerate(counts.differ):
        print(case)
        if chosen.keep:
            os.makedirs(chosen.keep, exist_ok=True)
            with open(os.path.join(chosen.keep, f"differs-{number}.json"), "w", encoding="utf-8") as file:
                file.write(case)
    return 1 if counts.differ else 0


if __name__ == "__main__":
    sys.exit(main())
