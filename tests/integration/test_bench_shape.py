"""`build/bench.json` keeps the shape that its readers rely on; no figure is judged here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TYPES: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "value": (int, float, type(None)),
    "unit": (str,),
    "baseline": (int, float, type(None)),
    "ratio": (int, float, type(None)),
    "goal": (str, type(None)),
    "met": (bool, type(None)),
    "note": (str,),
}


def run_benchmarks(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def ledger_rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("bench")
    out = folder / "made" / "bench.json"
    done = run_benchmarks("--quick", "--only", "ledger", "--in", str(folder), "--out", str(out))
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text(encoding="utf-8"))
    assert isinstance(rows, list)
    for row in rows:
        assert row["name"] in done.stdout, "the table lacks a row of the file"
    assert [item.name for item in folder.iterdir()] == ["made"], "the benchmark left something behind"
    return rows


def test_every_row_has_every_field_in_its_type(ledger_rows: list[dict[str, Any]]) -> None:
    for row in ledger_rows:
        assert list(row) == list(TYPES)
        for field, types in TYPES.items():
            assert isinstance(row[field], types), f"{row['name']}: {field} is {row[field]!r}"


def test_the_ledger_has_its_rows(ledger_rows: list[dict[str, Any]]) -> None:
    names = [row["name"] for row in ledger_rows]
    assert names == ["ledger/write", "ledger/verify", "ledger/10-node-build", "ledger/10-node-durable"]
    measured = [row for row in ledger_rows if not row["note"].startswith("not run: ")]
    assert {"ledger/write", "ledger/verify", "ledger/10-node-durable"} <= {row["name"] for row in measured}
    for row in measured:
        assert row["value"] > 0


def test_ratio_goal_and_met_follow_from_the_figures(ledger_rows: list[dict[str, Any]]) -> None:
    for row in ledger_rows:
        assert (row["ratio"] is None) == (row["baseline"] is None or row["value"] is None)
        if row["ratio"] is not None:
            assert row["ratio"] == pytest.approx(row["value"] / row["baseline"], rel=0.01)
        assert (row["met"] is None) == (row["goal"] is None or row["value"] is None)


def test_an_unknown_benchmark_is_refused() -> None:
    done = run_benchmarks("--only", "nothing")
    assert done.returncode == 2
    assert "nothing" in done.stderr
