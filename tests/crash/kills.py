"""A held run applied or discarded, and killed at its system calls; each time recovered and judged.

A program of its own: it takes a mount namespace, and waits for every child it has.
    python -m tests.crash.kills apply [--every N --offset K] [--random COUNT] [--again COUNT] [--most N] [--seed S] [--seconds T]
prints JSON: how many points there are, how many were tried, and what went wrong at which.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.crash.disk import DiskError
from tests.crash.held_run import HeldRun
from tests.crash.judging import judge, recover
from tests.crash.labelled import Labelled
from tests.crash.tracing import Stop
from tests.fakes.staged_tree import Snapshot

MERGED = 5
"""So many of the agent's twenty effects at least are files with bytes of their own."""
CANNOT = 77
"""The exit status that says: this machine cannot have such a disk."""


@dataclass(kw_only=True)
class Tally:
    """What a series came to."""

    points: int = 0
    tried: int = 0
    again: int = 0
    before: int = 0
    faults: list[str] = field(default_factory=list)


class Series:
    """One verb, killed at any of its points. Points are numbered from 0: before call 1, after call 1, before 2 …"""

    def __init__(self, run: HeldRun, verb: str, seed: int) -> None:
        self._run = run
        self._verb = verb
        self._dice = random.Random(seed)
        self._after = self._finished()
        self.tally = Tally()
        run.put_back()
        self.tally.points = 2 * run.killed((verb, run.run_id), lambda stop: False).calls
        run.disk.unmount()

    def kill_at(self, point: int) -> None:
        """Kill at this point, recover, judge."""
        self._try(point, None)

    def kill_twice(self, point: int) -> None:
        """Kill at this point, and the recovery at any of its own first calls."""
        self._try(point, int(self._dice.expovariate(1 / 40)))

    def _try(self, point: int, again: int | None) -> None:
        run = self._run
        run.put_back()
        ended = run.killed((self._verb, run.run_id), at(point))
        verbs = self._verbs(point)
        faults = self._labelled.faults()
        second: Stop | None = None
        if again is not None:
            second = run.killed((verbs[0], run.run_id), at(again)).killed_at
            self.tally.again += second is not None
            faults += self._labelled.faults()
        faults += recover(run, verbs, self._after)
        faults += judge(run, self._after, run.arrivals())
        faults += self._labelled.faults()
        self.tally.tried += ended.killed_at is not None
        self.tally.before += run.look() == run.before
        where = f"{self._verb}, point {point} ({ended.killed_at})"
        if second is not None:
            where += f", then {verbs[0]} ({second})"
        self.tally.faults += [f"{where}, recovered by {' and '.join(verbs)}: {fault}" for fault in faults]
        run.disk.unmount()

    @staticmethod
    def _verbs(point: int) -> Sequence[str]:
        # What is on the disk after call N is what is there before call N + 1: so each is recovered both ways.
        last = "discard" if point % 2 else "apply"
        return ("recover", last) if point % 4 > 1 else (last,)

    def _finished(self) -> Snapshot:
        run = self._run
        run.put_back()
        self._labelled = Labelled(run)
        said = run.verb("apply", run.run_id)
        assert said.status == 0, said.err
        after = run.look()
        assert after != run.before
        faults = judge(run, after, run.arrivals())
        faults += self._labelled.faults()
        assert faults == [], faults
        assert len(self._labelled.merged()) > MERGED
        run.disk.unmount()
        return after


class at:
    """Says yes at one point."""

    def __init__(self, point: int) -> None:
        self._number, self._entering = point // 2 + 1, point % 2 == 0

    def __call__(self, stop: Stop) -> bool:
        return stop.number == self._number and stop.entering is self._entering


def main() -> int:
    form = argparse.ArgumentParser()
    form.add_argument("verb", choices=("apply", "discard"))
    form.add_argument("--every", type=int, default=1)
    form.add_argument("--offset", type=int, default=0)
    form.add_argument("--random", type=int, default=0)
    form.add_argument("--again", type=int, default=0)
    form.add_argument("--seed", type=int, default=1)
    form.add_argument("--most", type=int, default=1_000_000)
    form.add_argument("--seconds", type=float, default=3600)
    form.add_argument("--points", type=int, nargs="*", help="these alone")
    chosen = form.parse_args()
    deadline = time.monotonic() + chosen.seconds
    try:
        run = HeldRun()
    except DiskError as error:
        print(error, file=sys.stderr)
        return CANNOT
    with run:
        series = Series(run, chosen.verb, chosen.seed)
        dice = random.Random(chosen.seed)
        count = series.tally.points
        points = list(range(chosen.offset, count, chosen.every)) if chosen.points is None else chosen.points
        # fewer than there are: evenly out of all
        points = points[:: -(-len(points) // chosen.most)]
        for point in (*points, *(dice.randrange(count) for _ in range(chosen.random))):
            if time.monotonic() < deadline:
                series.kill_at(point)
        for _ in range(chosen.again):
            if time.monotonic() < deadline:
                series.kill_twice(dice.randrange(count))
        print(json.dumps(vars(series.tally)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
