"""Which session a request over HTTP belongs to, and what becomes of a message whose stream breaks off; and at the proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from interlock.boundary.mcp.messages import read
from interlock.boundary.net.mcp_events import Events
from interlock.boundary.net.sides import AnswerHead, RawHeaders, RequestHead
from interlock.mcp import http_lanes
from interlock.mcp.http_calls import Listening, Posting
from interlock.mcp.http_far import Answer
from interlock.mcp.http_front import Asked
from interlock.mcp.http_lanes import Lane, Lanes
from interlock.model.errors import BoundaryError
from interlock.model.requests import NetRequest
from interlock.runtime import mcp_lanes

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}


def written(message: object) -> bytes:
    return json.dumps(message).encode()


class Through:
    """A session that passes all. Holds: `ended`, whether it was closed."""

    def __init__(self) -> None:
        self.run_id = ""
        self.ended = False

    async def closed(self) -> None:
        self.ended = True

    async def client_said(self, raw: bytes, *, back: Any, onward: Callable[[bytes], Awaitable[None]]) -> None:
        message = read(raw)
        self.waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await onward(raw)
        if hasattr(message, "id"):
            await self.waits

    async def server_said(self, raw: bytes, *, back: Any, onward: Callable[[bytes], Awaitable[None]]) -> None:
        message = read(raw)
        await onward(raw)
        if not hasattr(message, "method") and not self.waits.done():
            self.waits.set_result(None)


class Client:
    """What a client got."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.over = False

    def answer(self, head: AnswerHead) -> None:
        self.status = head.status

    def data(self, chunk: bytes) -> None:
        self.body += chunk

    def end(self, _trailers: RawHeaders) -> None:
        self.over = True

    @property
    def messages(self) -> list[Any]:
        return [json.loads(one.data) for one in Events().feed(self.body) if one.data]


class Server:
    """An upstream that answers each request as the test says."""

    def __init__(self, *heads: AnswerHead) -> None:
        self.heads = list(heads)
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, bytes]] = []

    async def ask(self, method: str, _headers: Any, body: bytes = b"") -> Answer:
        self.asked.append((method, body))
        answer = Answer()
        answer.came_head(self.heads.pop(0))
        self.answers.append(answer)
        return answer


EVENTS = AnswerHead(status=200, headers=((b"content-type", b"text/event-stream"),))
JSON = AnswerHead(status=200, headers=((b"content-type", b"application/json"),))


def asked(client: Client, method: str, body: bytes = b"", **fields: bytes) -> Asked:
    headers = tuple((name.replace("_", "-").encode(), value) for name, value in fields.items())
    head = RequestHead(
        method=method,
        scheme="http",
        authority_host="localhost",
        port=80,
        target="/mcp",
        headers=headers,
        length=0,
    )
    made = Asked(client, head, lambda _asked: None)  # type: ignore[arg-type]
    made.body = body
    return made


def in_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 30))


def lane() -> Lane:
    return Lane(Through(), 0.0)  # type: ignore[arg-type]


def lanes(notes: list[str] | None = None) -> Lanes:
    return Lanes(lambda: Through(), (notes if notes is not None else []).append)  # type: ignore[arg-type,return-value]


def test_requests_of_one_sender_share_a_session_but_for_ids_in_use() -> None:
    async def work() -> None:
        made = lanes()
        one = made.shared({}, 1, None)
        one.ids.add(1)
        assert made.shared({}, 2, None) is one
        other = made.shared({}, 1, None)
        assert other is not one
        assert made.shared({b"authorization": b"x"}, 1, None) not in (one, other)
        one.remember("state")
        assert made.shared({}, 1, "state") is one, "a request that goes on belongs to whom it was answered"
        await made.end(one)
        assert one.session.ended  # type: ignore[attr-defined]
        assert one not in made.every()

    in_loop(work)


def test_a_session_is_found_by_its_name_until_it_ends() -> None:
    async def work() -> None:
        made = lanes()
        one = made.new()
        made.name("s1", one)
        assert made.named({b"mcp-session-id": b"s1"}) is one
        assert made.named({b"mcp-session-id": b"s2"}) is None
        one.used_at -= 10
        one.ids.add(1)
        await made.end_idle(5)
        assert made.every() == [one], "what is under way is not ended"
        one.ids.clear()
        await made.end_idle(5)
        assert made.every() == []

    in_loop(work)


def test_there_are_so_many_sessions_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_lanes, "MAX_LANES", 2)

    async def work() -> None:
        made = lanes()
        for name in ("a", "b"):
            made.name(name, made.new())
        with pytest.raises(BoundaryError, match="too many"):
            made.new()

    in_loop(work)


def test_what_nobody_listens_for_is_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_lanes, "_MAX_KEPT", 2)

    async def work() -> None:
        one = lane()
        for number in range(3):
            await one.deliver(b"%d" % number, number)
        assert one.kept() == [b"0", b"1"]
        assert one.kept() == []

    in_loop(work)


def test_an_answer_as_json_comes_in_one_piece() -> None:
    async def work() -> None:
        client, server, one = Client(), Server(JSON), lane()
        posting = Posting(server, one, asked(client, "POST", written(CALL)), read(written(CALL)))  # type: ignore[arg-type]
        task = asyncio.create_task(posting.run())
        await asyncio.sleep(0)
        while not server.answers:
            await asyncio.sleep(0)
        assert one.ids == {1}
        server.answers[0].came_data(written(RESULT))
        server.answers[0].came_end(())
        await task
        assert (client.status, json.loads(client.body), client.over) == (200, RESULT, True)
        assert one.is_idle

    in_loop(work)


def test_a_stream_that_breaks_off_is_gone_on_with_where_the_server_gives_the_rest() -> None:
    async def work() -> None:
        client, server, one = Client(), Server(EVENTS, EVENTS), lane()
        posting = Posting(server, one, asked(client, "POST", written(CALL)), read(written(CALL)))  # type: ignore[arg-type]
        task = asyncio.create_task(posting.run())
        while not server.answers:
            await asyncio.sleep(0)
        server.answers[0].came_data(b"id: 1\ndata:\n\n")
        server.answers[0].came_end(())
        await task
        assert (client.messages, client.over) == ([], True)
        rest = Client()
        listening = Listening(server, one, asked(rest, "GET", last_event_id=b"1"))  # type: ignore[arg-type]
        hears = asyncio.create_task(listening.run())
        while len(server.answers) < 2:
            await asyncio.sleep(0)
        server.answers[1].came_data(b"id: 2\ndata: %b\n\n" % written(RESULT))
        server.answers[1].came_end(())
        await hears
        assert rest.messages == [RESULT]

    in_loop(work)


def test_a_stream_that_breaks_off_for_good_is_an_error_for_whoever_waits() -> None:
    async def work() -> None:
        client, server, one = Client(), Server(EVENTS), lane()
        posting = Posting(server, one, asked(client, "POST", written(CALL)), read(written(CALL)))  # type: ignore[arg-type]
        task = asyncio.create_task(posting.run())
        while not server.answers:
            await asyncio.sleep(0)
        server.answers[0].came_data(b'data: {"jsonrpc"')
        server.answers[0].came_end(())
        await task
        (said,) = client.messages
        assert (said["id"], "did not answer" in said["error"]["message"]) == (1, True)

    in_loop(work)


def test_a_server_that_refuses_is_passed_on_as_an_error() -> None:
    async def work() -> None:
        client, one = Client(), lane()
        server = Server(AnswerHead(status=503, headers=((b"content-type", b"text/plain"),)))
        posting = Posting(server, one, asked(client, "POST", written(CALL)), read(written(CALL)))  # type: ignore[arg-type]
        task = asyncio.create_task(posting.run())
        while not server.answers:
            await asyncio.sleep(0)
        server.answers[0].came_data(b"busy")
        server.answers[0].came_end(())
        await task
        assert "503" in json.loads(client.body)["error"]["message"]

    in_loop(work)


# at the sandbox's proxy


def request(method: str = "POST", **headers: str) -> NetRequest:
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return NetRequest(method=method, scheme="https", host="m.test", port=443, path="/mcp", headers=fields)


def begun(made: mcp_lanes.Lanes, number: int, **headers: str) -> mcp_lanes.Lane:
    found = made.of(request(**headers), number)
    assert found is not None
    found.talk.from_client(written({**CALL, "id": number}))
    return found


def test_at_the_proxy_an_id_in_use_begins_another_conversation() -> None:
    made = mcp_lanes.Lanes()
    one = begun(made, 1)
    assert begun(made, 2) is one
    other = begun(made, 1)
    assert other is not one
    assert begun(made, 1, authorization="x") not in (one, other)
    session = begun(made, 1, mcp_session_id="s1")
    assert begun(made, 2, mcp_session_id="s1") is session
    assert len(made.every()) == 4
    assert made.end(mcp_lanes.place_of(request(mcp_session_id="s1"))) == [session]
    assert len(made.every()) == 3


def test_at_the_proxy_a_session_gets_the_conversation_that_began_it() -> None:
    made = mcp_lanes.Lanes()
    place = mcp_lanes.place_of(request())
    one = made.new(place)
    assert one is not None
    made.name(place, "s1", one)
    assert made.of(request(mcp_session_id="s1"), 5) is one
    assert made.of(request(), 5) is not one


def test_at_the_proxy_there_are_so_many_conversations_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_lanes, "MAX_LANES", 2)
    made = mcp_lanes.Lanes()
    begun(made, 1)
    begun(made, 1)
    assert made.of(request(), 1) is None
    assert made.of(request(), 2) is not None
