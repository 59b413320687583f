"""The label store's writer, killed at any moment: each merge's labels are all there or none, and nothing reads as damaged."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from tests.unit.test_runtime_label_rows import row

from interlock.runtime.label_rows import read_rows, write_rows

BATCH = 40
KILLS = 25


def _writes_for_ever(file: str, begin: int) -> None:
    try:
        batch = begin
        while True:
            write_rows(file, [row(f"/w/{batch:06}/{number}", at_ns=batch + 1) for number in range(BATCH)])
            batch += 1
    finally:
        os._exit(1)


def test_a_killed_writer_leaves_whole_merges_alone(tmp_path: Path) -> None:
    file = str(tmp_path / "labels" / "places.sqlite")
    dice = random.Random(7)
    begin = 0
    for _ in range(KILLS):
        child = os.fork()
        if child == 0:
            _writes_for_ever(file, begin)
        time.sleep(dice.uniform(0.001, 0.04))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not os.path.exists(file):
            continue
        lost, rows = read_rows(file, "/w", whole=True, everything=True)
        assert lost == ""
        batches: dict[str, int] = {}
        for one in rows:
            name = one.path.split("/")[2]
            batches[name] = batches.get(name, 0) + 1
        assert set(batches.values()) <= {BATCH}
        assert sorted(batches) == [f"{number:06}" for number in range(len(batches))]
        begin = len(batches)
    assert begin
