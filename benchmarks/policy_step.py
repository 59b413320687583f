"""The policy step: a request or a tool's call is characterised and decided, Cedar included, over many trusted values.

The values are mail addresses and URLs in files that the policy trusts. One step in four is of each kind: a call and a
request whose value a file names, and a call and a request whose value none does.
"""

from __future__ import annotations

import gc
import json
import random
import time
from dataclasses import dataclass

from benchmarks.plan import Plan
from benchmarks.rows import Goal, Row
from interlock import policy as room
from interlock.model.events import FileRead
from interlock.model.places import Place
from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision
from interlock.policy.provenance import Knowledge
from interlock.policy.rules import evaluate, rules_of

SIZES = (1_000, 10_000, 100_000, 1_000_000)
GOAL_US = 60.0
GOAL_P99_US = 500.0
GOAL_MB_S = 20.0
_A_FILE = 20_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_POLICY = """\
version: 1
trusted:
  - task: true
  - {file: "**"}
network: {hosts: [{host: docs.example.com}]}
tools:
  write_mail: {effect: send, steers: {to: email}, carries: [text], asks: [send], output: {echo: true}}
cedar: |
  @id("vouched")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """Takes: `times`, of each kind of step, in microseconds, sorted."""

    values: int
    times: dict[str, list[float]]
    mb_per_second: float
    bytes_a_value: float
    text_a_value: float

    def at(self, share: float) -> float:
        """Return the time within which this share of all steps is done."""
        return _at(sorted(time for times in self.times.values() for time in times), share)


def policy_step(plan: Plan) -> list[Row]:
    """Measure steps over 1,000 … 1,000,000 trusted values."""
    sizes = SIZES[:2] if plan.quick else SIZES
    policy = room.load_policy(_POLICY, filename="policy_step.yaml")
    rules_of(policy.cedar)
    steps = plan.rounds(4_000, 200)
    measured = [_measured(policy, size, steps) for size in sizes]
    largest = measured[-1]
    growth = "; ".join(f"{one.values:,} values {one.at(0.5):.0f} / {one.at(0.99):.0f} us" for one in measured)
    kinds = ", ".join(f"{kind} {_at(times, 0.5):.0f}" for kind, times in largest.times.items())
    name = f"policy/step-{largest.values}-values"
    cedar = _cedar_alone(policy)
    return [
        Row(
            name=f"{name}/p50",
            value=largest.at(0.5),
            unit="us",
            goal=Goal(bound=GOAL_US),
            note=f"{4 * steps:,} steps; by kind (p50): {kinds}\ngrowth (p50 / p99): {growth}\n"
            f"a question that Cedar was not asked before takes {cedar:.0f} us more",
        ),
        Row(name=f"{name}/p99", value=largest.at(0.99), unit="us", goal=Goal(bound=GOAL_P99_US)),
        Row(
            name=f"{name}/indexing",
            value=largest.mb_per_second,
            unit="MB/s",
            goal=Goal(bound=GOAL_MB_S, at_most=False),
            note="done once, when a value is first looked up; processor time",
        ),
        Row(
            name=f"{name}/index",
            value=largest.bytes_a_value,
            unit="B/value",
            note=f"beside the texts themselves, {largest.text_a_value:.0f} B a value",
        ),
    ]


def _at(times: list[float], share: float) -> float:
    return times[min(int(len(times) * share), len(times) - 1)]


def _measured(policy: room.Policy, size: int, steps: int) -> _Measured:
    chance = random.Random(size)  # noqa: S311 - names of a benchmark
    values = [_value(chance, number) for number in range(size)]
    knowledge = Knowledge.started(policy, "send the report", 0)
    length = 0
    for number in range(0, size, _A_FILE):
        text = "\n".join(values[number : number + _A_FILE])
        length += len(text)
        place = Place(root="workspace", path=f"{number}.txt")
        read = FileRead(place=place, opened=1, closed=2, staged=False, text=text)
        knowledge = knowledge.with_reads(policy, (read,), 1 + number // _A_FILE)
    gc.collect()
    began = time.process_time()
    _step(policy, knowledge, _call("nobody@nowhere.example"))
    indexing = time.process_time() - began
    mails, urls = values[0::2], values[1::2]
    asked: dict[str, list[ToolCall | NetRequest]] = {
        "call named": [_call(chance.choice(mails)) for _ in range(steps)],
        "call not named": [_call(_value(chance, 0)) for _ in range(steps)],
        "request named": [_get(chance.choice(urls)) for _ in range(steps)],
        "request not named": [_get(_value(chance, 1)) for _ in range(steps)],
    }
    times: dict[str, list[float]] = {}
    for kind, each in asked.items():
        expected = Decision.DEFER if "not" in kind else Decision.RELEASE
        spans = []
        for made in each:
            began_ns = time.perf_counter_ns()
            decision = _step(policy, knowledge, made)
            spans.append((time.perf_counter_ns() - began_ns) / 1000)
            assert decision is expected, (kind, made, decision)
        times[kind] = sorted(spans)
    return _Measured(
        values=size,
        times=times,
        mb_per_second=length / indexing / 1e6,
        bytes_a_value=knowledge.sources.index_size_bytes / size,
        text_a_value=length / size,
    )


def _value(chance: random.Random, number: int) -> str:
    first, second = ("".join(chance.choices(_LETTERS, k=8)) for _ in range(2))
    return f"https://{first}.{second}.example/" if number % 2 else f"{first}@{second}.example"


def _call(address: str) -> ToolCall:
    return ToolCall(call="c", tool="write_mail", arguments=json.dumps({"text": "hello", "to": [address]}))


def _get(url: str) -> NetRequest:
    host = url.removeprefix("https://").rstrip("/")
    return NetRequest(method="GET", scheme="https", host=host, port=443, path="/")


def _step(policy: room.Policy, knowledge: Knowledge, made: ToolCall | NetRequest) -> Decision:
    if isinstance(made, ToolCall):
        effect = room.characterise_call(policy, knowledge, made, "e1")
    else:
        effect = room.characterise_request(policy, knowledge, made, "e1")
    (verdict,) = room.decide(policy, knowledge, (effect,))
    return verdict.decision


def _cedar_alone(policy: room.Policy) -> float:
    """Return the median time of a question that the rules cannot answer from memory, in microseconds."""
    from interlock.policy.decision import _request

    knowledge = Knowledge.started(policy, "work", 0)
    cedar = (
        policy.cedar + '@id("odd")\nforbid(principal, action, resource) when { context.path == "/odd" };\n'
    )
    rules_of(cedar)
    spans = []
    for number in range(300):
        made = NetRequest(method="GET", scheme="https", host="a.example", port=443, path=f"/{number}")
        effect = room.characterise_request(policy, knowledge, made, "e1")
        question = _request(policy, knowledge, effect, derived=False)
        began = time.perf_counter_ns()
        evaluate(cedar, [question])
        spans.append((time.perf_counter_ns() - began) / 1000)
    return _at(sorted(spans), 0.5)
