"""A held run applied, discarded or made, and the power lost: the disk as it then is, recovered and judged.

What reached the disk is recorded write by write. A loss of power at a point leaves the writes before it up to the
last flush, and of those after the flush any part. ext4 is real, and so is what it makes of that.

A process of a stranger may sync files of its own on the same disk: it makes ext4 commit all metadata at that moment,
without the data of files that nobody synced (sizes of zero where there should be bytes). That is the hard weather.

A program of its own, as `tests.crash.kills` is:
    python -m tests.crash.power apply|discard|run [--weather quiet|busy] [--images N] [--again N] [--seed S] …
"""

import argparse
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.crash.disk import DiskError, Write, image_after
from tests.crash.far_side import Arrival
from tests.crash.held_run import HeldRun
from tests.crash.judging import between, judge, recover
from tests.crash.kills import CANNOT, Tally
from tests.crash.labelled import Labelled
from tests.crash.tracing import Stop, die_with_parent
from tests.fakes.staged_tree import Snapshot

_OPEN_PHASES = ("held", "listing", "deferred", "running")


@dataclass(frozen=True, kw_only=True)
class Past:
    """What a verb did, as the disk and the far side saw it. Takes: `base`, the disk before it."""

    base: bytes
    writes: Sequence[Write]
    arrivals: Sequence[Arrival]

    def cuts(self) -> list[int]:
        """Return the ends of the intervals between flushes, the last being the end."""
        flushes = [number for number, write in enumerate(self.writes) if write.content is None]
        return [*flushes, len(self.writes)]

    def cut(self, at: int, dice: random.Random | None) -> "Past":
        """Return the past of a machine that lost its power when it had written so much."""
        return Past(
            base=image_after(self.base, self.writes[:at], dice),
            writes=(),
            arrivals=[arrival for arrival in self.arrivals if arrival.position <= at],
        )


class Losses:
    """One verb, with the power lost while it works."""

    def __init__(self, run: HeldRun, verb: str, weather: str, seed: int) -> None:
        self._run = run
        self._busy = weather == "busy"
        self._dice = random.Random(seed)
        self._verb = verb
        self.tally = Tally()
        self._after = self._finished()
        self._past = self._recorded(Past(base=run.base, writes=(), arrivals=()), verb)
        self.cuts = self._past.cuts()
        self.tally.points = len(self.cuts)

    def lose(self, number: int, *, whole: bool) -> None:
        """Lose the power at the end of an interval between two flushes, or inside of it; recover, judge."""
        cut, dice, where = self._chosen(self._past, number, whole=whole)
        self._judged(self._past.cut(cut, dice), number, where)

    def lose_twice(self, number: int) -> None:
        """Lose the power, and once more while the run is recovered."""
        cut, dice, where = self._chosen(self._past, number, whole=False)
        verb = self._verbs(number)[0]
        past = self._recorded(self._past.cut(cut, dice), verb)
        second = self._dice.randrange(len(past.cuts()))
        cut, dice, again = self._chosen(past, second, whole=False)
        self.tally.again += 1
        self._judged(past.cut(cut, dice), number, f"{where}, then in {verb} {again}")

    def _chosen(self, past: Past, number: int, *, whole: bool) -> tuple[int, random.Random | None, str]:
        cuts = past.cuts()
        end = cuts[number]
        begin = cuts[number - 1] + 1 if number else 0
        if whole or end <= begin:
            return end, None, f"at write {end}"
        cut, seed = self._dice.randrange(begin, end) + 1, self._dice.getrandbits(32)
        return cut, random.Random(seed), f"at write {cut}, parts lost by seed {seed}"

    def _judged(self, past: Past, number: int, where: str) -> None:
        run = self._run
        verbs = self._verbs(number)
        run.disk.restore(past.base)
        try:
            run.disk.mount()
        except OSError as error:
            self.tally.faults.append(f"{self._verb}, {where}: {error}")
            return
        run.arrivals()
        faults = between_phases(run) + self._labelled.faults()
        faults += recover(run, verbs, self._after)
        faults += judge(run, self._after, [*past.arrivals, *run.arrivals()])
        faults += self._labelled.faults()
        self.tally.tried += 1
        self.tally.before += run.look() == run.before
        told = f"{self._verb}, power lost {where}, recovered by {' and '.join(verbs)}"
        self.tally.faults += [f"{told}: {fault}" for fault in faults]
        run.disk.unmount()

    @staticmethod
    def _verbs(number: int) -> Sequence[str]:
        return (("apply",), ("discard",), ("recover", "apply"), ("recover", "discard"))[number % 4]

    def _recorded(self, past: Past, verb: str) -> Past:
        """Go on from a past by a verb, and return the past that this makes."""
        run = self._run
        run.disk.restore(past.base)
        run.disk.record()
        run.disk.mount()
        run.arrivals()
        run.killed((verb, run.run_id), self._stranger() if self._busy else lambda stop: False)
        came = run.arrivals()
        count = run.disk.position()
        run.disk.unmount()
        earlier = [Arrival(arrival.path, 0) for arrival in past.arrivals]
        return Past(base=past.base, writes=run.disk.recorded()[:count], arrivals=[*earlier, *came])

    def _stranger(self) -> Callable[[Stop], bool]:
        def syncs(stop: Stop) -> bool:
            if not stop.entering:
                sync_a_file(self._run.top)
            return False

        return syncs

    def _finished(self) -> Snapshot:
        run = self._run
        run.put_back()
        self._labelled = Labelled(run)
        assert run.verb("apply", run.run_id).status == 0
        after = run.look()
        run.disk.unmount()
        return after


class Makings:
    """A run made, and the power lost while it is, or right after it said that it is held."""

    def __init__(self, weather: str, seed: int, options: str) -> None:
        self.tally = Tally()
        self._dice = random.Random(seed)
        self._run = HeldRun(options, hold=False)
        run = self._run
        run.disk.restore(run.base)
        run.disk.record()
        run.disk.mount()
        with _stranger_beside(run.top) if weather == "busy" else _nobody():
            run.hold()
        count = run.disk.position()
        held = run.verb("apply", run.run_id)
        assert held.status == 0, held.err
        self._after = run.look()
        assert self._after != run.before
        run.disk.unmount()
        self._past = Past(base=run.base, writes=run.disk.recorded()[:count], arrivals=())
        self.cuts = self._past.cuts()
        self.tally.points = len(self.cuts)

    def lose_when_held(self) -> None:
        """Lose the power with nothing written since the last flush: what was held is there, whole."""
        run = self._run
        self._lose(self.cuts[-2], None)
        said = run.verb("apply", run.run_id)
        if said.status != 0 or run.look() != self._after:
            self._fault(
                "after it was held", f"applied: {said.status} {said.err!r} {between(run, self._after)}"
            )
        run.disk.unmount()

    def lose(self, number: int) -> None:
        """Lose the power while the run is made: it can be dropped, and the workspace is as before."""
        run = self._run
        end, begin = self.cuts[number], self.cuts[number - 1] + 1 if number else 0
        cut = self._dice.randrange(begin, end) + 1 if end > begin else end
        self._lose(cut, random.Random(self._dice.getrandbits(32)))
        folder = f"{run.top}/state/runs/{run.run_id}"
        began = cut >= run.began
        if os.path.isdir(folder):
            said = run.verb("discard", run.run_id)
            # what never began may not be worth a run; once the command runs, everything can be taken up
            if said.status not in ((0,) if began else (0, 2, 4)):
                self._fault(f"at write {cut}", f"discard ended with {said.status}: {said.err[:500]!r}")
        elif began:
            self._fault(f"at write {cut}", "the command began, and its run is gone")
        run.verb("runs", "--clean")
        left = {"stage", "scratch", "net"} & set(os.listdir(folder) if os.path.isdir(folder) else [])
        if left or run.look() != run.before:
            self._fault(f"at write {cut}", f"discarded: left {left}, {between(run, run.before)}")
        if came := run.arrivals():
            self._fault(f"at write {cut}", f"{came} was sent")
        run.disk.unmount()

    def _lose(self, cut: int, dice: random.Random | None) -> None:
        run = self._run
        run.disk.restore(self._past.cut(cut, dice).base)
        run.disk.mount()
        run.arrivals()
        self.tally.tried += 1

    def _fault(self, where: str, what: str) -> None:
        self.tally.faults.append(f"run, power lost {where}: {what}")

    def close(self) -> None:
        self._run.close()


def between_phases(run: HeldRun) -> list[str]:
    """Return a fault if the host was changed by what the ledger holds no intent of."""
    if run.look() == run.before:
        return []
    phase = run.phase()
    return [f"the host is changed, and the ledger says {phase}"] if phase in _OPEN_PHASES else []


def sync_a_file(top: str) -> None:
    """Do as any other program on the machine may: make a file of its own durable."""
    descriptor = os.open(f"{top}/stranger", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, os.urandom(8), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _stranger_beside(top: str) -> Iterator[None]:
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent()
            while True:
                sync_a_file(top)
                time.sleep(0.004)
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@contextmanager
def _nobody() -> Iterator[None]:
    yield


def main() -> int:
    form = argparse.ArgumentParser()
    form.add_argument("verb", choices=("apply", "discard", "run"))
    form.add_argument("--weather", choices=("quiet", "busy"), default="quiet")
    form.add_argument("--options", default="")
    form.add_argument("--images", type=int, default=10)
    form.add_argument("--again", type=int, default=0)
    form.add_argument("--seed", type=int, default=1)
    form.add_argument("--seconds", type=float, default=3600)
    chosen = form.parse_args()
    deadline = time.monotonic() + chosen.seconds
    dice = random.Random(chosen.seed)
    try:
        if chosen.verb == "run":
            tally = _makings(chosen, dice, deadline)
        else:
            with HeldRun(chosen.options) as run:
                losses = Losses(run, chosen.verb, chosen.weather, chosen.seed)
                for turn, number in enumerate(spread(len(losses.cuts), chosen.images, dice)):
                    if time.monotonic() < deadline:
                        losses.lose(number, whole=turn % 3 == 0)
                for _ in range(chosen.again):
                    if time.monotonic() < deadline:
                        losses.lose_twice(dice.randrange(len(losses.cuts)))
                tally = losses.tally
    except DiskError as error:
        print(error, file=sys.stderr)
        return CANNOT
    print(json.dumps(vars(tally)))
    return 0


def _makings(chosen: argparse.Namespace, dice: random.Random, deadline: float) -> Tally:
    makings = Makings(chosen.weather, chosen.seed, chosen.options)
    try:
        makings.lose_when_held()
        for number in spread(len(makings.cuts), chosen.images, dice):
            if time.monotonic() < deadline:
                makings.lose(number)
    finally:
        makings.close()
    return makings.tally


def spread(count: int, wanted: int, dice: random.Random) -> list[int]:
    """Return as many of the numbers below `count` as are wanted, one at random out of each equal part."""
    if wanted <= 0:
        return []
    return [min(count - 1, int((place + dice.random()) * count / wanted)) for place in range(wanted)]


if __name__ == "__main__":
    sys.exit(main())
