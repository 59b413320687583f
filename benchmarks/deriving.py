"""What a manifest costs: to derive it from a plan and its toolkits, to sign it, and to check it before a run.

A task of the paper's size is a handful of calls over a few of many toolkits; the longest plan that is read has 2,000.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

from benchmarks.plan import Plan
from benchmarks.rows import Goal, Row
from interlock.evidence.envelopes import sign_manifest
from interlock.evidence.keys import SigningKey
from interlock.manifest.deriving import derive
from interlock.manifest.plans import MAX_STEPS, load_plan
from interlock.manifest.plans import Plan as Planned
from interlock.manifest.statement import read_envelope, statement
from interlock.manifest.toolkits import toolkit_of
from interlock.model.system_calls import NUMBERS
from interlock.model.toolkits import (
    Access,
    HostNeed,
    Limit,
    LimitNeed,
    Needs,
    PathNeed,
    SystemCallNeed,
    Toolkit,
    ToolSpec,
)
from interlock.verify.envelopes import check_envelope

GOAL_MS = 1.0
TOOLKITS, TOOLS, CALLS = 38, 9, 40
STEPS = 6
_SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "amount": {"type": "number"},
        "body": {"type": "string"},
        "labels": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["to", "body"],
}


def deriving(plan: Plan) -> list[Row]:
    """Measure a task of six steps over three of 38 toolkits, and the longest plan."""
    rounds = plan.rounds(300, 20)
    kits, runtime = _toolkits(), _runtime()
    few, many = _planned(STEPS), _planned(MAX_STEPS)
    key = SigningKey.from_seed(b"b" * 32)
    manifest = derive(few, kits[:3], runtime=runtime)
    told = statement(manifest)
    envelope = sign_manifest(told, key)
    return [
        _row(
            f"plan/derive-{STEPS}-steps",
            lambda: derive(few, kits[:3], runtime=runtime),
            rounds,
            f"3 toolkits of {TOOLS} tools, each with {CALLS} system calls, and a runtime",
            goal=True,
        ),
        _row(
            f"plan/derive-{STEPS}-steps-of-{TOOLKITS}",
            lambda: derive(few, kits, runtime=runtime),
            rounds,
            f"the same, offered {TOOLKITS} toolkits with {TOOLKITS * TOOLS} tools: what each lacks is listed",
        ),
        _row(
            f"plan/derive-{MAX_STEPS}-steps",
            lambda: derive(many, kits[:3], runtime=runtime),
            max(3, rounds // 30),
            "the longest plan that is read",
        ),
        _row(
            "plan/sign", lambda: sign_manifest(statement(manifest), key), rounds, f"{len(envelope):,} bytes"
        ),
        _row(
            "plan/check",
            lambda: (check_envelope(envelope), read_envelope.__wrapped__(envelope)),
            rounds,
            "signature, every digest, and the manifest read",
        ),
    ]


def _row(name: str, work: Callable[[], object], rounds: int, note: str, *, goal: bool = False) -> Row:
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    worst = took[min(len(took) - 1, len(took) * 95 // 100)]
    return Row(
        name=name,
        value=statistics.median(took),
        unit="ms",
        goal=Goal(bound=GOAL_MS) if goal else None,
        note=f"{note}; {rounds} rounds, 95 % within {worst:.2f} ms",
    )


def _needs(number: int) -> Needs:
    names = sorted(NUMBERS)
    return Needs(
        system_calls=tuple(
            SystemCallNeed(name=names[(number * 7 + place) % len(names)], reason="the service's library")
            for place in range(CALLS)
        ),
        paths=(PathNeed(path=f"/usr/lib/service{number}", access=Access.READ, reason="its library"),),
        hosts=(HostNeed(host=f"service{number}.example.com", port=443, reason="the service"),),
        limits=(LimitNeed(limit=Limit.OPEN_FILES, most=64 + number, reason="connections"),),
    )


def _toolkits() -> list[Toolkit]:
    return [
        toolkit_of(
            f"service{number}",
            tuple(
                ToolSpec(
                    name=f"service{number}_tool{tool}",
                    description="Gives something to somebody. " * 4,
                    parameters=json.dumps(_SCHEMA),
                    effect="send",
                    steers=(("labels", "text"), ("to", "email")),
                    carries=("body",),
                    output=(("[].from", "email"),),
                )
                for tool in range(TOOLS)
            ),
            needs=_needs(number),
        )
        for number in range(TOOLKITS)
    ]


def _runtime() -> Toolkit:
    calls = tuple(SystemCallNeed(name=name, reason="the interpreter") for name in sorted(NUMBERS)[:60])
    return toolkit_of("runtime", (), needs=Needs(system_calls=calls))


def _planned(steps: int) -> Planned:
    listed = []
    for number in range(steps):
        parameters: dict[str, object] = {
            "to": "ann@example.com",
            "body": {"hole": {"type": "text"}},
            "amount": 12.5,
        }
        if number:
            parameters["to"] = {"hole": {"from": f"s{number}", "at": "/0/from"}}
        listed.append({"tool": f"service{number % 3}_tool{number % TOOLS}", "parameters": parameters})
    return load_plan(json.dumps({"interlock": "plan/1", "prompt": "a task", "steps": listed}), "plan")
