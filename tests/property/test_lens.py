"""The lens: what each wire announces, whole, as a stream, in any cut, and from nonsense."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.boundary.lens.calls import ARGUMENTS_CHARS, canonical
from interlock.boundary.lens.reading import AnswerReader, Reading, results_in, wire_of

Call = tuple[str, str, dict[str, Any]]
WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini")
TEXTS = st.text(max_size=12)
CALLS = st.lists(
    st.tuples(
        st.text("abc123_", min_size=1, max_size=8),
        st.text("Bashedit", min_size=1, max_size=6),
        st.dictionaries(TEXTS, TEXTS | st.integers(-9, 9) | st.lists(TEXTS, max_size=2), max_size=3),
    ),
    max_size=3,
    unique_by=lambda call: call[0],
)


def cut(said: str) -> list[str]:
    return [said[start : start + 5] for start in range(0, len(said), 5)]


def events_of(wire: str, calls: list[Call]) -> list[Any]:
    """Return an answer's stream as its JSON documents."""
    out: list[Any] = []
    for at, (call_id, tool, value) in enumerate(calls):
        said = json.dumps(value)
        if wire == "openai-chat":
            first = {
                "index": at,
                "id": call_id,
                "type": "function",
                "function": {"name": tool, "arguments": ""},
            }
            deltas = [first, *({"index": at, "function": {"arguments": part}} for part in cut(said))]
            out += [{"choices": [{"index": 0, "delta": {"tool_calls": [one]}}]} for one in deltas]
        elif wire == "openai-responses":
            item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": tool}
            out.append({"type": "response.output_item.added", "item": {**item, "arguments": ""}})
            kind = "response.function_call_arguments.delta"
            out += [{"type": kind, "item_id": item["id"], "delta": part} for part in cut(said)]
            if at % 2:
                out.append({"type": "response.output_item.done", "item": {**item, "arguments": said}})
        elif wire == "anthropic":
            block = {"type": "tool_use", "id": call_id, "name": tool, "input": {}}
            out.append({"type": "content_block_start", "index": at, "content_block": block})
            for part in cut(said):
                delta = {"type": "input_json_delta", "partial_json": part}
                out.append({"type": "content_block_delta", "index": at, "delta": delta})
        else:
            parts = [{"functionCall": {"id": call_id, "name": tool, "args": value}}]
            out.append({"candidates": [{"content": {"parts": parts}}]})
    return out


def whole_of(wire: str, calls: list[Call]) -> Any:
    """Return an answer that does not stream."""
    if wire == "openai-chat":
        made = [{"id": one, "function": {"name": tool, "arguments": json.dumps(v)}} for one, tool, v in calls]
        return {"choices": [{"message": {"content": None, "tool_calls": made}}]}
    if wire == "openai-responses":
        return {
            "output": [
                {"type": "function_call", "call_id": one, "name": tool, "arguments": json.dumps(v)}
                for one, tool, v in calls
            ]
        }
    if wire == "anthropic":
        return {
            "content": [{"type": "tool_use", "id": one, "name": tool, "input": v} for one, tool, v in calls]
        }
    return events_of(wire, calls)


def read(wire: str, *chunks: bytes) -> Reading:
    reader = AnswerReader(wire)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


def stream(documents: list[Any], end: str = "\n") -> bytes:
    lines = [f": ping{end}{end}", *(f"event: x{end}data: {json.dumps(one)}{end}{end}" for one in documents)]
    return ("".join(lines) + f"data: [DONE]{end}{end}").encode()


def said(reading: Reading) -> list[Call]:
    assert reading.note == ""
    return [(one.call_id, one.tool, json.loads(one.arguments)) for one in reading.calls]


@settings(max_examples=60, deadline=None)
@given(
    wire=st.sampled_from(WIRES),
    calls=CALLS,
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 2000), max_size=8),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_any_cut_of_an_answer_gives_its_calls(
    wire: str, calls: list[Call], end: str, cuts: list[int], bom: bytes
) -> None:
    for data in (bom + stream(events_of(wire, calls), end), bom + json.dumps(whole_of(wire, calls)).encode()):
        places = [0, *sorted(min(one, len(data)) for one in cuts), len(data)]
        chunks = [data[a:b] for a, b in pairwise(places)]
        assert said(read(wire, *chunks)) == calls
        assert said(read(wire, *(data[at : at + 1] for at in range(len(data))))) == calls


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "message", "tool_calls", "function", "arguments", "name", "id", "index", "type",
             "output", "item", "input", "content", "content_block", "candidates", "parts", "functionCall", "args",
             "response", "item_id", "call_id", "messages", "contents", "role", "functionResponse", "custom"]
        ),
        inner | st.sampled_from(
            ["tool_use", "function_call", "custom_tool_call", "local_shell_call", "response.output_item.done",
             "content_block_start", "content_block_delta", "response.custom_tool_call_input.delta", "tool"]
        ),
        max_size=4,
    ),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(wire=st.sampled_from(WIRES), data=st.binary(max_size=300), value=JSON, place=st.integers(0, 400))
def test_no_bytes_raise_and_a_cut_changes_nothing(wire: str, data: bytes, value: Any, place: int) -> None:
    told = json.dumps(value)
    results_in(wire, told)
    results_in(wire, data.decode("latin-1"))
    for answer in (data, told.encode(), stream([value, value]), b"data: " + data, told.encode() + data):
        once = read(wire, answer)
        assert read(wire, answer[:place], answer[place:]) == once
        for call in once.calls:
            json.loads(call.arguments)
            call.arguments.encode()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "data", [b"[" * 200_000, b'{"a":' * 100_000, b"data: " + b"[" * 200_000 + b"\n\n", b"9" * 9000]
)
def test_nonsense_gives_no_call_and_one_note(wire: str, data: bytes) -> None:
    reading = read(wire, data)
    assert reading.calls == ()
    assert reading.note in ("a document that is no JSON", "")


def test_memory_is_bounded_where_an_answer_never_ends() -> None:
    reader = AnswerReader("anthropic")
    for _ in range(40):
        reader.feed(b"data: " + b"x" * 512 * 1024)
    assert reader.finish().note == "a document larger than is read"
    calls = [(f"c{n}", "Bash", {"command": "x"}) for n in range(300)]
    reading = read("anthropic", stream(events_of("anthropic", calls)))
    assert (len(reading.calls), reading.note) == (256, "more calls than are read")


@settings(max_examples=40, deadline=None)
@given(value=JSON | st.text(max_size=30_000) | st.lists(st.text(min_size=400, max_size=900), max_size=40))
def test_arguments_are_bounded_and_canonical(value: Any) -> None:
    told = canonical(value)
    assert len(told) <= ARGUMENTS_CHARS
    assert json.dumps(json.loads(told), ensure_ascii=False, sort_keys=True, separators=(",", ":")) == told


def test_a_long_text_is_cut_and_named_by_its_digest() -> None:
    told = json.loads(canonical({"content": "s" * 5000, "file_path": "a.py"}))
    assert told["file_path"] == "a.py"
    assert told["content"].startswith("s" * 1000 + "… (5000 characters sha256:")


def test_what_the_provider_itself_runs_is_no_action() -> None:
    block = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    assert said(read("anthropic", json.dumps({"content": [block]}).encode())) == []
    output = [{"type": "web_search_call", "id": "w"}, {"type": "mcp_call", "id": "m", "name": "n"}]
    assert said(read("openai-responses", json.dumps({"output": output}).encode())) == []


def test_the_odd_shapes_that_real_wires_have() -> None:
    shell = {"type": "local_shell_call", "call_id": "c1", "action": {"command": ["ls"]}}
    patch = {"type": "custom_tool_call", "id": "x", "call_id": "c2", "name": "apply_patch", "input": "*** 12"}
    done = [{"type": "response.output_item.done", "item": item} for item in (shell, patch)]
    completed = {"type": "response.completed", "response": {"output": [shell, patch]}}
    reading = read("openai-responses", stream([*done, completed]))
    assert [(one.tool, json.loads(one.arguments)) for one in reading.calls] == [
        ("local_shell", {"command": ["ls"]}),
        ("apply_patch", "*** 12"),
    ]
    # A server that gives every call the same index.
    calls = [
        {"index": 0, "id": one, "function": {"name": "f", "arguments": '{"n":1}'}} for one in ("c1", "c2")
    ]
    chunks = [{"choices": [{"delta": {"tool_calls": [one]}}]} for one in calls]
    assert [one for one, _tool, _value in said(read("openai-chat", stream(chunks)))] == ["c1", "c2"]
    inner = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "ls"}}]}}]}
    assert said(read("gemini", stream([{"response": inner}]))) == [("", "ls", {})]
    half = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "B"},
    }
    part = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": '{"a'},
    }
    (cut_off,) = read("anthropic", stream([half, part])).calls
    assert (cut_off.call_id, cut_off.tool, json.loads(cut_off.arguments)) == ("t", "B", '{"a')


def test_a_request_names_the_calls_whose_results_it_brings() -> None:
    bodies: dict[str, Any] = {
        "openai-chat": {"messages": [{"role": "user"}, {"role": "tool", "tool_call_id": "c1"}]},
        "openai-responses": {
            "input": [{"type": "custom_tool_call_output", "call_id": "c1"}, {"type": "message"}]
        },
        "anthropic": {
            "messages": [{"content": "x"}, {"content": [{"type": "tool_result", "tool_use_id": "c1"}]}]
        },
        "gemini": {
            "contents": [{"parts": [{"functionResponse": {"id": "c1", "name": "ls"}}, {"text": "x"}]}]
        },
    }
    for wire, body in bodies.items():
        assert results_in(wire, json.dumps(body)) == ("c1",)
        assert results_in(wire, json.dumps({"model": "x"})) == ()


def test_the_path_tells_the_wire() -> None:
    assert wire_of("/v1/chat/completions") == "openai-chat"
    assert wire_of("/backend-api/codex/responses") == "openai-responses"
    assert wire_of("/v1/messages") == "anthropic"
    assert wire_of("/v1beta/models/gemini-2.5-flash:streamGenerateContent") == "gemini"
    assert wire_of("/v1/messages/count_tokens") == wire_of("/v1/embeddings") == ""
