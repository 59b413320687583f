"""HTTP/2 on the far side: what is sent on, how answers come back, and what is certain of a request that failed."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.h2_peer import Peer
from tests.fakes.net_links import Exchanged, MemoryLink, Step, Surroundings

from interlock.boundary.net.http2_far import Http2Far
from interlock.boundary.net.settings import FarConnection
from interlock.boundary.net.sides import FarSide, RequestHead
from interlock.model.requests import Outcome

HEAD = RequestHead(
    method="GET",
    scheme="https",
    authority_host="api.test",
    port=443,
    target="/a?b=1",
    headers=((b"accept", b"*/*"), (b"authorization", b"Bearer 1")),
    length=0,
    protocol="h2",
)
POST = replace(HEAD, method="POST", length=None)


def nothing(_exchange: Exchanged) -> None:
    pass


class Side:
    """Our side, with an h2 server at the other end."""

    def __init__(self, *, high_bytes: int = 1 << 40, settled: bool = True) -> None:
        self.loop = Step()
        self.link = MemoryLink("h2", high_bytes=high_bytes)
        self.setting = Surroundings(self.loop, lambda client, head: Exchanged(client, head, nothing))
        self.far = Http2Far(self.link, self.setting)
        self.told: list[str] = []
        self.far.on_idle = self._idle
        self.far.on_gone = self._gone
        self.peer = Peer(self.link, self.loop, client=False, quiet=not settled)

    def begin(self, head: RequestHead = HEAD, *, body: bool = False) -> tuple[Exchanged, FarSide]:
        exchange = Exchanged(None, head, nothing)
        return exchange, self.far.begin(head, exchange, body=body)

    def answer(
        self, stream: int, *fields: tuple[bytes, bytes], status: bytes = b"200", end: bool = False
    ) -> None:
        self.peer.h2.send_headers(stream, [(b":status", status), *fields], end_stream=end)

    def _idle(self, far: FarConnection) -> None:
        assert far.room
        self.told.append("idle")

    def _gone(self, far: FarConnection) -> None:
        assert not far.room
        self.told.append("gone")


def test_a_request_is_written_from_its_head_alone_and_its_answer_comes_back() -> None:
    side = Side()
    exchange, _ = side.begin()
    request = next(event for event in side.peer.talk() if type(event).__name__ == "RequestReceived")
    assert [tuple(field) for field in request.headers] == [  # type: ignore[attr-defined]
        (b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"api.test"), (b":path", b"/a?b=1"),
        (b"accept", b"*/*"), (b"authorization", b"Bearer 1"),
    ]  # fmt: skip
    assert request.stream_ended is not None  # type: ignore[attr-defined]
    side.answer(1, (b"content-type", b"text/plain"), (b"content-length", b"2"))
    side.peer.h2.send_data(1, b"hi", end_stream=True)
    side.peer.talk()
    assert exchange.answer is not None
    assert (exchange.answer.status, exchange.answer.length, bytes(exchange.answer_body)) == (200, 2, b"hi")
    assert exchange.answer_whole
    assert side.told == ["idle"]


def test_bodies_and_trailers_go_both_ways_on_many_streams() -> None:
    side = Side()
    pairs = [side.begin(POST, body=True) for _ in range(5)]
    for at, (_, far) in enumerate(pairs):
        far.send(b"body %d" % at)
        far.end(((b"checksum", b"1"),))
    side.peer.talk()
    for at, (exchange, _) in enumerate(pairs):
        stream = 2 * at + 1
        assert side.peer.answer_to(stream)[1:] == (b"body %d" % at, {b"checksum": b"1"}, True)
        side.answer(stream)
        side.peer.h2.send_data(stream, b"x" * at)
        side.peer.h2.send_headers(stream, [(b"grpc-status", b"0")], end_stream=True)
        side.peer.talk()
        assert (bytes(exchange.answer_body), exchange.answer_trailers) == (
            b"x" * at,
            ((b"grpc-status", b"0"),),
        )
    assert side.told == ["idle"]


def test_a_body_of_known_length_says_so() -> None:
    side = Side()
    _, far = side.begin(replace(POST, length=3), body=True)
    far.send(b"abc")
    far.end(())
    request = next(event for event in side.peer.talk() if type(event).__name__ == "RequestReceived")
    assert (b"content-length", b"3") in [tuple(field) for field in request.headers]  # type: ignore[attr-defined]


def test_an_answer_that_ends_with_its_head_has_no_body() -> None:
    side = Side()
    exchange, _ = side.begin()
    side.peer.talk()
    side.answer(1, (b"grpc-status", b"5"), end=True)
    side.peer.talk()
    assert exchange.answer is not None
    assert (exchange.answer.length, exchange.answer_whole) == (0, True)


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_the_length_of_a_body_that_is_not_there_is_no_fault(method: str) -> None:
    side = Side()
    exchange, _ = side.begin(replace(HEAD, method=method))
    side.peer.talk()
    side.answer(1, (b"content-length", b"55"), status=b"200" if method == "HEAD" else b"304", end=True)
    side.peer.talk()
    assert exchange.answer_whole
    assert exchange.answer is not None
    assert (b"content-length", b"55") in exchange.answer.headers


def test_interim_answers_come_before_the_answer() -> None:
    side = Side()
    exchange, _ = side.begin()
    side.peer.talk()
    side.answer(1, (b"link", b"</a>"), status=b"103")
    side.answer(1, end=True)
    side.peer.talk()
    assert [head.status for head in exchange.interims] == [103]
    assert exchange.answer_whole


BAD_ANSWERS: list[tuple[str, Callable[[Peer], None]]] = [
    ("a field of HTTP/1", lambda peer: peer.h2.send_headers(1, [(b":status", b"200"), (b"connection", b"close")])),
    ("upper case", lambda peer: peer.h2.send_headers(1, [(b":status", b"200"), (b"X", b"1")])),
    ("a line feed", lambda peer: peer.h2.send_headers(1, [(b":status", b"200"), (b"x", b"1\r\nset-cookie: a")])),
    ("another pseudo field", lambda peer: peer.h2.send_headers(1, [(b":status", b"200"), (b":path", b"/")])),
    ("an odd status", lambda peer: peer.h2.send_headers(1, [(b":status", b"2000")])),
    ("a switch", lambda peer: peer.h2.send_headers(1, [(b":status", b"101")])),
    ("two lengths", lambda peer: peer.h2.send_headers(1, [(b":status", b"200"), (b"content-length", b"1"), (b"content-length", b"1")])),
    ("a body too long", lambda peer: (peer.h2.send_headers(1, [(b":status", b"200"), (b"content-length", b"1")]), peer.h2.send_data(1, b"abc"))[0]),
    ("a body too short", lambda peer: (peer.h2.send_headers(1, [(b":status", b"200"), (b"content-length", b"4")]), peer.h2.send_data(1, b"abc", end_stream=True))[0]),
    ("no body at all", lambda peer: peer.h2.send_headers(1, [(b":status", b"200"), (b"content-length", b"4")], end_stream=True)),
    ("a body of a 204", lambda peer: (peer.h2.send_headers(1, [(b":status", b"204")]), peer.h2.send_data(1, b"abc"))[0]),
    ("trailers with a pseudo field", lambda peer: (peer.h2.send_headers(1, [(b":status", b"200")]), peer.h2.send_headers(1, [(b":status", b"200")], end_stream=True))[0]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "act"), BAD_ANSWERS, ids=[what for what, _ in BAD_ANSWERS])
def test_a_malformed_answer_ends_its_own_exchange_alone(what: str, act: Callable[[Peer], None]) -> None:
    side = Side()
    broken, _ = side.begin()
    other, _ = side.begin()
    side.peer.talk()
    act(side.peer)
    side.peer.talk()
    assert broken.failure is not None
    assert broken.failure[0] is Outcome.UNKNOWN
    assert not broken.answer_whole
    side.answer(3, end=True)
    side.peer.talk()
    assert other.answer_whole


def test_streams_that_the_far_side_did_not_take_have_failed_and_the_others_go_on() -> None:
    side = Side()
    exchanges = [side.begin()[0] for _ in range(3)]
    side.peer.talk()
    side.peer.send(bytes.fromhex("0000080700000000000000000300000000"))
    assert [one.failure and one.failure[0] for one in exchanges] == [None, None, Outcome.FAILED]
    assert side.told == ["gone"]
    for stream in (1, 3):
        side.answer(stream, end=True)
    side.peer.talk()
    assert [one.answer_whole for one in exchanges] == [True, True, False]
    assert side.link.closed
    late, _ = side.begin()
    assert late.failure is None  # never from within the call
    side.loop.turn()
    assert late.failure is not None
    assert late.failure[0] is Outcome.FAILED


@pytest.mark.parametrize(
    ("code", "outcome"), [(7, Outcome.FAILED), (2, Outcome.UNKNOWN), (0, Outcome.UNKNOWN)]
)
def test_a_reset_says_whether_the_request_was_taken(code: int, outcome: Outcome) -> None:
    side = Side()
    one, _ = side.begin()
    other, _ = side.begin()
    side.peer.talk()
    side.peer.h2.reset_stream(1, code)
    side.peer.talk()
    assert one.failure is not None
    assert one.failure[0] is outcome
    assert other.failure is None


def test_a_refusal_after_the_answer_began_is_not_certain() -> None:
    side = Side()
    one, _ = side.begin()
    side.peer.talk()
    side.answer(1)
    side.peer.h2.reset_stream(1, 7)
    side.peer.talk()
    assert one.failure is not None
    assert one.failure[0] is Outcome.UNKNOWN


@pytest.mark.parametrize("how", ["eof", "closed", "noise"])
def test_what_was_under_way_when_the_connection_broke_is_unknown(how: str) -> None:
    side = Side()
    one, far = side.begin(POST, body=True)
    side.peer.talk()
    if how == "eof":
        side.link.on_eof()
    elif how == "closed":
        side.link.on_closed()
    else:
        side.peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert one.failure is not None
    assert one.failure[0] is Outcome.UNKNOWN
    assert side.told == ["gone"]
    far.send(b"late")
    far.end(())
    far.abort()


def test_a_push_ends_the_connection() -> None:
    side = Side()
    one, _ = side.begin()
    side.peer.talk()
    side.peer.send(b"\x00\x00\x05\x05\x04\x00\x00\x00\x01\x00\x00\x00\x02\x82")
    assert one.failure is not None
    assert side.peer.goaway_code() == 1


def test_what_is_aborted_is_reset_and_the_rest_goes_on() -> None:
    side = Side()
    one, far = side.begin(POST, body=True)
    other, _ = side.begin()
    far.send(b"x")
    side.peer.talk()
    far.abort()
    side.peer.talk()
    assert side.peer.reset_code(1) == 8
    side.answer(3, end=True)
    side.peer.talk()
    assert one.failure is None
    assert other.answer_whole
    assert side.told == ["idle"]


def test_an_early_answer_ends_the_sending() -> None:
    side = Side()
    one, far = side.begin(POST, body=True)
    far.send(b"x")
    side.peer.talk()
    side.answer(1, status=b"413", end=True)
    side.peer.talk()
    assert one.answer_whole
    assert side.peer.reset_code(1) == 8
    far.send(b"more")
    far.end(())
    side.peer.talk()


def test_a_slow_far_side_holds_the_sender() -> None:
    side = Side()
    side.peer.acknowledge = False
    one, far = side.begin(POST, body=True)
    for _ in range(40):
        far.send(bytes(16384))
    side.peer.talk()
    assert len(side.peer.answer_to(1)[1]) == 65535
    assert one.full == [True]
    side.peer.h2.increment_flow_control_window(1 << 20)
    side.peer.h2.increment_flow_control_window(1 << 20, 1)
    far.end(())
    side.peer.talk()
    assert one.full == [True, False]
    assert len(side.peer.answer_to(1)[1]) == 40 * 16384


def test_a_slow_client_holds_its_own_answer_alone() -> None:
    side = Side()
    _, slow = side.begin()
    quick, _ = side.begin()
    side.peer.talk()
    slow.read_on(False)
    side.answer(1)
    side.answer(3)
    sent = 0
    while size := min(16384, side.peer.h2.local_flow_control_window(1)):
        side.peer.h2.send_data(1, bytes(size))
        sent += size
        side.peer.talk()
    assert sent == 1 << 20
    for _ in range(200):
        side.peer.h2.send_data(3, bytes(16384))
        side.peer.talk()
    assert len(quick.answer_body) == 200 * 16384
    slow.read_on(True)
    side.peer.talk()
    assert side.peer.h2.local_flow_control_window(1) == 1 << 20


def test_slow_readers_together_send_new_requests_to_another_connection() -> None:
    side = Side()
    pairs = [side.begin() for _ in range(10)]
    side.peer.talk()
    for at, (_, far) in enumerate(pairs):
        assert side.far.room == (at < 8)
        far.read_on(False)
        stream = 2 * at + 1
        side.answer(stream)
        while size := min(16384, side.peer.h2.local_flow_control_window(stream)):
            side.peer.h2.send_data(stream, bytes(size))
            side.peer.talk()
    for _, far in pairs:
        far.read_on(True)
    assert side.far.room


def test_the_far_side_s_own_limit_of_streams_is_kept() -> None:
    side = Side()
    side.peer.h2.update_settings({3: 2})
    side.peer.talk()
    assert side.far.room
    side.begin()
    assert side.far.room
    side.begin()
    assert not side.far.room


def test_interim_answers_without_end_are_a_flood() -> None:
    side = Side()
    one, _ = side.begin()
    side.peer.talk()
    for _ in range(1100):
        if side.link.closed:
            break
        side.answer(1, status=b"103")
        side.peer.talk()
    assert side.link.closed
    assert one.failure is not None


def _recorded() -> bytes:
    side = Side(settled=False)
    came = bytearray()
    on_data = side.link.on_data

    def record(data: bytes) -> None:
        came.extend(data)
        on_data(data)

    side.link.on_data = record
    side.begin()
    side.begin(POST)
    side.begin()
    side.peer = Peer(side.link, side.loop, client=False)
    side.answer(1, (b"link", b"</a>"), status=b"103")
    side.answer(1, (b"content-length", b"300"), (b"x", b"y" * 300))
    side.peer.h2.send_data(1, bytes(300), end_stream=True, pad_length=9)
    side.answer(3)
    side.peer.h2.send_data(3, b"grpc")
    side.peer.h2.send_headers(3, [(b"grpc-status", b"0")], end_stream=True)
    side.peer.h2.ping(b"12345678")
    side.peer.h2.reset_stream(5, 7)
    side.peer.talk()
    return bytes(came)


CAME = _recorded()


@given(st.lists(st.integers(1, len(CAME)), max_size=30))
def test_however_the_bytes_are_split_they_mean_the_same(cuts: list[int]) -> None:
    seen = []
    for points in ([], sorted(cuts), range(1, len(CAME))):
        side = Side(settled=False)
        exchanges = [side.begin(head)[0] for head in (HEAD, POST, HEAD)]
        at = 0
        for end in [*points, len(CAME)]:
            side.link.on_data(CAME[at:end])
            at = end
        side.loop.turn()
        seen.append(
            [
                (
                    one.interims,
                    one.answer,
                    bytes(one.answer_body),
                    one.answer_trailers,
                    one.answer_whole,
                    one.failure,
                )
                for one in exchanges
            ]
        )
    assert seen[0] == seen[1] == seen[2]
    assert [one[4] for one in seen[0]] == [True, True, False]


@given(st.binary(max_size=120), st.booleans())
def test_no_bytes_break_it(noise: bytes, settled: bool) -> None:
    side = Side(settled=settled)
    one, _ = side.begin()
    side.loop.turn()
    side.peer.quiet = True
    side.link.on_data(noise)
    side.loop.turn()
    side.link.on_eof()
    side.link.on_closed()
    assert (one.failure is not None) != one.answer_whole
