"""The network boundary under load: large answers, a crowd of clients, and the memory that the monitor holds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from statistics import quantiles

from benchmarks.plan import Plan
from benchmarks.proxy_world import HOST, Client, World
from benchmarks.rounds import figure, interleaved, said
from benchmarks.rows import Goal, NotRun, Row, not_run

GOAL_SHARE = 0.5
CROWD = 200
_OPEN = 1000
_SIZES = {"10MB": 10_000_000, "1GB": 1_000_000_000}
_CLEAR_PEAK = "5"
"""What /proc/PID/clear_refs takes to forget the peak (proc_pid_clear_refs(5))."""


def loads(standing: World, plan: Plan) -> list[Row]:
    """Measure throughput, a crowd and memory."""
    rows = []
    for scheme in ("http", "https"):
        for size in _SIZES:
            name = f"proxy/{scheme}-download-{size}"
            if plan.quick and size != "10MB":
                rows.append(not_run(name, "MB/s", "left out by --quick"))
            else:
                download = partial(_download, scheme=scheme, size=size, standing=standing, plan=plan)
                rows += _tried(name, "MB/s", standing, download)
        crowd = partial(_crowd, scheme=scheme, standing=standing, plan=plan)
        rows += _tried(f"proxy/{scheme}-{CROWD}-clients", "1/s", standing, crowd)
    rows += _tried("proxy/memory", "MB", standing, partial(_memory, standing=standing))
    return rows


def _tried(name: str, unit: str, standing: World, measure: Callable[[str], list[Row]]) -> list[Row]:
    try:
        return measure(name)
    except NotRun as reason:
        return [not_run(name, unit, reason)]
    finally:
        standing.at.forget_runs()


@contextlib.contextmanager
def _pair(standing: World) -> Iterator[tuple[Client, Client]]:
    direct, inside = standing.client("direct"), standing.inside()
    try:
        yield direct, inside
    finally:
        direct.close()
        inside.close()


def _held_mb(pid: int, field: str = "VmRSS") -> float:
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        kib = next(line.split()[1] for line in status if line.startswith(f"{field}:"))
    return int(kib) * 1024 / 1e6


def _forget_peak(pid: int) -> None:
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write(_CLEAR_PEAK)


def _download(name: str, *, scheme: str, size: str, standing: World, plan: Plan) -> list[Row]:
    size_bytes = _SIZES[size]
    with _pair(standing) as (direct, inside):

        def speed(side: Client) -> Callable[[], float]:
            # Bytes in a microsecond are megabytes in a second.
            return lambda: size_bytes / side.ask("download", scheme, HOST, size_bytes)[0]

        for side in (direct, inside):
            side.ask("download", scheme, HOST, _SIZES["10MB"])
        before_mb = _held_mb(inside.pid)
        _forget_peak(inside.pid)
        rounds = plan.rounds(9) if size == "10MB" else 3
        without, within = map(figure, interleaved(speed(direct), speed(inside), rounds=rounds, warm=0))
        peak_mb = _held_mb(inside.pid, "VmHWM")
    note = f"{said(within, without)}, one answer each on a connection that is kept; "
    note += f"the monitor held {before_mb:.0f} MB before and {peak_mb:.0f} MB at its peak"
    goal = Goal(bound=GOAL_SHARE, of="ratio", at_most=False)
    return [Row(name=name, value=within.median, unit="MB/s", baseline=without.median, goal=goal, note=note)]


def _crowd(name: str, *, scheme: str, standing: World, plan: Plan) -> list[Row]:
    each = 4 if plan.quick else 20
    with _pair(standing) as (direct, inside):

        def together(side: Client) -> Callable[[], list[float]]:
            return lambda: side.ask("crowd", scheme, HOST, CROWD, each)

        both = interleaved(
            together(direct), together(inside), rounds=plan.rounds(7), warm=0 if plan.quick else 1
        )
    without, within = (figure([(len(lot) - 1) / lot[0] * 1e6 for lot in side]) for side in both)
    tails = [
        quantiles([spent for lot in side for spent in lot[1:]], n=100, method="inclusive")[98] / 1e3
        for side in both
    ]
    note = f"{said(within, without)}; {CROWD} connections at once, {each} requests each, kept alive; "
    note += "client and far side are one thread of Python each"
    return [
        Row(name=f"{name}-rate", value=within.median, unit="1/s", baseline=without.median, note=note),
        Row(name=f"{name}-p99", value=tails[1], unit="ms", baseline=tails[0]),
    ]


def _memory(name: str, *, standing: World) -> list[Row]:
    held = {}
    for scheme in ("http", "https"):
        client = standing.inside()
        try:
            client.ask("let_go")  # it stands once it answers
            started_mb = _held_mb(client.pid)
            client.ask("latency", scheme, HOST, 10)
            idle_mb = _held_mb(client.pid)
            client.ask("hold", scheme, HOST, _OPEN)
            held[scheme] = started_mb, idle_mb, _held_mb(client.pid)
        finally:
            client.close()
    started_mb, idle_mb, _ = held["http"]
    rows = [
        Row(
            name=f"{name}-idle",
            value=idle_mb,
            unit="MB",
            note=f"the monitor's, after 10 requests; {started_mb:.0f} MB before the first connection",
        )
    ]
    for scheme, (_, idle_mb, open_mb) in held.items():
        note = f"{(open_mb - idle_mb) * 1e3 / _OPEN:.0f} kB a connection, each asked once and open"
        rows.append(Row(name=f"{name}-{_OPEN}-{scheme}", value=open_mb, unit="MB", note=note))
    return rows
