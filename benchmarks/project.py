"""A project's ordinary work behind the boundary: clone, status, tests, removal."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

from benchmarks.ground import Ground, ground
from benchmarks.plan import Plan
from benchmarks.rounds import figure, interleaved, said
from benchmarks.rows import Goal, NotRun, Row, not_run

MODULES = 400
TEST_FILES = 20
TESTS_A_FILE = 10
_PARTS = ("clone", "5 status", "pytest", "rm")
_WORKLOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workload.py")
_AS_SOMEONE = (
    "-c",
    "user.name=Bench",
    "-c",
    "user.email=bench@example.invalid",
    "-c",
    "commit.gpgsign=false",
)


def project(plan: Plan) -> list[Row]:
    """Measure the workload for the user who runs the benchmarks: the work alone, then start and gate too."""
    who = "root" if os.geteuid() == 0 else "user"
    names = f"project/work/{who}", f"project/whole/{who}"
    try:
        with ground(who, plan.parent) as at:
            if shutil.which("git", path=at.environment()["PATH"]) is None:
                raise NotRun("no git; install it (Debian: apt-get install git)")
            _prepare(at)
            return _measure(names, at, _exposing(at), plan)
    except NotRun as reason:
        return [not_run(name, "ms", reason) for name in names]


def _prepare(at: Ground) -> None:
    """Make the repository that is cloned, in both sides' folders."""
    made = os.path.join(at.base, "made")
    os.makedirs(os.path.join(made, "package"))
    os.makedirs(os.path.join(made, "tests"))
    for number in range(MODULES):
        lines = [f"def value_{line}():\n    return {number} + {line}\n" for line in range(20)]
        _put(os.path.join(made, "package", f"module_{number}.py"), "\n\n".join(lines))
    _put(os.path.join(made, "package", "__init__.py"), "")
    _put(os.path.join(made, "pyproject.toml"), "[tool.pytest.ini_options]\npythonpath = ['.']\n")
    for number in range(TEST_FILES):
        text = f"from package import module_{number}\n"
        for test in range(TESTS_A_FILE):
            text += (
                f"\n\ndef test_{test}(tmp_path):\n"
                f"    (tmp_path / 'out').write_text(str(module_{number}.value_{test}()))\n"
                f"    assert (tmp_path / 'out').read_text() == '{number + test}'\n"
            )
        _put(os.path.join(made, "tests", f"test_{number}.py"), text)
    at.give(made)
    at.run(("git", "init", "-q", "-b", "main"), made)
    at.run(("git", "add", "."), made)
    at.run(("git", *_AS_SOMEONE, "commit", "-q", "-m", "All of it"), made)
    for folder in at.sides:
        at.run(
            ("git", "clone", "-q", "--bare", "--no-hardlinks", made, os.path.join(folder, "origin.git")),
            at.base,
        )
        shutil.copy(_WORKLOAD, os.path.join(folder, "workload.py"))
    at.give(*at.sides)


def _put(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _exposing(at: Ground) -> tuple[str, ...]:
    """Return the options under which this Python and its pytest are visible inside.

    An interpreter in another user's home is hidden by default; the policy may name its folder.
    """
    probe = (sys.executable, "-c", "import pytest")
    try:
        at.inside(*probe)
    except NotRun:
        policy = os.path.join(at.base, "policy.yaml")
        places = json.dumps(sorted({sys.prefix, sys.base_prefix}))
        _put(policy, f"version: 1\npreset: coding\nsandbox: {{expose: {places}}}\n")
        options = ("--policy", policy)
        at.inside(*probe, options=options)
        return options
    return ()


def _measure(names: tuple[str, str], at: Ground, options: tuple[str, ...], plan: Plan) -> list[Row]:
    def argv(folder: str) -> tuple[str, ...]:
        return sys.executable, os.path.join(folder, "workload.py"), f"file://{folder}/origin.git"

    def bare() -> dict[str, float]:
        folder = at.fresh()
        began = time.perf_counter()
        return _told(at.run(argv(at.bare), folder), began)

    def inside() -> dict[str, float]:
        began = time.perf_counter()
        told = _told(at.inside(*argv(at.workspace), options=options), began)
        at.forget_runs()
        return told

    without, within = interleaved(bare, inside, rounds=plan.rounds(7))
    rows = []
    for name, key, goal in zip(
        names, ("whole", "process"), (Goal(bound=1.15, of="ratio"), None), strict=True
    ):
        base, ours = figure([one[key] for one in without]), figure([one[key] for one in within])
        note = said(ours, base)
        if key == "whole":
            parts = [
                f"{part} {figure([one[part] for one in within]).median:.0f}"
                f" ({figure([one[part] for one in without]).median:.0f} bare)"
                for part in _PARTS
            ]
            note += f"; {MODULES} modules, {TEST_FILES * TESTS_A_FILE} tests, timed inside"
            note += f"\nms by part: {', '.join(parts)}"
        else:
            note += "; the same with Interlock's start, gate and seal"
        if options:
            note += "; with a policy that shows this Python, which lies in a hidden folder"
        rows.append(Row(name=name, value=ours.median, unit="ms", baseline=base.median, goal=goal, note=note))
    return rows


def _told(output: bytes, began: float) -> dict[str, float]:
    process_ms = (time.perf_counter() - began) * 1e3
    told: dict[str, float] = json.loads(output.splitlines()[-1])
    return {**told, "process": process_ms}
