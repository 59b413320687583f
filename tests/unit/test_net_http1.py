"""HTTP/1 through the front: order, framing, endings, and what broken or slow ends do."""

import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from tests.fakes.gate import EXCEPTION, FakeGate, answering, passing, refusing
from tests.fakes.net_front import Wire, a_world, page

from interlock.boundary.net.gate import Answered, Passage, Passed
from interlock.boundary.net.plan import NetLimits
from interlock.model.requests import NetRequest, Outcome

GET = b"GET /%s HTTP/1.1\r\nHost: far.test\r\n\r\n"


def reset(wire: Wire) -> None:
    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.sock.close()


def ends(wire: Wire) -> bool:
    """Say whether the connection is over, by an end or a reset."""
    try:
        return wire.rest() == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("later", [None, 0.005])
def test_pipelined_requests_are_answered_in_order(tmp_path: Path, later: float | None) -> None:
    with a_world(tmp_path, FakeGate(passing, later)) as world:
        world.serve(page)
        wire = world.connect()
        body = b"POST /p HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        wire.send(GET % b"1" + body + GET % b"2" + b"\r\n" + GET % b"3")
        answers = [wire.answer()[2] for _ in range(4)]
        wire.close()
        assert [a.split(b" ")[1] for a in answers] == [b"/1", b"/p", b"/2", b"/3"]
        assert answers[1].endswith(b"|abcde")
        assert world.far["far.test", 80].accepted == 1
        assert [r.path for r in world.gate.requests] == ["/1", "/p", "/2", "/3"]


def test_a_body_is_spooled_decided_and_sent_with_its_length(tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    def script(wire: Wire) -> None:
        _, fields = wire.head()
        seen.append(fields)
        body = wire.body(fields)
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    with a_world(tmp_path, limits=NetLimits(memory_bytes=1000)) as world:
        world.serve(script)
        wire = world.connect()
        data = bytes(range(256)) * 5000
        wire.send(
            b"PUT /u HTTP/1.1\r\nHost: far.test\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for at in range(0, len(data), 70_000):
            part = data[at : at + 70_000]
            wire.send(b"%x\r\n%b\r\n" % (len(part), part))
        time.sleep(0.05)
        assert world.gate.requests == []
        wire.send(b"0\r\n\r\n")
        status, _, body = wire.answer()
        wire.close()
        assert (status, body) == (200, data)
        assert seen[0]["content-length"] == str(len(data))
        assert "transfer-encoding" not in seen[0]
        assert world.gate.requests[0].body_size_bytes == len(data)
        assert world.gate.bodies == [len(data)]


def test_a_text_body_is_shown_to_the_gate(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page)
        wire = world.connect()
        body = b'{"to":"x"}'
        wire.ask(
            b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(body)
            + body
        )
        wire.close()
        assert world.gate.requests[0].body_text == body.decode()


def test_the_fields_behind_a_body_are_decided_on_with_the_others(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page)
        wire = world.connect()
        head = b"POST /a HTTP/1.1\r\nHost: far.test\r\nX-One: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.ask(head + b"1\r\nb\r\n0\r\nX-Note: secret\r\nAuthorization: no\r\nX-Api-Key: k\r\n\r\n")
        wire.close()
    one, note, key = world.gate.requests[0].headers[-3:]
    assert (one, note) == (("x-one", "1"), ("x-note", "secret"))
    assert key[1].startswith("sha256:")


def test_trailers_go_through_both_ways(tmp_path: Path) -> None:
    got: list[bytes] = []

    def script(wire: Wire) -> None:
        _, fields = wire.head()
        wire.body(fields)
        got.append(wire.trailers)
        wire.send(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nwell\r\n0\r\nX-Sum: 9\r\nHost: evil\r\n\r\n"
        )

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(
            b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Req: 1\r\n\r\n"
        )
        assert wire.answer()[2] == b"well"
        wire.close()
        assert got == [b"x-req: 1\r\n\r\n"]
        assert wire.trailers == b"x-sum: 9\r\n\r\n"


def test_continue_is_answered_by_the_boundary(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page)
        wire = world.connect()
        wire.send(b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert wire.answer()[0] == 100
        assert world.dials == []
        wire.send(b"abc")
        assert wire.answer()[2].endswith(b"|abc")
        wire.close()


def test_a_body_too_large_is_answered_413(tmp_path: Path) -> None:
    with a_world(tmp_path, limits=NetLimits(body_bytes=1000)) as world:
        wire = world.connect()
        wire.send(
            b"POST / HTTP/1.1\r\nHost: far.test\r\nExpect: 100-continue\r\nContent-Length: 2000\r\n\r\n"
        )
        assert wire.answer()[0] == 413
        assert ends(wire)
        wire.close()
        wire = world.connect()
        wire.send(
            b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n"
            + b"a" * 0x800
            + b"\r\n"
        )
        assert wire.answer()[0] == 413
        wire.close()
        assert world.gate.requests == []


@pytest.mark.parametrize(
    "raw",
    [
        b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX : a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n3\rX\nabc\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 5000,
        b"GET / HTTP/1.1\nHost: far.test\n\n",
        b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: far.test\r\nX: " + b"a" * 300_000,
        b"GET / HTTP/1.1\r\n\r\n",
        b"BREW / HTTP/1.1\r\nHost: far.test\r\n\r\n",
    ],
)  # fmt: skip
def test_a_broken_request_is_answered_and_ends_the_connection(tmp_path: Path, raw: bytes) -> None:
    with a_world(tmp_path) as world:
        world.serve(page)
        wire = world.connect()
        wire.send(raw)
        status, fields, _ = wire.answer()
        assert 400 <= status <= 501
        assert fields["connection"] == "close"
        assert ends(wire)
        wire.close()
        assert world.gate.requests == []
        assert world.dials == []
        assert len(world.gate.away) == 1


def test_garbage_after_a_request_does_not_reach_the_far_side(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        world.serve(page)
        wire = world.connect()
        wire.send(GET % b"a" + b"\x00\x01garbage\r\n\r\n")
        assert wire.answer()[0] == 200
        assert wire.answer()[0] == 400
        assert ends(wire)
        wire.close()
        assert len(world.gate.requests) == 1


def test_what_speaks_neither_http_nor_tls_is_reset(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        for raw in (
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"\x00\x00\x00\x01",
            b"EHLO a\r\n",
            b"\x16\x03\x01\x00\x05hello",
        ):
            wire = world.connect(port=22)
            wire.send(raw)
            with pytest.raises(ConnectionResetError):
                wire.rest()
            wire.close()
        assert len(world.gate.away) == 4
        assert world.gate.requests == []


def test_head_204_304_have_no_body(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        for raw in (
            b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        ):
            wire.head()
            wire.send(raw)

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        assert wire.ask(b"HEAD / HTTP/1.1\r\nHost: far.test\r\n\r\n", head=True)[1]["content-length"] == "12"
        assert wire.ask(GET % b"")[1]["content-length"] == "12"
        assert "content-length" not in wire.ask(GET % b"")[1]
        assert wire.ask(GET % b"")[2] == b"ok"
        wire.close()
        assert world.far["far.test", 80].accepted == 1


def test_http_1_0_ends_with_its_answer_unless_asked(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        while True:
            wire.head()
            wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        status, fields, body = wire.ask(b"GET / HTTP/1.0\r\n\r\n")
        assert (status, body) == (200, b"ab")
        assert "transfer-encoding" not in fields
        wire.close()
        world.serve(page)
        wire = world.connect()
        for _ in range(2):
            status, fields, _ = wire.ask(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert fields["connection"] == "keep-alive"
        wire.close()


def test_an_answer_until_close_becomes_chunks(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        for _ in range(2):
            status, fields, body = wire.ask(GET % b"")
            assert (status, body, fields["transfer-encoding"]) == (200, b"until the end", "chunked")
        wire.close()


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n",
    ],
)
def test_a_cut_answer_is_cut_for_the_client_too(tmp_path: Path, raw: bytes) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(raw)

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        with pytest.raises((EOFError, ConnectionError)):
            wire.ask(GET % b"")
        wire.close()
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.UNKNOWN
        assert world.gate.responses[0][2] is None


def test_a_reset_in_mid_body_is_unknown(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        time.sleep(0.05)
        reset(wire)

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        with pytest.raises((EOFError, ConnectionError)):
            wire.ask(GET % b"")
        wire.close()
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 20",
        b"SSH-2.0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 102 X\r\n\r\n" * 40,
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000,
    ],
)
def test_a_broken_answer_is_a_502(tmp_path: Path, raw: bytes) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(raw)
        time.sleep(0.05)

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(GET % b"")
        status, fields, _ = wire.answer()
        while status < 200:
            status, fields, _ = wire.answer()
        assert status == 502
        assert fields["content-type"] == "application/problem+json"
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.UNKNOWN
        world.serve(page)
        assert wire.ask(GET % b"")[0] == 200
        wire.close()


def test_a_dead_far_side_is_a_502(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        wire = world.connect()
        assert wire.ask(GET % b"")[0] == 502
        wire.close()
        assert world.gate.responses[0][1].outcome is Outcome.FAILED


def test_an_idle_connection_that_was_closed_is_replaced_once(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        wire.head()  # the second request is read, and not answered

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        assert wire.ask(GET % b"1")[0] == 200
        assert wire.ask(GET % b"2")[0] == 200
        assert world.far["far.test", 80].accepted == 2
        post = b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 0\r\n\r\n"
        assert wire.ask(post)[0] == 502  # never sent twice
        wire.close()
        assert [r.outcome for _, r, _ in world.gate.responses] == [
            Outcome.DONE,
            Outcome.DONE,
            Outcome.UNKNOWN,
        ]
        assert len(world.gate.requests) == 3


def test_a_stream_of_events_comes_at_once(tmp_path: Path) -> None:
    go = threading.Event()

    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for n in range(3):
            assert go.wait(5)
            go.clear()
            wire.send(b"data: %d\n\n" % n)

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(GET % b"")
        _, fields = wire.head()
        assert fields["content-type"] == "text/event-stream"
        for n in range(3):
            go.set()
            assert wire.until(b"\n\n\r\n") == b"9\r\ndata: %d\n\n\r\n" % n
        assert wire.until(b"0\r\n\r\n")
        wire.close()


def test_interim_answers_go_through_but_for_continue(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        status, fields, _ = wire.ask(GET % b"")
        assert (status, fields["link"]) == (103, "</a>")
        assert wire.answer()[0] == 200
        wire.close()


def test_an_answer_that_nobody_asked_for_is_no_ones(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        )
        time.sleep(0.2)

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        assert wire.ask(GET % b"1")[2] == b"ok"
        assert wire.ask(GET % b"2")[2] == b"ok"
        wire.close()
        assert world.far["far.test", 80].accepted == 2


def test_an_early_answer_is_passed_on(tmp_path: Path) -> None:
    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        wire.sock.shutdown(socket.SHUT_WR)
        wire.rest()

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        size = 3_000_000
        wire.send(b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: %d\r\n\r\n" % size + b"a" * size)
        assert wire.answer()[::2] == (401, b"no")
        wire.close()


def test_a_slow_client_does_not_fill_memory(tmp_path: Path) -> None:
    size = 60_000_000
    sent = [0]

    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // 1_000_000):
            wire.send(b"a" * 1_000_000)
            sent[0] += 1_000_000

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(GET % b"")
        wire.head()
        time.sleep(0.5)
        assert sent[0] < size * 2 // 3  # what kernels and marks hold
        assert len(wire.exactly(size)) == size
        wire.close()
        world.eventually(lambda: len(world.gate.responses) == 1)
        _, response, body = world.gate.responses[0]
        assert (response.outcome, response.size_bytes, body) == (Outcome.DONE, size, None)


def test_a_client_that_asks_on_and_reads_nothing_has_to_wait(tmp_path: Path) -> None:
    count = 4_000

    def rule(_request: NetRequest, effect_id: str) -> Passage:
        return Answered(effect_id=effect_id, status=200, content_type="text/plain", body=b"a" * 10_000)

    with a_world(tmp_path, FakeGate(rule)) as world:
        wire = world.connect()
        sender = threading.Thread(target=lambda: wire.send(GET % b"" * count), daemon=True)
        sender.start()
        seen = -1
        while seen != len(world.gate.requests):
            seen = len(world.gate.requests)
            time.sleep(0.3)
        assert seen < count
        for _ in range(count):
            status, fields = wire.head()
            assert status == "HTTP/1.1 200 OK"
            wire.body(fields)
        sender.join()
        wire.close()


def test_a_slow_far_side_takes_the_body_at_its_pace(tmp_path: Path) -> None:
    size = 20_000_000

    def script(wire: Wire) -> None:
        _, fields = wire.head()
        time.sleep(0.3)
        assert len(wire.body(fields)) == size
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(b"PUT / HTTP/1.1\r\nHost: far.test\r\nContent-Length: %d\r\n\r\n" % size + b"a" * size)
        assert wire.answer()[0] == 200
        wire.close()


def test_a_client_that_goes_ends_the_far_side(tmp_path: Path) -> None:
    gone = threading.Event()

    def script(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                wire.send(b"tick")
                time.sleep(0.01)
        except OSError:
            gone.set()

    with a_world(tmp_path) as world:
        world.serve(script)
        wire = world.connect()
        wire.send(GET % b"")
        wire.head()
        reset(wire)
        assert gone.wait(5)
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.UNKNOWN


def test_a_client_that_goes_before_the_decision_sends_nothing(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(passing, 0.1)) as world:
        world.serve(page)
        wire = world.connect()
        wire.send(GET % b"")
        world.eventually(lambda: len(world.gate.requests) == 1)
        reset(wire)
        world.eventually(lambda: len(world.gate.responses) == 1)
        assert world.gate.responses[0][1].outcome is Outcome.FAILED
        assert world.dials == []


def test_a_half_closed_client_still_gets_its_answer(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(passing, 0.05)) as world:
        world.serve(page)
        wire = world.connect()
        wire.send(GET % b"a")
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.answer()[0] == 200
        assert ends(wire)
        wire.close()


def test_a_body_that_is_cut_is_never_proposed(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        wire = world.connect()
        wire.send(b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 10\r\n\r\nabc")
        wire.sock.shutdown(socket.SHUT_WR)
        assert ends(wire)
        wire.close()
        assert world.gate.requests == []


def test_the_monitor_may_answer_itself(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(answering)) as world:
        wire = world.connect()
        assert wire.ask(GET % b"")[::2] == (200, b"from the monitor")
        assert wire.ask(b"HEAD / HTTP/1.1\r\nHost: far.test\r\n\r\n", head=True)[0] == 200
        assert wire.ask(GET % b"")[::2] == (200, b"from the monitor")
        wire.close()
        assert world.dials == []


def test_a_refused_post_keeps_the_connection(tmp_path: Path) -> None:
    def rule(request: NetRequest, effect_id: str) -> Passage:
        return refusing(request, effect_id) if request.method == "POST" else Passed(effect_id=effect_id)

    with a_world(tmp_path, FakeGate(rule)) as world:
        world.serve(page)
        wire = world.connect()
        status, _, body = wire.ask(b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 3\r\n\r\nabc")
        assert status == 403
        assert EXCEPTION.rationale.encode() in body
        assert wire.ask(GET % b"")[0] == 200
        wire.close()


@pytest.mark.parametrize(
    "raw", [b"GET / HT", b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 9\r\n\r\nab", b""]
)
def test_what_takes_too_long_is_ended(tmp_path: Path, raw: bytes) -> None:
    with a_world(tmp_path, limits=NetLimits(head_seconds=0.3, idle_seconds=0.3)) as world:
        wire = world.connect()
        wire.send(raw)
        if raw:
            assert wire.answer()[0] == 408
        assert ends(wire)
        wire.close()
        assert len(world.gate.away) == 1


def test_a_trickled_head_is_read_or_ended(tmp_path: Path) -> None:
    with a_world(tmp_path, limits=NetLimits(head_seconds=2.0)) as world:
        world.serve(page)
        wire = world.connect()
        for at in range(len(GET)):
            wire.send((GET % b"")[at : at + 1])
            time.sleep(0.002)
        assert wire.answer()[0] == 200
        started = time.monotonic()
        wire.send(b"GET / HTTP/1.1\r\nHost: far.test\r\n")
        with pytest.raises((ConnectionError, EOFError)):
            while time.monotonic() - started < 9:
                wire.send(b"X: y\r\n")
                time.sleep(0.02)
        assert time.monotonic() - started < 8
        wire.close()


def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    with a_world(tmp_path, limits=NetLimits(idle_seconds=0.3)) as world:
        world.serve(page)
        wire = world.connect()
        assert wire.ask(GET % b"")[0] == 200
        assert ends(wire)
        wire.close()


def test_a_thousand_connections_at_once(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(answering), uv=True) as world:
        wires = [world.connect() for _ in range(1000)]
        for wire in wires:
            wire.send(GET % b"")
        assert all(wire.answer()[0] == 200 for wire in wires)
        world.eventually(lambda: world.front.connections == 1000)
        for wire in wires:
            wire.close()
        world.eventually(lambda: world.front.connections == 0)


def test_too_many_connections_are_refused(tmp_path: Path) -> None:
    with a_world(tmp_path, FakeGate(answering), limits=NetLimits(connections=3)) as world:
        wires = [world.connect() for _ in range(3)]
        assert all(wire.ask(GET % b"")[0] == 200 for wire in wires)
        with pytest.raises(ConnectionError):  # at once, or with the first thing that it does
            world.connect().ask(GET % b"")
        for wire in wires:
            wire.close()
        time.sleep(0.05)
        wire = world.connect()
        assert wire.ask(GET % b"")[0] == 200
        wire.close()
