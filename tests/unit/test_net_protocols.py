"""Which protocol is spoken with whom: ALPN, HTTP/2 on either side, calls that stay open, and upgrades to WebSocket."""

import base64
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
from tests.fakes.gate import FakeGate, passing, refusing
from tests.fakes.net_front import Far, Wire, World, a_world, page
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, Pong, Request, TextMessage

from interlock.boundary.net.plan import NetLimits, NetPlan
from interlock.boundary.net.pool import Way
from interlock.model.requests import Outcome


class H2:
    """A blocking HTTP/2 end over a wire."""

    def __init__(self, wire: Wire, *, client: bool = True) -> None:
        self.wire = wire
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=client, header_encoding="utf-8")
        )
        self.h2.initiate_connection()
        self.events: list[h2.events.Event] = []
        self.flush()

    def flush(self) -> None:
        self.wire.send(self.h2.data_to_send())

    def ask(self, stream: int, *fields: tuple[str, str], end: bool = True, method: str = "GET") -> None:
        head = [(":method", method), (":scheme", self.scheme), (":authority", "far.test"), (":path", "/h")]
        self.h2.send_headers(stream, [*head, *fields], end_stream=end)
        self.flush()

    scheme = "https"

    def until(self, holds: Callable[[list[h2.events.Event]], bool]) -> list[h2.events.Event]:
        while not holds(self.events):
            data = self.wire.buffer or self.wire.sock.recv(65536)
            self.wire.buffer = b""
            if not data:
                raise EOFError
            found = self.h2.receive_data(data)
            for event in found:
                if isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
            self.events += found
            self.flush()
        return self.events

    def beyond(self, seen: int) -> None:
        self.until(lambda events: len(events) > seen)

    def answer(self, stream: int) -> tuple[dict[str, str], bytes]:
        def over(events: list[h2.events.Event]) -> bool:
            return any(
                isinstance(e, h2.events.StreamEnded | h2.events.StreamReset) and e.stream_id == stream
                for e in events
            )

        fields: dict[str, str] = {}
        body = b""
        for event in self.until(over):
            if getattr(event, "stream_id", None) != stream:
                continue
            if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived):
                fields |= {str(name): str(value) for name, value in event.headers}
            elif isinstance(event, h2.events.DataReceived):
                body += bytes(event.data or b"")
        return fields, body


def h2_page(wire: Wire) -> None:
    """Answer each request with its path and body, and trailers."""
    end = H2(wire, client=False)
    bodies: dict[int, bytes] = {}
    seen = 0
    while True:
        end.beyond(seen)
        for event in end.events[seen:]:
            if isinstance(event, h2.events.DataReceived):
                bodies[event.stream_id] = bodies.get(event.stream_id, b"") + bytes(event.data or b"")
            elif isinstance(event, h2.events.StreamEnded):
                stream = event.stream_id
                end.h2.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
                end.h2.send_data(stream, b"got " + bodies.get(stream, b""))
                end.h2.send_headers(stream, [("grpc-status", "0")], end_stream=True)
        seen = len(end.events)
        end.flush()


def serve_h2(world: World, script: Callable[[Wire], None] = h2_page) -> Far:
    far = world.far["far.test", 443] = Far(
        script, world.far_authority.context("far.test", ("h2", "http/1.1"))
    )
    return far


def test_http2_is_offered_once_the_far_side_is_known_to_speak_it(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        serve_h2(world)
        wire = world.connect_tls(alpn=("h2", "http/1.1"))
        assert wire.sock.selected_alpn_protocol() == "http/1.1"  # type: ignore[attr-defined]
        status, _, body = wire.ask(b"GET /one HTTP/1.1\r\nHost: far.test\r\n\r\n")
        assert (status, body) == (200, b"got ")
        wire = world.connect_tls(alpn=("h2", "http/1.1"))
        assert wire.sock.selected_alpn_protocol() == "h2"  # type: ignore[attr-defined]
        end = H2(wire)
        end.ask(1)
        end.ask(3, end=False, method="POST")
        end.h2.send_data(3, b"body", end_stream=True)
        end.flush()
        assert end.answer(1)[0][":status"] == "200"
        assert end.answer(3) == (
            {":status": "200", "content-type": "application/grpc", "grpc-status": "0"},
            b"got body",
        )
        assert world.far["far.test", 443].accepted == 1
        assert [r.protocol for r in world.gate.requests] == ["http/1.1", "h2", "h2"]


def test_nothing_is_dialled_for_alpn_but_what_is_probed(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        serve_h2(world)
        world.connect_tls(alpn=("h2", "http/1.1"))
        assert world.dials == []
    with a_world(tmp_path, plan=NetPlan(folder="", probed=("far.test",))) as world:
        serve_h2(world)
        wire = world.connect_tls(alpn=("h2", "http/1.1"))
        assert wire.sock.selected_alpn_protocol() == "h2"  # type: ignore[attr-defined]
        end = H2(wire)
        end.ask(1)
        assert end.answer(1)[1] == b"got "
        assert len(world.dials) == 1


def test_a_client_of_http2_alone_reaches_a_far_side_of_http1(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page, port=443, tls=True)
        end = H2(world.connect_tls(alpn=("h2",)))
        end.ask(1, ("cookie", "a=b"), ("cookie", "c=d"))
        assert end.answer(1)[1] == b"GET /h HTTP/1.1|far.test|"


def test_http2_without_tls_is_known_by_its_preface(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page)
        end = H2(world.connect())
        end.scheme = "http"
        end.ask(1)
        assert end.answer(1)[1] == b"GET /h HTTP/1.1|far.test|"


def plain(world: World) -> H2:
    end = H2(world.connect())
    end.scheme = "http"
    return end


def test_http2_without_tls_is_spoken_with_a_far_side_that_speaks_it(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        far = world.serve(h2_page)
        for end in (plain(world), plain(world)):
            end.ask(1)
            end.ask(3, end=False, method="POST")
            end.h2.send_data(3, b"body", end_stream=True)
            end.flush()
            assert end.answer(1)[0][":status"] == "200"
            assert end.answer(3)[1] == b"got body"
        assert far.accepted == 1
        way = Way(address="", host="far.test", port=80, tls=False, published=False)
        assert world.front.pool.ready(way, True) is not None
        assert world.front.pool.ready(way, False) is None  # who speaks HTTP/1 does not share it


def test_nothing_of_a_request_leaves_before_the_far_side_speaks_http2(tmp_path: Path) -> None:
    came: list[bytes] = []

    def silent(wire: Wire) -> None:
        came.append(wire.rest())

    with a_world(tmp_path, limits=NetLimits(connect_seconds=0.3)) as world:
        world.serve(silent)
        end = plain(world)
        end.ask(1, ("x-own", "secret"), method="POST", end=False)
        end.h2.send_data(1, b"GET /smuggled HTTP/1.1\r\nHost: far.test\r\n\r\n", end_stream=True)
        end.flush()
        fields, body = end.answer(1)
        assert (fields[":status"], b"did not begin to speak HTTP/2" in body) == ("504", True)
        world.eventually(lambda: len(came) == 1)
        assert came[0].startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert b"smuggled" not in came[0]
        assert [response.outcome for _, response, _ in world.gate.responses] == [Outcome.FAILED]


def test_http2_that_was_idle_long_is_closed(tmp_path: Path) -> None:
    ended, go_on = threading.Event(), threading.Event()

    def script(wire: Wire) -> None:
        end = H2(wire, client=False)
        try:
            for stream in (1, 3):
                end.until(
                    lambda events, stream=stream: any(  # type: ignore[misc]
                        isinstance(e, h2.events.StreamEnded) and e.stream_id == stream for e in events
                    )
                )
                if stream == 3:
                    go_on.wait(10)
                end.h2.send_headers(stream, [(":status", "200")], end_stream=True)
                end.flush()
            end.beyond(len(end.events) + 99)
        finally:
            ended.set()

    def sweep(seconds: float) -> None:
        world.on_loop(lambda: world.front.pool.sweep(world.loop.time() + seconds))

    with a_world(tmp_path) as world:
        serve_h2(world, script)
        end = H2(world.connect_tls(alpn=("h2",)))
        end.ask(1)
        assert end.answer(1)[0][":status"] == "200"
        sweep(world.plan.limits.idle_seconds - 10)
        end.ask(3)
        world.eventually(lambda: len(world.gate.requests) == 2)
        world.eventually(lambda: all(far.idle_since is None for far in world.front.pool._every))  # type: ignore[attr-defined]
        sweep(world.plan.limits.idle_seconds * 100)
        go_on.set()
        assert end.answer(3)[0][":status"] == "200"
        assert not ended.is_set()
        world.eventually(lambda: len(world.gate.responses) == 2)
        sweep(world.plan.limits.idle_seconds + 10)
        assert ended.wait(5)
        assert world.front.pool._shared == {}


@pytest.mark.parametrize("kind", ["application/grpc", "text/plain"])
def test_a_message_refused_within_the_answer_never_makes_it_look_whole(tmp_path: Path, kind: str) -> None:
    def script(wire: Wire) -> None:
        end = H2(wire, client=False)
        end.until(lambda events: any(isinstance(e, h2.events.DataReceived) for e in events))
        end.h2.send_headers(1, [(":status", "200"), ("content-type", kind)])
        end.h2.send_data(1, message("echo"))
        end.flush()
        end.until(lambda events: any(isinstance(e, h2.events.StreamReset) for e in events))

    with a_world(tmp_path) as world:
        serve_h2(world, script)
        end = H2(world.connect_tls(alpn=("h2",)))
        end.ask(1, ("content-type", "application/grpc"), end=False, method="POST")
        end.h2.send_data(1, message("one"))
        end.flush()
        end.until(lambda events: any(isinstance(e, h2.events.DataReceived) for e in events))
        end.h2.send_data(1, message("forbidden"))
        end.flush()
        fields, body = end.answer(1)
        assert body == message("echo")
        if kind == "application/grpc":
            assert fields["grpc-status"] == "7"
            assert "the host is not allowed" in fields["grpc-message"]
        else:
            assert "grpc-status" not in fields
            assert any(isinstance(e, h2.events.StreamReset) for e in end.events)
            assert not any(isinstance(e, h2.events.StreamEnded) for e in end.events)
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.UNKNOWN


def test_a_refused_call_reads_why_in_its_trailers(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(refusing)) as world:
        end = H2(world.connect_tls(alpn=("h2",)))
        end.ask(1, ("content-type", "application/grpc"), ("te", "trailers"), method="POST")
        fields, body = end.answer(1)
        assert (fields[":status"], fields["grpc-status"], body) == ("200", "7", b"")
        end.ask(3)
        assert end.answer(3)[0][":status"] == "403"
        assert world.dials == []


def message(text: str) -> bytes:
    return b"\0" + len(text).to_bytes(4, "big") + text.encode()


@pytest.mark.parametrize("later", [None, 0.02])
def test_a_call_that_stays_open_is_decided_message_by_message(tmp_path: Path, later: float | None) -> None:
    got: list[bytes] = []

    def script(wire: Wire) -> None:
        end = H2(wire, client=False)
        seen = 0
        while True:
            end.beyond(seen)
            for event in end.events[seen:]:
                if isinstance(event, h2.events.RequestReceived):
                    end.h2.send_headers(1, [(":status", "200"), ("content-type", "application/grpc")])
                if isinstance(event, h2.events.DataReceived):
                    got.append(bytes(event.data or b""))
                    end.h2.send_data(1, message("echo"))
                if isinstance(event, h2.events.StreamEnded):
                    end.h2.send_headers(1, [("grpc-status", "0")], end_stream=True)
            seen = len(end.events)
            end.flush()

    with a_world(tmp_path, FakeGate(passing, later)) as world:
        serve_h2(world, script)
        end = H2(world.connect_tls(alpn=("h2",)))
        end.ask(1, ("content-type", "application/grpc"), ("te", "trailers"), end=False, method="POST")
        end.h2.send_data(1, message("one"))
        end.flush()
        end.until(lambda events: any(isinstance(e, h2.events.DataReceived) for e in events))
        assert world.gate.requests[0].body_size_bytes == -1
        end.h2.send_data(1, message("two"), end_stream=True)
        end.flush()
        fields, body = end.answer(1)
        assert fields["grpc-status"] == "0"
        assert body == message("echo") * 2
        assert got == [message("one"), message("two")]
        assert [(m.stream, m.text) for m in world.gate.messages] == [("e1", "one"), ("e1", "two")]
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.DONE


def test_a_refused_message_never_leaves(tmp_path: Path) -> None:
    got: list[bytes] = []

    def script(wire: Wire) -> None:
        end = H2(wire, client=False)
        while True:
            end.until(lambda events: any(isinstance(e, h2.events.DataReceived) for e in events))
            got.append(b"data")
            return

    with a_world(tmp_path) as world:
        serve_h2(world, script)
        end = H2(world.connect_tls(alpn=("h2",)))
        end.ask(1, ("content-type", "application/grpc"), end=False, method="POST")
        end.h2.send_data(1, message("forbidden"))
        end.flush()
        fields, _ = end.answer(1)
        assert fields["grpc-status"] == "7"
        assert got == []
        assert world.gate.responses[0][1].outcome is Outcome.UNKNOWN


def ws_echo(wire: Wire) -> None:
    ws = WSConnection(ConnectionType.SERVER)
    while True:
        data = wire.sock.recv(65536)
        if not data:
            return
        ws.receive_data(data)
        for event in ws.events():
            if isinstance(event, Request):
                assert event.extensions == []
                wire.send(ws.send(AcceptConnection(subprotocol="chat")))
            elif isinstance(event, TextMessage):
                wire.send(ws.send(TextMessage(data=str(event.data).upper())))
            elif isinstance(event, Ping):
                wire.send(ws.send(event.response()))
            elif isinstance(event, CloseConnection):
                wire.send(ws.send(event.response()))
                return


class Ws:
    """A blocking WebSocket client over a wire."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.ws = WSConnection(ConnectionType.CLIENT)
        self.wire.send(self.ws.send(Request(host="far.test", target="/ws", subprotocols=["chat"])))
        self.found: list[object] = []

    def next(self) -> object:
        while not self.found:
            data = self.wire.sock.recv(65536)
            self.ws.receive_data(data or None)
            self.found += list(self.ws.events())
        return self.found.pop(0)

    def send(self, event: TextMessage | CloseConnection | Ping) -> None:
        self.wire.send(self.ws.send(event))


@pytest.mark.parametrize("tls", [False, True])
def test_a_websocket_is_decided_message_by_message(tmp_path: Path, tls: bool) -> None:
    with a_world(tmp_path) as world:
        world.serve(ws_echo, port=443 if tls else 80, tls=tls)
        ws = Ws(world.connect_tls(alpn=("http/1.1",)) if tls else world.connect())
        accepted = ws.next()
        assert isinstance(accepted, AcceptConnection)
        assert accepted.subprotocol == "chat"
        ws.send(TextMessage(data="hello"))
        found = ws.next()
        assert isinstance(found, TextMessage)
        assert found.data == "HELLO"
        ws.send(Ping(payload=b"x"))
        assert isinstance(ws.next(), Pong)
        ws.send(CloseConnection(code=1000))
        assert isinstance(ws.next(), CloseConnection)
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.requests[0].scheme == ("wss" if tls else "ws")
        assert [(m.stream, m.text) for m in world.gate.messages] == [("e1", "hello")]
        assert world.gate.responses[0][1].outcome is Outcome.DONE


def badly(wire: Wire) -> None:
    wire.head()
    wire.send(b"HTTP/1.1 101 X\r\nSec-WebSocket-Accept: a\r\n\r\n")
    wire.rest()


def test_a_far_side_that_does_not_upgrade_just_answers(tmp_path: Path) -> None:
    key = base64.b64encode(b"a" * 16).decode()
    ask = (
        "GET /ws HTTP/1.1\r\nHost: far.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    ).encode()
    with a_world(tmp_path) as world:
        world.serve(page)
        wire = world.connect()
        assert wire.ask(ask)[0] == 200
        assert wire.ask(ask.replace(b"13", b"12"))[0] == 426
        world.serve(badly)
        assert world.connect().ask(ask)[0] == 502
        wire.sock.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("tls", [False, True])
def test_the_run_s_end_says_so_to_both_ends_of_a_websocket(tmp_path: Path, tls: bool) -> None:
    heard: list[object] = []

    def script(wire: Wire) -> None:
        ws = WSConnection(ConnectionType.SERVER)
        while data := wire.sock.recv(65536):
            ws.receive_data(data)
            for event in ws.events():
                if isinstance(event, Request):
                    wire.send(ws.send(AcceptConnection(subprotocol="chat")))
                elif isinstance(event, CloseConnection):
                    heard.append(event.code)
        heard.append("end")
        time.sleep(0.5)  # it does not close its own side

    with a_world(tmp_path) as world:
        world.serve(script, port=443 if tls else 80, tls=tls)
        ws = Ws(world.connect_tls(alpn=("http/1.1",)) if tls else world.connect())
        assert isinstance(ws.next(), AcceptConnection)
        world.eventually(lambda: len(world.front.endings) == 1)
        (ending,) = world.front.endings
        relay = ending.__self__  # type: ignore[attr-defined]
        begun = time.monotonic()
        world.on_loop(world.front.end)
        found = ws.next()
        assert isinstance(found, CloseConnection)
        assert found.code == 1001
        world.eventually(lambda: heard == [1001, "end"])
        assert relay._far.link.gone
        assert time.monotonic() - begun < 0.4
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].detail == "the run ended"
        assert world.front.endings == set()
