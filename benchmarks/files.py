"""Small file work: the five-step cycle, and many small reads, bare and behind the boundary."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable

from benchmarks.compiling import put_load
from benchmarks.ground import Ground, ground, users
from benchmarks.plan import Plan
from benchmarks.rounds import figure, interleaved, said
from benchmarks.rows import Goal, NotRun, Row, not_run

READS = 5000
_STEPS = ("create", "write", "read", "rename", "unlink")
_OVERLAY_ALONE = (
    "mount -t overlay overlay -o lowerdir=../../staged,upperdir=upper,workdir=work,volatile merged"
    ' && cd merged && exec ./load "$@"'
)


def files(plan: Plan) -> list[Row]:
    """Measure the file cycle and small reads, for root and for an ordinary user."""
    rows = []
    for who in users():
        cycle, cold, warm = f"files/cycle/{who}", f"files/read-cold/{who}", f"files/read-warm/{who}"
        try:
            with ground(who, plan.parent) as at:
                put_load(at)
                rows.append(_cycle(cycle, at, plan))
                at.forget_runs()
                rows.extend(_reads(cold, warm, at, plan))
        except NotRun as reason:
            rows.extend(not_run(name, "us", reason) for name in (cycle, cold, warm))
    return rows


def _numbers(output: bytes) -> list[float]:
    return [float(word) for word in output.split()]


def _overlay_alone(at: Ground, *words: str) -> list[float]:
    """Run the load in a kernel overlay with nothing else of ours around it: the floor for staging."""
    folder = at.fresh()
    for name in ("upper", "work", "merged"):
        os.mkdir(os.path.join(folder, name))
    return _numbers(at.run(("unshare", "--mount", "sh", "-c", _OVERLAY_ALONE, "sh", *words), folder))


Side = Callable[[], list[float]]


def _sides(at: Ground, words: tuple[str, ...], bare: Side) -> list[Side]:
    """Return what is measured in turn: bare, inside, and the overlay alone where it can be mounted."""
    sides = [bare, lambda: _numbers(at.inside("./load", *words))]
    if at.uid == 0 and shutil.which("unshare") is not None:
        with contextlib.suppress(NotRun):
            _overlay_alone(at, *words)
            sides.append(lambda: _overlay_alone(at, *words))
    return sides


def _cycle(name: str, at: Ground, plan: Plan) -> Row:
    words = ("cycle", "200" if plan.quick else "1000")
    bare, inside, *floor = interleaved(
        *_sides(at, words, lambda: _numbers(at.run((os.path.join(at.bare, "load"), *words), at.fresh()))),
        rounds=plan.rounds(15),
    )
    without, within = figure([one[0] for one in bare]), figure([one[0] for one in inside])
    events = at.last_run()["reads_lost"]
    note = f"{said(within, without)}, {words[1]} cycles each; file events: {events or 'recorded'}"
    steps = [
        f"{step} {figure([one[place] for one in inside]).median:.1f}"
        f" ({figure([one[place] for one in bare]).median:.1f} bare)"
        for place, step in enumerate(_STEPS, 1)
    ]
    note += f"\nus by step: {', '.join(steps)}"
    for alone in floor:
        middle = figure([one[0] for one in alone]).median
        note += f"\na kernel overlay with nothing around it: {middle:.1f} us, x{middle / without.median:.2f}"
    return Row(
        name=name,
        value=within.median,
        unit="us",
        baseline=without.median,
        goal=Goal(bound=2.0, of="ratio"),
        note=note,
    )


def _reads(cold: str, warm: str, at: Ground, plan: Plan) -> list[Row]:
    count = READS // 10 if plan.quick else READS
    for folder in at.sides:
        at.run(("./load", "make", "small", str(count)), folder)
    words = ("read", "small", str(count))
    bare, inside, *floor = interleaved(
        *_sides(at, words, lambda: _numbers(at.on_bare("./load", *words))), rounds=plan.rounds(9)
    )
    rows = []
    for place, name in enumerate((cold, warm)):
        without, within = figure([one[place] for one in bare]), figure([one[place] for one in inside])
        note = f"{said(within, without)}, {count:,} files of 2 KB; open + read + close, "
        note += "first time in this view, bytes in the page cache" if name == cold else "again"
        for alone in floor:
            note += f"; overlay alone {figure([one[place] for one in alone]).median:.1f} us"
        rows.append(Row(name=name, value=within.median, unit="us", baseline=without.median, note=note))
    return rows
