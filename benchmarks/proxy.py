"""The network boundary: what a request costs behind it, beside the same client with nothing around it.

Both stand in one small world (proxy_world.py) and are measured in turn. Every request inside is decided by the
policy's rules and recorded in the ledger, as in any run.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.ground import REPOSITORY, ground
from benchmarks.plan import Plan
from benchmarks.proxy_loads import loads
from benchmarks.proxy_peer import mitmproxy
from benchmarks.proxy_world import HOST, Client, World, world
from benchmarks.rounds import figure, interleaved, said
from benchmarks.rows import Goal, NotRun, Row, not_run

GOALS_US = {"http": 170.0, "https": 130.0}
"""What the quickest peer adds to a request that is kept alive."""
LIMIT_US = 300.0
NOISY_STEAL = 0.03
"""A share of the time that the host of this virtual machine kept for others; no load average shows it."""
_WARM = 200
_BODY_BYTES = 1024
_STAGES = "benchmarks.proxy_stages"

Measure = Callable[[], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Clients that are measured in turn. Takes: `peer`, None where it is not to be had, and `why`."""

    direct: Client
    inside: Client
    peer: Client | None
    why: str
    version: str

    @property
    def all(self) -> tuple[Client, ...]:
        """Return the sides in the order of their turns."""
        return (self.direct, self.inside, *((self.peer,) if self.peer is not None else ()))


def proxy(plan: Plan) -> list[Row]:
    """Measure requests, new connections, downloads, a crowd and memory."""
    try:
        with ground("root", plan.parent) as at, world(at) as standing:
            with contextlib.ExitStack() as peers:
                peer, why, version = None, "", ""
                try:
                    peer, version = peers.enter_context(mitmproxy(standing, plan))
                except NotRun as reason:
                    why = str(reason)
                rows = _with_sides(standing, plan, peer, why, version)
            return [*rows, *loads(standing, plan)]
    except NotRun as reason:
        return [not_run("proxy", "us", reason)]


@contextlib.contextmanager
def _sides(standing: World, peer: Client | None, why: str, version: str) -> Iterator[Sides]:
    direct, inside = standing.client("direct"), standing.inside()
    try:
        yield Sides(direct=direct, inside=inside, peer=peer, why=why, version=version)
    finally:
        direct.close()
        inside.close()


def _with_sides(standing: World, plan: Plan, peer: Client | None, why: str, version: str) -> list[Row]:
    rows: list[Row] = []
    for scheme in GOALS_US:
        for name, measure in (
            (f"proxy/{scheme}-added", _kept_alive),
            (f"proxy/{scheme}-post-added", _posts),
        ):
            try:
                with _sides(standing, peer, why, version) as sides:
                    rows.extend(measure(name, scheme, sides, standing, plan))
            except NotRun as reason:
                rows.append(not_run(f"{name}-p50", "us", reason))
            standing.at.forget_runs()
    try:
        with _sides(standing, peer, why, version) as sides:
            rows.extend(_new_connections("proxy/https-new", sides, plan))
    except NotRun as reason:
        rows.append(not_run("proxy/https-new", "us", reason))
    standing.at.forget_runs()
    return rows


def _lots(
    sides: tuple[Client, ...], verb: str, words: tuple[object, ...], rounds: int
) -> list[list[list[float]]]:
    """Return per side, per round, the time of each request."""

    def lot(side: Client) -> Callable[[], list[float]]:
        return lambda: side.ask(verb, *words)

    return interleaved(*(lot(side) for side in sides), rounds=rounds)


def _added(lots: list[list[list[float]]], place: int) -> list[float]:
    """Return by how much a side's median lies above the direct one's, round by round."""
    return [median(theirs) - median(direct) for theirs, direct in zip(lots[place], lots[0], strict=True)]


def _tail(lots: list[list[float]]) -> float:
    return quantiles([spent for lot in lots for spent in lot], n=100, method="inclusive")[98]


def _medians(lots: list[list[float]]) -> float:
    return median(median(lot) for lot in lots)


def _kept_alive(name: str, scheme: str, sides: Sides, standing: World, plan: Plan) -> list[Row]:
    count, rounds = (50 if plan.quick else 400), plan.rounds(15)
    for side in sides.all:
        side.ask("latency", scheme, HOST, _WARM)
    before_us, machine = sides.inside.cpu_us(), _machine_time()
    lots = _lots(sides.all, "latency", (scheme, HOST, count), rounds)
    used_us = (sides.inside.cpu_us() - before_us) / (count * (rounds + 1))
    stolen = _stolen_since(machine)
    sides.inside.close()
    check_recorded(standing, _WARM + count * (rounds + 1))
    ours = figure(_added(lots, 1))
    note = f"{said(ours)}, {count} requests each, answers of 1 KB; direct {_medians(lots[0]):.0f} us, "
    note += f"ours {_medians(lots[1]):.0f} us; at most {LIMIT_US:g} us: {'yes' if ours.median <= LIMIT_US else 'NO'}"
    note += f"; the monitor's processor time {used_us:.0f} us a request"
    note += (
        f"; {stolen:.0%} of the processors' time went to other machines: noisy"
        if stolen > NOISY_STEAL
        else ""
    )
    note += f"\n{_stages(scheme, standing, plan, direct_us=_medians(lots[0]))}"
    tails = [_tail(side) for side in lots]
    rows = [
        Row(name=f"{name}-p50", value=ours.median, unit="us", goal=Goal(bound=GOALS_US[scheme]), note=note),
        Row(
            name=f"{name}-p99",
            value=tails[1] - tails[0],
            unit="us",
            note=f"of all {count * rounds:,} requests: direct {tails[0]:.0f} us, ours {tails[1]:.0f} us",
        ),
    ]
    if sides.peer is None:
        return [*rows, not_run(f"{name}-p50/mitmproxy", "us", sides.why)]
    theirs = figure(_added(lots, 2))
    note = (
        f"{said(theirs)}; mitmproxy {sides.version} as shipped, a regular proxy; {_medians(lots[2]):.0f} us"
    )
    rows.append(Row(name=f"{name}-p50/mitmproxy", value=theirs.median, unit="us", note=note))
    rows.append(Row(name=f"{name}-p99/mitmproxy", value=tails[2] - tails[0], unit="us"))
    return rows


def _machine_time() -> tuple[int, int]:
    """Return all time of the processors so far, and what of it was stolen (proc_stat(5))."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    return sum(fields), fields[7]


def _stolen_since(before: tuple[int, int]) -> float:
    now = _machine_time()
    return (now[1] - before[1]) / max(1, now[0] - before[0])


def check_recorded(standing: World, requests: int) -> None:
    """See that each request was decided and recorded. Raises: NotRun: it would be no measure of the product."""
    sent = sum(effect["fate"] == "sent" for effect in standing.at.last_run()["effects"])
    if sent != requests:
        raise NotRun(f"{requests:,} requests were made and {sent:,} recorded")


def _posts(name: str, scheme: str, sides: Sides, standing: World, plan: Plan) -> list[Row]:
    count, rounds = (20 if plan.quick else 50), plan.rounds(9)
    both = (sides.direct, sides.inside)
    lots = _lots(both, "latency", (scheme, HOST, count, _BODY_BYTES), rounds)
    ours = figure(_added(lots, 1))
    note = f"{said(ours)}, {count} POSTs of 1 KB each; the intent is on the disk before one leaves, "
    note += f"where a bare write + fdatasync of 1 KB takes {_sync_us(standing):.0f} us; "
    note += f"direct {_medians(lots[0]):.0f} us"
    return [Row(name=f"{name}-p50", value=ours.median, unit="us", note=note)]


def _sync_us(standing: World) -> float:
    """Return how long the disk below the state folder takes for a small append. Returns: microseconds."""
    times_ns = []
    with tempfile.TemporaryFile(dir=standing.at.base) as file:
        for _ in range(50):
            began_ns = time.perf_counter_ns()
            os.write(file.fileno(), bytes(1024))
            os.fdatasync(file.fileno())
            times_ns.append(time.perf_counter_ns() - began_ns)
    return median(times_ns) / 1e3


def _new_connections(name: str, sides: Sides, plan: Plan) -> list[Row]:
    count, rounds = (5 if plan.quick else 30), plan.rounds(9)
    lots = _lots(sides.all, "fresh", ("https", HOST, count), rounds)
    figures = [figure([median(lot) for lot in side]) for side in lots]
    note = f"{said(figures[1], figures[0])}, {count} each: name, TCP, TLS, one request, nothing resumed by the client"
    rows = [Row(name=name, value=figures[1].median, unit="us", baseline=figures[0].median, note=note)]
    if sides.peer is None:
        return [*rows, not_run(f"{name}/mitmproxy", "us", sides.why)]
    theirs = Row(
        name=f"{name}/mitmproxy",
        value=figures[2].median,
        unit="us",
        baseline=figures[0].median,
        note=said(figures[2]),
    )
    return [*rows, theirs]


def _stages(scheme: str, standing: World, plan: Plan, *, direct_us: float) -> str:
    """Tell where a request's time goes, by runs of their own."""
    count = 100 if plan.quick else 2000
    try:
        alone = _staged(scheme, standing, "alone", count)
        clocked = _staged(scheme, standing, "clock", count)
    except NotRun as reason:
        return f"stages not run: {reason}"
    proxy_us = alone[0] - direct_us
    parts = ", ".join(f"{stage} {spent:.0f}" for stage, spent in clocked[1].items() if stage != "rest")
    return (
        f"us by stage: proxy alone, its gate answering at once, {proxy_us:.0f} added; in its process {parts}"
    )


def _staged(scheme: str, standing: World, how: str, count: int) -> tuple[float, dict[str, float]]:
    """Run the client behind proxy_stages.py. Returns: the median of a request, and the stages' times."""
    at = standing.at
    path = os.pathsep.join((REPOSITORY, at.environment().get("PYTHONPATH", "")))
    words = ("run", "--policy", standing.policy(), "--oracle", "strict", "--")
    before = (at.interpreter, "-P", "-m", _STAGES, how, str(_WARM), str(count), *words)
    client = standing.client(how, *before, extra={"PYTHONPATH": path})
    try:
        client.ask("latency", scheme, HOST, _WARM)
        times = client.ask("latency", scheme, HOST, count)
        stages: dict[str, float] = {}
        if how == "clock":
            # The clock is read when the next request comes.
            client.ask("latency", scheme, HOST, 1)
            stages = client.told[-1]
        return median(times), stages
    finally:
        client.close()
