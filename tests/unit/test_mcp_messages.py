"""One message is read so strictly that nobody else can find another one in its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.boundary.mcp import Notification, Request, Response, Unreadable, read, told, written
from interlock.boundary.mcp.listing import digest, read_listing, without
from interlock.boundary.mcp.messages import MAX_BYTES, MAX_DEPTH, answer, failure
from interlock.boundary.mcp.versions import elicits, elicits_now, is_known, is_modern

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "send", "arguments": {"to": "ann"}},
}


def text_of(**changes: Any) -> bytes:
    return json.dumps({**CALL, **changes}).encode()


def test_a_request_a_notification_and_both_kinds_of_answers_are_read() -> None:
    request = read(text_of())
    assert isinstance(request, Request)
    assert (request.id, request.method, request.params["name"]) == (1, "tools/call", "send")
    note = read(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert isinstance(note, Notification)
    assert note.params == {}
    done = read(answer("a", {"x": 1}))
    assert isinstance(done, Response)
    assert (done.id, done.result, done.error) == ("a", {"x": 1}, None)
    failed = read(failure(None, -32600, "no"))
    assert isinstance(failed, Response)
    assert failed.error == {"code": -32600, "message": "interlock: no"}
    assert failed.id is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"hello",
        b"null",
        b"1",
        b'"text"',
        b"[]",
        b"[" + text_of() + b"]",
        text_of() + text_of(),
        text_of()[:-1],
        b"\xff\xfe" + text_of(),
        text_of().decode().encode("utf-16"),
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"to":"a","to":"b"}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}',
        b'{"jsonrpc":"2.0","id":1,"METHOD":"tools/call"}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}'.encode(),
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"a"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","NAME":"b"}}',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"id":1,"method":"ping"}',
        text_of(id=None),
        text_of(id=True),
        text_of(id=1.5),
        text_of(id=[1]),
        text_of(method=1),
        text_of(params=[1]),
        text_of(result={}),
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":1,"result":[]}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e999}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\x01"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"9" * 5000 + b"}}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 100 + b"]" * 100 + b"}}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b" " * (MAX_BYTES + 1),
    ],
    ids=lambda raw: str(raw[:40]),
)
def test_what_is_not_exactly_one_message_is_unreadable(raw: bytes) -> None:
    found = read(raw)
    assert isinstance(found, Unreadable), found
    assert found.why


def test_too_long_to_be_kept_is_unreadable_too() -> None:
    assert isinstance(read(None), Unreadable)


def test_the_id_of_an_unreadable_request_is_told_where_it_is_one() -> None:
    found = read(text_of(method=1))
    assert isinstance(found, Unreadable)
    assert found.id == 1


def test_brackets_in_a_text_are_no_depth() -> None:
    assert isinstance(read(text_of(params={"x": "[" * (MAX_DEPTH * 3)})), Request)


def test_a_line_end_inside_is_written_anew_so_that_nobody_finds_a_message_there() -> None:
    hidden = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wipe"}}'
    for end in (b"\r", b"\n", b"\r\n"):
        raw = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + end + hidden + end + b"}}"
        found = read(raw)
        assert isinstance(found, Request)
        assert b"\r" not in found.raw
        assert b"\n" not in found.raw
        assert json.loads(found.raw) == json.loads(raw)


def test_what_is_written_is_one_line_of_ascii() -> None:
    assert written({"x": "é\u2028\n"}) == b'{"x":"\\u00e9\\u2028\\n"}'


def test_other_bytes_go_on_as_they_came() -> None:
    raw = b'{ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": 0.10000000000000000000001} }'
    found = read(raw)
    assert isinstance(found, Request)
    assert found.raw == raw


def test_revisions() -> None:
    assert is_known("2025-06-18")
    assert is_known("2026-07-28")
    assert not is_known("2027-01-01")
    assert not is_known(None)
    assert is_modern("2026-07-28")
    assert not is_modern("2025-11-25")
    assert elicits({"elicitation": {}})
    assert elicits({"elicitation": {"form": {}}})
    assert not elicits({"elicitation": {"url": {}}})
    assert not elicits({})
    assert not elicits_now({"_meta": 1})


def test_a_listing_is_read_or_is_none() -> None:
    tool = {
        "name": "search",
        "description": "finds",
        "inputSchema": {"type": "object", "properties": {"query": {}, "limit": {}}},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    }
    listing = read_listing(
        {"tools": [tool, {"name": "send", "annotations": {"readOnlyHint": "true"}}], "nextCursor": "x"}
    )
    assert [one.name for one in listing.tools] == ["search", "send"]
    assert listing.tools[0].digest == digest(dict(reversed(tool.items())))
    assert listing.read_only == {"search": ("query", "limit")}
    assert listing.shaped == {"search"}
    assert not listing.last
    wrong: list[dict[str, Any]] = [{}, {"tools": {}}, {"tools": [1]}, {"tools": [{"name": ""}]}]
    for one in [*wrong, {"tools": [{"name": "x" * 300}]}]:
        assert read_listing(one).fault
    assert without({"tools": [tool], "_meta": {}}, ["search"]) == {"tools": [], "_meta": {}}


def text(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": one} for one in texts], **more}


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (text("hello"), "hello"),
        (text("a", "b"), "a\nb"),
        (text('{"a": 1}'), {"a": 1}),
        (text('{"a": 1, "a": 2}'), '{"a": 1, "a": 2}'),
        (text('{"a": 1}', structuredContent={"a": 1}), {"a": 1}),
        (text("hello", structuredContent={"result": "hello"}), {"result": "hello"}),
        (
            text("hello", structuredContent={"result": None}),
            {"content": ["hello"], "structuredContent": {"result": None}},
        ),
        (
            text('{"a": 1}', structuredContent={"a": 2}),
            {"content": ['{"a": 1}'], "structuredContent": {"a": 2}},
        ),
        ({"content": [], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": []}, ""),
        ({"other": 1}, {"other": 1}),
    ],
)
def test_what_an_answer_says_holds_all_that_the_agent_may_read(result: dict[str, Any], says: Any) -> None:
    assert told(result).says == says
    assert not told(result).failed
    assert told({**result, "isError": True}).failed


def test_a_picture_counts_by_its_digest() -> None:
    said = told({"content": [{"type": "image", "data": "QUJD", "mimeType": "image/png"}]}).says
    assert said["content"][0]["data"].startswith("sha256:")
