"""The product as a whole, killed at its system calls or cut off from power: before or after, never between.

A commit of some twenty mixed effects with three parked requests, and a discard of the same. `make crash` tries every
point (CRASH_POINTS bounds how many each series tries, CRASH_SEED chooses what is random); `make test` tries a few.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable

import pytest
from tests.crash.conftest import SERIES
from tests.crash.kills import CANNOT
from tests.crash.tracing import can_trace

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not can_trace(),
    reason="not run: a disk of the tests' own needs root, x86_64 and ptrace",
)

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SEED = int(os.environ.get("CRASH_SEED") or random.randrange(1 << 32))
_BOUND = int(os.environ.get("CRASH_POINTS") or 100_000)
_SHARDS = 6

Tell = Callable[[str, object], None]


def series(tell: Tell, kind: str, program: str, *words: str) -> None:
    """Run a series to its end, note its tally, and fail with what went wrong."""
    print(f"CRASH_SEED={_SEED} python -m tests.crash.{program} {' '.join(words)}")
    done = subprocess.run(
        [sys.executable, "-m", f"tests.crash.{program}", *words],
        cwd=_ROOT, capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    if done.returncode == CANNOT:
        pytest.skip(f"not run: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr[-4000:]
    tally = json.loads(done.stdout)
    faults = tally.pop("faults")
    # one point may fail in several ways
    failures = len({fault.partition(", recovered")[0] for fault in faults})
    tell(SERIES, (kind, {**tally, "failures": failures}))
    assert tally["tried"] > 0
    assert faults == [], "\n".join([f"{failures} failures", *faults[:20]])


@pytest.mark.parametrize("verb", ["apply", "discard"])
def test_a_kill_at_a_few_system_calls(verb: str, record_property: Tell) -> None:
    words = ("--every", "40", "--offset", "7", "--random", "1", "--again", "1", "--seed", str(_SEED))
    series(
        record_property,
        f"SIGKILL in {verb}",
        "kills",
        verb,
        *words,
        "--most",
        "3" if verb == "apply" else "2",
    )


@pytest.mark.parametrize(("verb", "images"), [("apply", "2"), ("discard", "1"), ("run", "1")])
def test_a_loss_of_power_at_a_few_writes(verb: str, images: str, record_property: Tell) -> None:
    words = ("--weather", "busy", "--images", images, "--seed", str(_SEED))
    series(record_property, f"power lost in {verb}", "power", verb, *words)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(_SHARDS))
@pytest.mark.parametrize("verb", ["apply", "discard"])
def test_a_kill_at_every_system_call(verb: str, shard: int, record_property: Tell) -> None:
    series(
        record_property, f"SIGKILL in {verb}", "kills", verb, "--every", str(_SHARDS), "--offset", str(shard),
        "--again", str(min(20, _BOUND)), "--seed", str(_SEED + shard), "--most", str(_BOUND),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "weather", "options"),
    [
        ("apply", "quiet", ""),
        ("apply", "busy", ""),
        ("apply", "busy", "data=writeback,noauto_da_alloc"),
        ("discard", "busy", ""),
        ("run", "quiet", ""),
        ("run", "busy", "data=writeback,noauto_da_alloc"),
    ],
)
@pytest.mark.parametrize("turn", range(2))
def test_a_loss_of_power_at_any_write(
    verb: str, weather: str, options: str, turn: int, record_property: Tell
) -> None:
    images = str(min(_BOUND, 120 if verb == "apply" else 60))
    series(
        record_property, f"power lost in {verb}", "power", verb, "--weather", weather, f"--options={options}",
        "--images", images, "--again", str(min(_BOUND, 20)), "--seed", str(_SEED + turn),
    )  # fmt: skip
