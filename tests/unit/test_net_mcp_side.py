"""The answer to a message of MCP, byte by byte: what passes is passed as it came, of the rest nothing is."""

from __future__ import annotations

import asyncio
import gzip
import json
import random

import pytest

from interlock.boundary.net.mcp_events import MAX_EVENT_BYTES
from interlock.boundary.net.mcp_side import McpSide, Parts
from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.sides import AnswerHead, RawHeaders

STREAM = (
    b": hello\n\nid: 1\ndata:\n\nevent: message\ndata: one\n\ndata: a\r\ndata: b\r\n\r\nretry: 5\n\n"
    b"event: bad\ndata: bad\n\nid: 7\rdata: last\r\r"
)
PASSED = STREAM.replace(b"event: bad\ndata: bad\n\n", b"")


class Agent:
    """The agent's side. Holds: what it got."""

    def __init__(self) -> None:
        self.head: AnswerHead | None = None
        self.body = b""
        self.over = ""

    def interim(self, head: AnswerHead) -> None:
        pass

    def answer(self, head: AnswerHead) -> None:
        self.head = head

    def data(self, chunk: bytes) -> None:
        self.body += chunk

    def end(self, trailers: RawHeaders) -> None:
        self.over = "end"

    def cut(self) -> None:
        self.over = "cut"

    def read_on(self, on: bool) -> None:
        pass


class Reads:
    """Passes every message but those that say `bad`. Holds: `seen`, what came."""

    def __init__(self) -> None:
        self.seen: list[bytes | None] = []
        self.resumes = False
        self.session = ""
        self.status = 0

    def began(self, session: str, status: int) -> None:
        self.session = session

    def came(self, raw: bytes | None, *, name: str) -> bytes | None:
        self.seen.append(raw)
        if raw is None or b"bad" in raw:
            return None
        return b"CHANGED" if b"change" in raw else raw

    def goes_on(self) -> None:
        self.resumes = True

    def instead(self) -> tuple[int, bytes]:
        return self.status, b"{}"


class Exchange:
    def __init__(self) -> None:
        self.detail = ""

    def unreadable(self, detail: str) -> None:
        self.detail = detail


class Around:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.plan = self
        self.limits = NetLimits()


def answered(
    *chunks: bytes, kind: bytes, status: int = 200, length: int | None = None, **fields: bytes
) -> tuple[Agent, Reads, Exchange]:
    """Have an answer come. Returns: what the agent got, what was read, and what its exchange was told."""
    loop = asyncio.new_event_loop()
    agent, reads, exchange = Agent(), Reads(), Exchange()
    side = McpSide(Around(loop), exchange, agent, "POST", reads)  # type: ignore[arg-type]
    headers = (
        (b"content-type", kind),
        *((name.replace("_", "-").encode(), value) for name, value in fields.items()),
    )
    side.answer(AnswerHead(status=status, headers=headers, length=length))
    for chunk in chunks:
        if not exchange.detail:
            side.data(chunk)
    if exchange.detail:
        side.cut()
    else:
        side.end(())
    loop.close()
    return agent, reads, exchange


def events(*chunks: bytes) -> tuple[Agent, Reads, Exchange]:
    return answered(*chunks, kind=b"text/event-stream; charset=utf-8")


def cuts(data: bytes, seed: int) -> list[bytes]:
    places = sorted(random.Random(seed).sample(range(1, len(data)), min(12, len(data) - 1)))
    return [data[one:other] for one, other in zip([0, *places], [*places, len(data)], strict=True)]


@pytest.mark.parametrize("seed", range(30))
def test_a_stream_cut_anyhow_is_the_same_without_what_does_not_pass(seed: int) -> None:
    agent, reads, _ = events(*cuts(STREAM, seed))
    assert agent.body.replace(b"\r\n", b"\n") == PASSED.replace(b"\r\n", b"\n")
    assert reads.seen == [b"one", b"a\nb", b"bad", b"last"]
    assert reads.resumes
    assert agent.over == "end"
    assert [raw for raw, _ in Parts().feed(STREAM)] == [raw for raw, _ in Parts().feed(STREAM)]
    assert b"".join(raw for raw, _ in Parts().feed(STREAM)) == STREAM


def test_one_byte_at_a_time_nothing_of_a_message_goes_out_before_it_is_read() -> None:
    agent, reads, _ = events(*(STREAM[at : at + 1] for at in range(len(STREAM))))
    assert reads.seen == [b"one", b"a\nb", b"bad", b"last"]
    assert b"bad" not in agent.body


def test_what_stands_after_the_last_event_is_read_too() -> None:
    for rest in (b"data: bad", b"data: bad\n", b"event: bad\ndata: bad\r"):
        agent, reads, _ = events(b"data: one\n\n", rest)
        assert (agent.body, reads.seen) == (b"data: one\n\n", [b"one", b"bad"])
    agent, _, _ = events(b"data: one\n\n", b": a comment")
    assert agent.body == b"data: one\n\n: a comment"


def test_a_line_that_is_none_of_an_event_s_is_read_too() -> None:
    for odd in (b'{"a": "bad"}\n\n', b'data: one\n{"a": "bad"}\n\n', b'data:one\rnote {"bad"}\r\r'):
        agent, _, _ = events(b"data: one\n\n", odd)
        assert agent.body == b"data: one\n\n"


def test_an_event_too_long_passes_to_nobody() -> None:
    parts = [b"x" * 1024 * 1024] * (MAX_EVENT_BYTES // 1024 // 1024 + 2)
    agent, reads, _ = events(b"data: ", *parts, b"\n\ndata: one\n\n")
    assert (agent.body, reads.seen) == (b"data: one\n\n", [None, b"one"])


def test_a_message_that_is_changed_keeps_its_event() -> None:
    agent, _, _ = events(b"id: 4\nevent: message\ndata: change\n\n")
    assert agent.body == b"event: message\nid: 4\ndata: CHANGED\n\n"


@pytest.mark.parametrize("length", [True, False])
def test_json_is_read_whole(length: bool) -> None:
    body = json.dumps({"a": "one"}).encode()
    agent, reads, _ = answered(
        body[:4], body[4:], kind=b"application/json", length=len(body) if length else None
    )
    assert (agent.body, reads.seen) == (body, [body])
    assert agent.head is not None
    assert agent.head.length == (len(body) if length else None)
    bad = json.dumps({"a": "bad"}).encode()
    agent, _, _ = answered(bad, kind=b"application/json", length=len(bad) if length else None)
    assert agent.body == b"{}"
    assert agent.head is not None
    assert agent.head.length in (2, None)


@pytest.mark.parametrize("kind", [b"text/plain", b"", b"text/html", b"application/octet-stream"])
def test_a_message_under_another_type_is_read_too(kind: bytes) -> None:
    agent, _, _ = answered(b" \n", b'{"a": "bad"}', kind=kind)
    assert agent.body.strip() == b"{}"
    page = b"<p>{not a message, however bad}</p>"
    agent, reads, _ = answered(page[:3], page[3:], kind=kind)
    assert (agent.body, reads.seen) == (page, [])


def test_a_compressed_stream_is_read() -> None:
    agent, reads, _ = answered(
        gzip.compress(STREAM), kind=b"text/event-stream", content_encoding=b"gzip", mcp_session_id=b"s1"
    )
    assert agent.body == PASSED
    assert reads.session == "s1"
    assert agent.head is not None
    assert b"content-encoding" not in dict(agent.head.headers)


@pytest.mark.parametrize("encoding", [b"gzip", b"own", b"zstd, br, gzip, gzip"])
def test_what_cannot_be_decompressed_is_cut(encoding: bytes) -> None:
    agent, reads, exchange = answered(
        b"\x1f\x8bdata: bad\n\n", kind=b"text/event-stream", content_encoding=encoding
    )
    assert reads.seen == []
    assert b"bad" not in agent.body
    assert "cannot be read" in exchange.detail
