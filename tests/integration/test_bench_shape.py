"""`build/bench.json` keeps the shape that its readers rely on; no figure is judged here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.ground import ground
from benchmarks.plan import Plan
from benchmarks.proxy_world import HOST, Client, World, world
from benchmarks.rows import NotRun

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


@pytest.fixture(scope="module")
def far_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    try:
        with ground("root", str(tmp_path_factory.mktemp("proxy"))) as at, world(at) as standing:
            yield standing
    except NotRun as reason:
        pytest.skip(f"not run: {reason}")


def ask_everything(client: Client) -> None:
    for scheme in ("http", "https"):
        assert len(client.ask("latency", scheme, HOST, 5)) == 5
        assert len(client.ask("latency", scheme, HOST, 2, 1024)) == 2
        assert len(client.ask("fresh", scheme, HOST, 2)) == 2
        assert len(client.ask("download", scheme, HOST, 3_000_000)) == 1
        assert len(client.ask("crowd", scheme, HOST, 5, 2)) == 11
        assert len(client.ask("hold", scheme, HOST, 3)) == 1
        assert client.ask("let_go") == []


def test_the_proxys_client_measures_bare_and_behind_the_boundary(far_side: World) -> None:
    for client in (far_side.client("direct"), far_side.inside()):
        ask_everything(client)
        status, said = client.close()
        assert status == 0, said


def test_requests_that_are_not_recorded_are_no_figure(far_side: World) -> None:
    from benchmarks.proxy import check_recorded

    client = far_side.inside()
    client.ask("latency", "http", HOST, 7)
    client.close()
    check_recorded(far_side, 7)
    with pytest.raises(NotRun, match="8 requests were made and 7 recorded"):
        check_recorded(far_side, 8)


def test_a_proxys_client_that_fails_says_so(far_side: World) -> None:
    client = far_side.client("direct")
    with pytest.raises(NotRun, match="could not latency"):
        client.ask("latency", "http", "127.0.0.9", 1)
    client.close()


def test_mitmproxy_is_not_installed_unasked(far_side: World) -> None:
    from benchmarks.proxy_peer import mitmproxy

    quick = Plan(quick=True, full=False, parent="/")
    with pytest.raises(NotRun, match="left out by --quick"), mitmproxy(far_side, quick):
        pass
