"""The audit of an answer: what passes at once, what is held, byte for byte, in any cut; asked again, and ended."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.model_answers import (
    WIRES,
    Call,
    Part,
    Text,
    Thought,
    events,
    listed,
    request,
    stream,
    whole,
)

from interlock.boundary.lens.auditing import AnswerAudit, Judge, Passes
from interlock.model.errors import InterlockError
from interlock.model.verdicts import ExceptionType, SemanticException

REFUSED = SemanticException(
    type=ExceptionType.TAINT,
    violated_rule="taint",
    rationale="the task does not name it",
    constraints=("only hosts of the task",),
    allowed_objective="go on without it",
)
WORDS = st.text('abc \n"\\é😀\u2028{}[]:data', max_size=12)
VALUES = st.dictionaries(
    WORDS, WORDS | st.integers(-9, 2**70) | st.lists(WORDS, max_size=2) | st.none(), max_size=3
)
TEXT = st.builds(Text, WORDS.filter(str.strip))
CALL = st.builds(
    Call,
    st.text("abc123_", min_size=1, max_size=8),
    st.sampled_from(["Bash", "edit"]),
    VALUES,
    st.integers(1, 9),
)
PARTS = st.lists(TEXT | st.builds(Thought, st.text("think", min_size=1, max_size=9)) | CALL, max_size=5)


def body_of(wire: str) -> bytes:
    return json.dumps(request(wire)).encode()


def forms(wire: str, parts: list[Part], end: str = "\n", number: int = 1) -> list[bytes]:
    told = events(wire, parts, number=number)
    out = [stream(wire, told, end=end), json.dumps(whole(wire, parts, number=number), indent=1).encode()]
    return [*out, listed(told)] if wire == "gemini" else out


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(min(one, len(data)) for one in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


def audited(wire: str, chunks: list[bytes]) -> tuple[AnswerAudit, bytes, Passes | Judge]:
    audit = AnswerAudit(wire, body_of(wire))
    passed = b"".join(map(audit.feed, chunks))
    return audit, passed, audit.finish()


@settings(max_examples=60, deadline=None)
@given(
    wire=st.sampled_from(WIRES),
    parts=PARTS,
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 3000), max_size=8),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_an_answer_whose_calls_are_released_is_the_answer(
    wire: str, parts: list[Part], end: str, cuts: list[int], bom: bytes
) -> None:
    calls = [part for part in parts if isinstance(part, Call)]
    for data in (bom + one for one in forms(wire, parts, end)):
        outcomes = set()
        for chunks in (cut(data, cuts), [data], [data[at : at + 1] for at in range(len(data))]):
            audit, passed, told = audited(wire, chunks)
            if isinstance(told, Passes):
                assert not calls
                assert passed + told.rest == data
                continue
            if end == "\r" and data.startswith(
                (b"data:", b"event:", b"\xef\xbb\xbfdata:", b"\xef\xbb\xbfevent:")
            ):
                # A bare CR ends a line, but not for all readers: no call in such lines is sure.
                assert calls
                assert any(one.fault for one in told.calls)
                continue
            assert [(one.call_id, one.tool, one.fault) for one in told.calls] == [
                (one.call_id, one.tool, "") for one in calls
            ]
            assert [json.loads(one.arguments) for one in told.calls] == [one.arguments for one in calls]
            outcomes.add(passed)
            assert passed + audit.released((None,) * len(calls)) == data
            assert audit.facts.prompt_tokens == 10
            assert audit.facts.model == "fake-model"
        assert len(outcomes) <= 1  # what is held does not depend on the cut


@pytest.mark.parametrize("wire", WIRES)
def test_text_passes_at_once_and_a_call_does_not(wire: str) -> None:
    told = events(wire, [Text("look"), Call("c1", "Bash", {"command": "ls"}), Text("then")])
    audit = AnswerAudit(wire, body_of(wire))
    seen = b""
    for one in told:
        data = stream(wire, [one], done=False)
        out = audit.feed(data)
        assert out in (data, b"")
        seen += out
        if b"Bash" in data:
            assert out == b""
            assert audit.holding
    assert b"look" in seen
    assert b"Bash" not in seen
    assert b"then" not in seen


@pytest.mark.parametrize("wire", WIRES)
def test_a_refused_call_never_passes(wire: str) -> None:
    for data in forms(
        wire, [Text("so"), Call("c1", "Bash", {"command": "rm"}), Call("c2", "Bash", {"command": "ls"})]
    ):
        audit, passed, told = audited(wire, [data])
        assert isinstance(told, Judge)
        for verdicts in ((REFUSED, None), (None, REFUSED), (None,), ()):
            with pytest.raises(InterlockError):
                audit.released(verdicts)
        ended = passed + audit.over((REFUSED, None))
        assert b"Bash" in ended  # as a word of the text that tells it
        audit, _, again = audited(wire, [ended])
        assert isinstance(again, Passes)
        assert audit.facts.whole or wire == "openai-chat"


def after(wire: str, told: Judge, body: bytes) -> Any:
    """Return what the second request has beyond the first."""
    first, second = request(wire), json.loads(body)
    key = {"openai-responses": "input", "gemini": "contents"}.get(wire, "messages")
    assert {k: v for k, v in second.items() if k != key} == {k: v for k, v in first.items() if k != key}
    return second[key][1:]


def test_the_model_is_asked_again_with_all_that_it_said() -> None:
    parts: list[Part] = [
        Thought("hm"),
        Text("so"),
        Call("c1", "Bash", {"command": "rm"}),
        Call("c2", "edit", {"n": 1}),
    ]
    for wire in WIRES:
        made = {}
        for number, data in enumerate(forms(wire, parts)):
            audit, _, told = audited(wire, [data])
            assert isinstance(told, Judge)
            body = audit.again((REFUSED, None))
            assert body is not None
            made[number] = after(wire, told, body)
        said = json.dumps(made[0])
        assert said.count("the task does not name it") == 1
        assert said.count("another call of the same answer was refused") == 1
        assert "so" in said
        if wire == "anthropic":
            assert made[0] == made[1]
            answer, results = made[0]
            assert [block["type"] for block in answer["content"]] == [
                "thinking",
                "text",
                "tool_use",
                "tool_use",
            ]
            assert answer["content"][0]["signature"] == "c2lnbmF0dXJl"
            assert answer["content"][2]["input"] == {"command": "rm"}
            assert [(one["tool_use_id"], one["is_error"]) for one in results["content"]] == [
                ("c1", True),
                ("c2", False),
            ]
        if wire == "openai-chat":
            answer, *results = made[0]
            assert answer["reasoning_content"] == "hm"
            assert [one["tool_call_id"] for one in results] == ["c1", "c2"]
            assert json.loads(answer["tool_calls"][0]["function"]["arguments"]) == {"command": "rm"}
        if wire == "openai-responses":
            assert made[0] == made[1]
            kinds = [one["type"] for one in made[0]]
            assert kinds == [
                "reasoning",
                "message",
                "function_call",
                "function_call",
                *["function_call_output"] * 2,
            ]
            assert "id" not in made[0][2]  # nothing is stored there
        if wire == "gemini":
            assert made[1] == made[2] or made[0] == made[2]
            answer, results = made[0]
            assert results["parts"][0]["functionResponse"]["id"] == "c1"
            assert "thoughtSignature" in answer["parts"][-1]


@pytest.mark.parametrize("wire", WIRES)
def test_the_second_answer_follows_the_first(wire: str) -> None:
    first: list[Part] = [Thought("hm"), Text("I look"), Call("c1", "Bash", {"command": "rm"})]
    second: list[Part] = [Thought("ok"), Text("then so"), Call("c2", "edit", {"n": 1})]
    for one, other in zip(forms(wire, first), forms(wire, second, number=2), strict=True):
        audit, passed, told = audited(wire, [one])
        assert isinstance(told, Judge)
        body = audit.again((REFUSED,))
        assert body is not None
        later = audit.follow(body)
        passed += b"".join(later.feed(other[at : at + 9]) for at in range(0, len(other), 9))
        told = later.finish()
        assert isinstance(told, Judge)
        assert [(call.call_id, call.tool) for call in told.calls] == [("c2", "edit")]
        assert later.again((REFUSED,)) is not None
        assert b"rm" not in passed
        made = passed + later.released((None,))
        assert b"rm" not in made
        read, _, judged = audited(wire, [made])
        assert isinstance(judged, Judge)
        assert [(call.call_id, call.fault) for call in judged.calls] == [("c2", "")]
        assert read.facts.completion_tokens == 10
        assert read.facts.prompt_tokens == 20
        is_stream = wire == "openai-responses" and one.startswith(b"event")
        assert later.renamed == ({"resp_1": "resp_2"} if is_stream else {})


@pytest.mark.parametrize("wire", WIRES)
def test_corrections_may_be_spent_by_a_second_answer(wire: str) -> None:
    for one in forms(wire, [Text("I look"), Call("c1", "Bash", {"command": "rm"})]):
        audit, passed, _ = audited(wire, [one])
        body = audit.again((REFUSED,))
        assert body is not None
        later = audit.follow(body)
        passed += later.feed(one)
        assert isinstance(later.finish(), Judge)
        read, _, told = audited(wire, [passed + later.over((REFUSED,))])
        assert isinstance(told, Passes)
        assert read.facts.prompt_tokens == 20
        assert read.facts.completion_tokens == 10


def test_reasoning_goes_the_way_of_the_call_that_follows_it() -> None:
    wire = "openai-responses"
    told = events(wire, [Thought("hm"), Call("c1", "Bash", {"command": "rm"})])
    audit, passed, _ = audited(wire, [stream(wire, told)])
    assert b"reasoning" not in passed
    assert audit.holding
    body = audit.again((REFUSED,))
    assert body is not None
    assert [one["type"] for one in json.loads(body)["input"][1:]] == [
        "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
    audit = AnswerAudit(wire, body_of(wire))
    told = events(wire, [Thought("hm"), Text("so")])
    at = next(at for at, one in enumerate(told) if one.get("item", {}).get("type") == "message")
    assert b"reasoning" not in audit.feed(stream(wire, told[:at]))
    assert b"reasoning" in audit.feed(stream(wire, told[at : at + 1]))
    assert not audit.holding
