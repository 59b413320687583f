"""The model lens: how fast a streamed text passes the audit, what an event of it costs, and how long a call is held.

All in one process, without a network; processor time.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from functools import partial

from tests.fakes.model_answers import WIRES, Call, Text, events, stream

from benchmarks.plan import Plan
from benchmarks.rounds import figure, interleaved
from benchmarks.rows import Goal, Row
from interlock.boundary.lens.auditing import AnswerAudit

GOAL_MB_S = 5.0
GOAL_CALL_MS = 50.0
_WORDS = "some words of a long answer, and more of them; "
_PARTS = 1_000
CROWD = 200
"""Streams at once."""


def lens(plan: Plan) -> list[Row]:
    """Measure a long text, a call in 1,000 parts, and the memory of many streams, on each wire."""
    rounds = plan.rounds(9, 3)
    rows = []
    for wire in WIRES:
        told = events(wire, [Text(_WORDS * (100 if plan.quick else 1_000))])
        text = stream(wire, told)
        call = stream(wire, events(wire, [Call("c1", "write", {"text": "x" * _PARTS}, 1)]))

        measures = [partial(_heard, wire, data) for data in (text, call)]
        passing, holding = map(figure, interleaved(*measures, rounds=rounds, warm=1))
        rows.append(
            Row(
                name=f"lens/{wire}/text",
                value=len(text) / passing.median / 1e6,
                unit="MB/s",
                goal=Goal(bound=GOAL_MB_S, at_most=False),
                note=f"{len(told):,} events of {len(text) // len(told)} bytes, "
                f"{passing.median / len(told) * 1e6:.0f} us each, in chunks of 1,400 bytes",
            )
        )
        rows.append(
            Row(
                name=f"lens/{wire}/call-in-{_PARTS}-parts",
                value=holding.median * 1000,
                unit="ms",
                goal=Goal(bound=GOAL_CALL_MS) if wire != "gemini" else None,
                note="read, held and told, verdicts not counted"
                + ("; this wire has no parts" if wire == "gemini" else ""),
            )
        )
    return [*rows, _crowd()]


def _heard(wire: str, data: bytes) -> float:
    began = time.process_time()
    audit = AnswerAudit(wire, b"{}")
    for at in range(0, len(data), 1400):
        audit.feed(data[at : at + 1400])
    audit.finish()
    return time.process_time() - began


def _crowd() -> Row:
    """Measure what many streams hold in the middle of a call."""
    wire = "anthropic"
    data = stream(wire, events(wire, [Text(_WORDS * 20), Call("c1", "write", {"text": "x" * 5_000}, 10)]))
    request = json.dumps({"messages": []}).encode()
    tracemalloc.start()
    audits = [AnswerAudit(wire, request) for _ in range(CROWD)]
    for at in range(0, len(data), 1400):
        for audit in audits:
            audit.feed(data[at : at + 1400])
    held, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Row(
        name=f"lens/{CROWD}-streams",
        value=held / CROWD / 1000,
        unit="kB/stream",
        note=f"each holds a call of 5,000 characters in 500 events, {len(data) // 1000} kB on the wire",
    )
