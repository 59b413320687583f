"""The law of the model lens: whatever bytes a provider sends, no call passes that was not judged and released.

What the agent got is read by `spec/model_answers.py`, which shares no code with the audit and reads as carelessly as
any client that we know of.
"""

import json
import os
from itertools import islice
from random import Random

import pytest
from spec.model_answers import calls_in
from tests.fakes.fuzzed_wires import bent, fuzzed
from tests.fakes.model_answers import WIRES, Call, Text, events, request, stream

from interlock.boundary.lens.auditing import AnswerAudit, Judge, Passes
from interlock.model.verdicts import ExceptionType, SemanticException

ANSWERS = int(os.environ.get("INTERLOCK_ANSWERS", "600"))
SEARCH = {"INTERLOCK_SEARCH", "INTERLOCK_EXAMPLES", "INTERLOCK_ANSWERS"} & os.environ.keys()
REFUSED = SemanticException(
    type=ExceptionType.TAINT, violated_rule="r", rationale="w", constraints=(), allowed_objective=""
)


def chunks(random: Random, data: bytes) -> list[bytes]:
    size = random.choice((1, 7, 100, 100_000))
    return [data[at : at + size] for at in range(0, len(data), size)]


def judged(told: Judge) -> set[tuple[str, str]]:
    """Return the calls that were judged, as the plain reader tells them."""
    out = set()
    for call in told.calls:
        value = json.loads(call.arguments)
        out.add((call.tool, value if isinstance(value, str) else call.arguments))
    return out


def check(random: Random, wire: str, data: bytes) -> str:
    """Audit one answer, and follow all that may come of it. Returns: what became of it."""
    audit = AnswerAudit(wire, json.dumps(request(wire)).encode())
    passed = b"".join(map(audit.feed, chunks(random, data)))
    told = audit.finish()
    if isinstance(told, Passes):
        assert passed + told.rest == data
        assert calls_in(wire, data) == set(), (wire, data)
        return "passed"
    assert calls_in(wire, passed) == set(), (wire, data)
    refused = tuple(REFUSED if random.random() < 0.5 else None for _ in told.calls)
    refused = (REFUSED, *refused[1:])
    assert calls_in(wire, passed + audit.over(refused)) == set(), (wire, data)
    body = audit.again(refused)
    if body is not None:
        again(random, wire, audit, passed, body)
    if any(call.fault for call in told.calls):
        return "unread"
    whole = passed + audit.released((None,) * len(told.calls))
    assert whole == data
    assert not calls_in(wire, data) - judged(told), (wire, data)
    return "released"


def again(random: Random, wire: str, audit: AnswerAudit, passed: bytes, body: bytes) -> None:
    """Let another answer follow."""
    json.loads(body)
    later = audit.follow(body)
    passed += b"".join(map(later.feed, chunks(random, bent(random, wire))))
    told = later.finish()
    if isinstance(told, Passes):
        assert calls_in(wire, passed + told.rest) == set(), passed
        return
    assert calls_in(wire, passed) == set(), passed
    assert calls_in(wire, passed + later.over((REFUSED,) * len(told.calls))) == set(), passed
    if not any(call.fault for call in told.calls):
        made = passed + later.released((None,) * len(told.calls))
        assert not calls_in(wire, made) - judged(told), made


def test_no_fuzzed_answer_passes_a_call_that_was_not_judged() -> None:
    random = Random() if SEARCH else Random(9)
    seen = dict.fromkeys(("passed", "unread", "released"), 0)
    for wire, data in islice(fuzzed(random), ANSWERS):
        seen[check(random, wire, data)] += 1
    # All three are common: else this would hold of an audit that refuses all.
    assert min(seen.values()) > ANSWERS // 20, seen


ODD = (
    b"", b" ", b"\xef\xbb", b"[" * 5000, b'{"a":' * 5000, b"data: " + b"[" * 5000 + b"\n\n", b"data: 1\n\n",
    b'data: "tool_use"\n\n', b"data: [1]\n\n", b"tool_calls", b"data: {\"choices\":[{\"delta\":{\"tool_calls\":7}}]}\n\n",
    b'{"content":[{"type":"tool_use"}],"output":[{"type":["function_call"]}],"choices":[{"message":{"tool_calls":[1]}}]}',
)  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
def test_nonsense_raises_nothing_and_passes_no_call(wire: str) -> None:
    random = Random(1)
    for data in ODD:
        for request_body in (b"", b"[]", b"{}", json.dumps(request(wire)).encode()):
            audit = AnswerAudit(wire, request_body)
            passed = audit.feed(data)
            if isinstance(told := audit.finish(), Judge):
                assert audit.again((REFUSED,) * len(told.calls)) is None or told.calls[0].tool
                audit.over((REFUSED,) * len(told.calls))
            assert calls_in(wire, passed) == set()
        check(random, wire, data)


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.boundary.lens.pieces.PIECE_BYTES", 10_000)
    monkeypatch.setattr("interlock.boundary.lens.auditing.HELD_BYTES", 20_000)
    for data in (
        b"data: " + b"x" * 30_000,
        stream("anthropic", events("anthropic", [Call("c", "Bash", {"x": "y" * 5000})])),
    ):
        audit = AnswerAudit("anthropic", json.dumps(request("anthropic")).encode())
        passed = audit.feed(data)
        assert audit.feed(b"data: {}\n\n" * 3) == b""
        told = audit.finish()
        assert isinstance(told, Judge)
        assert told.calls[-1].fault
        assert audit.again((REFUSED,) * len(told.calls)) is None
        assert calls_in("anthropic", passed + audit.over((REFUSED,) * len(told.calls))) == set()


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_in_a_thousand_parts_is_one_call(wire: str) -> None:
    value = {"text": "ab" * 600}
    data = stream(wire, events(wire, [Call("c1", "Bash", value, 1)]))
    audit = AnswerAudit(wire, b"{}")
    audit.feed(data)
    told = audit.finish()
    assert isinstance(told, Judge)
    assert [json.loads(call.arguments) for call in told.calls] == [value]


@pytest.mark.parametrize("wire", WIRES)
def test_the_plain_reader_reads_what_is_there(wire: str) -> None:
    data = stream(wire, events(wire, [Text("x"), Call("c1", "Bash", {"b": 1, "a": 2}), Call("c2", "edit")]))
    assert calls_in(wire, data) == {("Bash", '{"a":2,"b":1}'), ("edit", "{}")}


def test_an_event_that_some_readers_skip_makes_a_call_unread() -> None:
    data = stream("anthropic", events("anthropic", [Text("x"), Call("c2", "Bash", {"a": 1}, 90)]))
    part = b'data: {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{'
    assert part in data
    for odd in (b"1", b"true", b'"other"'):
        audit = AnswerAudit("anthropic", b"{}")
        audit.feed(data.replace(part, part.replace(b'"content_block_delta"', odd)))
        told = audit.finish()
        assert isinstance(told, Judge)
        assert any(call.fault for call in told.calls)
