"""Frames that no honest peer sends: what is broken is named, and no flood costs memory or time."""

import resource
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest
from hpack import Encoder
from tests.fakes.h2_peer import Peer, get
from tests.fakes.net_links import Exchanged, MemoryLink, Step, Surroundings

from interlock.boundary.net.http2_client import Http2Client
from interlock.boundary.net.http2_frames import PREFACE
from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead

PLACE = Place(host="api.test", port=443, tls=True)
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITISED = 1, 1, 4, 8, 32


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def block(fields: list[tuple[bytes, bytes]] | None = None) -> bytes:
    return bytes(Encoder().encode(get() if fields is None else fields))


BLOCK = block()
OPEN = frame(HEADERS, END_HEADERS, 1, BLOCK)
CLOSED = frame(HEADERS, END_HEADERS | END_STREAM, 1, BLOCK)


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "big") for value in values)


def setting(code: int, value: int) -> bytes:
    return code.to_bytes(2, "big") + value.to_bytes(4, "big")


def answer(exchange: Exchanged) -> None:
    assert exchange.client is not None
    exchange.client.answer(AnswerHead(status=200, headers=(), length=None))
    exchange.client.data(b"ok")
    exchange.client.end(())


def silent(_exchange: Exchanged) -> None:
    pass


class Side:
    def __init__(
        self,
        respond: Callable[[Exchanged], None] = silent,
        limits: NetLimits | None = None,
        *,
        high_bytes: int = 1 << 40,
        settled: bool = True,
    ) -> None:
        self.loop = Step()
        self.link = MemoryLink("h2", high_bytes=high_bytes)
        self.setting = Surroundings(self.loop, lambda client, head: Exchanged(client, head, respond), limits)
        self.client = Http2Client(self.link, PLACE, self.setting)
        self.peer = Peer(self.link, self.loop, quiet=True)
        if settled:
            self.peer.send(PREFACE + frame(SETTINGS, 0, 0))

    def ends_with(self, codes: tuple[int, ...]) -> bool:
        return self.link.closed and self.peer.goaway_code() in codes


# what the protocol calls an error of the connection, with the codes that it allows
BROKEN: list[tuple[str, bytes, tuple[int, ...]]] = [
    ("data on stream 0", frame(DATA, 0, 0, b"x"), (1,)),
    ("data on an idle stream", frame(DATA, 0, 1, b"x"), (1,)),
    ("padding longer than the frame", OPEN + frame(DATA, PADDED, 1, b"\x09x"), (1,)),
    ("padded without a length", OPEN + frame(DATA, PADDED, 1), (1, 6)),
    ("headers on stream 0", frame(HEADERS, END_HEADERS, 0, BLOCK), (1,)),
    ("headers on an even stream", frame(HEADERS, END_HEADERS, 2, BLOCK), (1,)),
    ("headers on a lower stream", frame(HEADERS, 5, 5, BLOCK) + frame(HEADERS, 5, 3, BLOCK), (1, 5)),
    ("headers within a block", frame(HEADERS, 0, 1, BLOCK) + frame(HEADERS, 4, 3, BLOCK), (1,)),
    ("data within a block", frame(HEADERS, 0, 1, BLOCK) + frame(DATA, 0, 1, b"x"), (1,)),
    ("an unknown frame within a block", frame(HEADERS, 0, 1, BLOCK) + frame(22, 0, 1, b"x"), (1,)),
    ("another stream's continuation", frame(HEADERS, 0, 1, BLOCK) + frame(CONTINUATION, 4, 3, BLOCK), (1,)),
    ("a continuation alone", frame(CONTINUATION, 4, 1, BLOCK), (1,)),
    ("a continuation after a block", OPEN + frame(CONTINUATION, 4, 1, BLOCK), (1,)),
    ("a block that is no hpack", frame(HEADERS, 5, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff"), (1, 9)),
    ("a table size beyond ours", frame(HEADERS, 5, 1, b"\x3f\xff\xff\x7f" + BLOCK), (1, 9)),
    ("a second head without an end", OPEN + frame(HEADERS, 4, 1, block([(b"a", b"b")])), (1,)),
    ("a stream that depends on itself", frame(HEADERS, 4 | 1 | 32, 1, words(1) + b"\x10" + BLOCK), (1,)),
    ("priority on stream 0", frame(PRIORITY, 0, 0, words(1) + b"\x10"), (1,)),
    ("priority of another size", frame(PRIORITY, 0, 1, b"1234"), (1, 6)),
    ("reset on stream 0", frame(RST, 0, 0, words(8)), (1,)),
    ("reset of an idle stream", frame(RST, 0, 1, words(8)), (1,)),
    ("reset of another size", OPEN + frame(RST, 0, 1, b"123"), (6,)),
    ("settings on a stream", frame(SETTINGS, 0, 1), (1,)),
    ("settings of another size", frame(SETTINGS, 0, 0, b"12345"), (6,)),
    ("an acknowledgement with content", frame(SETTINGS, ACK, 0, setting(1, 1)), (1, 6)),
    ("push of 2", frame(SETTINGS, 0, 0, setting(2, 2)), (1,)),
    ("a window beyond 2^31-1", frame(SETTINGS, 0, 0, setting(4, 1 << 31)), (3,)),
    ("a frame size below 2^14", frame(SETTINGS, 0, 0, setting(5, 16383)), (1,)),
    ("a frame size beyond 2^24-1", frame(SETTINGS, 0, 0, setting(5, 1 << 24)), (1,)),
    ("a push by the client", OPEN + frame(PUSH, 4, 1, words(2) + BLOCK), (1,)),
    ("a ping on a stream", frame(PING, 0, 1, b"12345678"), (1,)),
    ("a ping of another size", frame(PING, 0, 0, b"1234567"), (6,)),
    ("a goaway on a stream", frame(GOAWAY, 0, 1, words(0, 0)), (1,)),
    ("a goaway of another size", frame(GOAWAY, 0, 0, b"123"), (6,)),
    ("a window update of 0", frame(WINDOW, 0, 0, words(0)), (1,)),
    ("a window update of another size", frame(WINDOW, 0, 0, b"123"), (6,)),
    ("a window update of an idle stream", frame(WINDOW, 0, 1, words(1)), (1,)),
    ("windows beyond 2^31-1", frame(WINDOW, 0, 0, words(0x7FFFFFFF)) * 2, (3,)),
    ("a frame larger than allowed", frame(PING, 0, 0, bytes(16385)), (6,)),
    ("only the head of such a frame", b"\x00\x40\x01\x00\x00\x00\x00\x00\x01", (6,)),
    ("a request of HTTP/1", b"GET / HTTP/1.1\r\n\r\n", (1, 6)),
]


@pytest.mark.parametrize(("what", "data", "codes"), BROKEN, ids=[what for what, *_ in BROKEN])
def test_a_broken_connection_ends_with_the_reason(what: str, data: bytes, codes: tuple[int, ...]) -> None:
    side = Side()
    side.peer.send(data)
    assert side.ends_with(codes), side.peer.goaway_code()
    assert all(isinstance(one, Exchanged) and (one.whole or one.gone) for one in side.setting.begun)
    split = Side()
    for at in range(len(data)):
        split.peer.send(data[at : at + 1])
    assert split.peer.goaway_code() == side.peer.goaway_code()
    assert len(split.setting.begun) == len(side.setting.begun)


@pytest.mark.parametrize(
    "first", [OPEN, frame(SETTINGS, ACK, 0), frame(PING, 0, 0, bytes(8)), frame(WINDOW, 0, 0, words(1))]
)
def test_the_first_frame_is_one_of_settings(first: bytes) -> None:
    side = Side(settled=False)
    side.peer.send(PREFACE + first)
    assert side.ends_with((1,))
    assert side.setting.begun == []


STREAM_ERRORS: list[tuple[str, bytes, tuple[int, ...]]] = [
    ("a window beyond 2^31-1", OPEN + frame(WINDOW, 0, 1, words(0x7FFFFFFF)), (3,)),
    ("data after the end", CLOSED + frame(DATA, 0, 1, b"x"), (5,)),
    ("headers after the end", CLOSED + CLOSED, (5,)),
    ("trailers with a pseudo field", OPEN + frame(HEADERS, 5, 1, block([(b":path", b"/")])), (1,)),
    ("trailers in upper case or broken", OPEN + frame(HEADERS, 5, 1, block([(b"a\n", b"b")])), (1,)),
]


@pytest.mark.parametrize(("what", "data", "codes"), STREAM_ERRORS, ids=[what for what, *_ in STREAM_ERRORS])
def test_a_broken_stream_leaves_the_others(what: str, data: bytes, codes: tuple[int, ...]) -> None:
    side = Side()
    side.peer.send(data)
    assert side.peer.reset_code(1) in codes
    first = side.setting.begun[0]
    assert isinstance(first, Exchanged)
    assert first.gone
    assert first.whole == ("end" in what)
    side.peer.send(frame(HEADERS, 5, 3, BLOCK))
    assert len(side.setting.begun) == 2
    assert not side.link.closed


ALLOWED: list[tuple[str, bytes]] = [
    ("an unknown frame", frame(22, 255, 0, b"whatever") + frame(22, 0, 7, b"x")),
    ("unknown flags", frame(PING, 0xFE, 0, b"12345678")),
    ("the reserved bit", frame(WINDOW, 0, 0x80000000, words(1))),
    ("an unknown setting", frame(SETTINGS, 0, 0, setting(0x99, 7))),
    ("priority of an idle stream", frame(PRIORITY, 0, 9, words(0) + b"\x01")),
    ("a goaway with text", frame(GOAWAY, 0, 0, words(0, 0) + b"bye")),
    ("padding", frame(HEADERS, END_HEADERS | PADDED, 1, b"\x03" + BLOCK + b"\0\0\0") + frame(DATA, PADDED, 1, b"\x02x\0\0")),
    ("a window update after the end", CLOSED + frame(WINDOW, 0, 1, words(5))),
    ("a reset after the end", CLOSED + frame(RST, 0, 1, words(8))),
    ("an empty head of a block", frame(HEADERS, 1, 1) + frame(CONTINUATION, 0, 1) + frame(CONTINUATION, 4, 1, BLOCK)),
    ("a large table of the client's", frame(SETTINGS, 0, 0, setting(1, 0xFFFFFFFF))),
]  # fmt: skip


@pytest.mark.parametrize(("what", "data"), ALLOWED, ids=[what for what, _ in ALLOWED])
def test_what_the_protocol_allows_goes_on(what: str, data: bytes) -> None:
    side = Side(silent if "end" in what else answer)
    side.peer.send(data)
    assert side.peer.goaway_code() in (None, 0)
    assert what == "a goaway with text" or not side.link.closed


def spend(limit_seconds: float, limit_bytes: int, act: Callable[[], None]) -> None:
    began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    tracemalloc.start()
    act()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit_bytes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - began < limit_seconds


CALM = (11,)
FLOODS: list[tuple[str, Callable[[int], bytes]]] = [
    ("pings", lambda _: frame(PING, 0, 0, b"12345678")),
    ("settings", lambda _: frame(SETTINGS, 0, 0, setting(4, 65535))),
    ("large settings", lambda _: frame(SETTINGS, 0, 0, setting(4, 65535) * 2000)),
    ("acknowledgements", lambda _: frame(SETTINGS, ACK, 0)),
    ("priorities", lambda at: frame(PRIORITY, 0, 2 * at + 9, words(0) + b"\x01")),
    ("window updates", lambda _: frame(WINDOW, 0, 0, words(1))),
    ("unknown frames", lambda _: frame(99, 0, 0, b"")),
    ("empty data", lambda at: OPEN if at == 0 else frame(DATA, 0, 1)),
    ("padding alone", lambda at: OPEN if at == 0 else frame(DATA, PADDED, 1, b"\x00")),
    ("continuations", lambda at: frame(HEADERS, 0, 1, BLOCK) if at == 0 else frame(CONTINUATION, 0, 1, b"")),
    ("long continuations", lambda at: frame(HEADERS, 0, 1) if at == 0 else frame(CONTINUATION, 0, 1, bytes(16384))),
    ("resets", lambda at: frame(HEADERS, END_HEADERS, 2 * at + 1, BLOCK) + frame(RST, 0, 2 * at + 1, words(8))),
    ("resets that we are made to send", lambda at: frame(HEADERS, END_HEADERS, 2 * at + 1, BLOCK) + frame(WINDOW, 0, 2 * at + 1, words(0x7FFFFFFF))),
    ("heads that are refused", lambda at: frame(HEADERS, 5, 2 * at + 1, block(get("/", "other.test")))),
    ("streams beyond the limit", lambda at: frame(HEADERS, 5, 2 * at + 1, BLOCK)),
]  # fmt: skip


@pytest.mark.parametrize(("what", "make"), FLOODS, ids=[what for what, _ in FLOODS])
def test_a_flood_ends_the_connection(what: str, make: Callable[[int], bytes]) -> None:
    side = Side()
    sent = 0

    def flood() -> None:
        nonlocal sent
        while not side.link.closed and sent < 100_000:
            side.peer.send(make(sent))
            sent += 1
            side.loop.now += 0.0001

    spend(15, 24 << 20, flood)
    assert side.ends_with(CALM)
    assert sent < 1500
    assert len(side.setting.begun) <= 1000


def test_work_that_is_useful_is_no_flood() -> None:
    side = Side(answer)
    for at in range(3000):
        number = 2 * at + 1
        side.peer.send(
            frame(HEADERS, 5, number, BLOCK) + frame(WINDOW, 0, 0, words(2)) + frame(PING, 0, 0, bytes(8))
        )
        side.peer.frames.clear()
    assert not side.link.closed
    assert len(side.setting.begun) == 3000


def test_a_bomb_of_headers_is_not_unfolded() -> None:
    encoder = Encoder()
    first = bytes(encoder.encode([*get(), (b"x", b"y" * 4000)]))
    bomb = frame(HEADERS, 5, 1, first) + frame(HEADERS, 5, 3, b"\xbe" * 16000)
    side = Side()
    spend(5, 8 << 20, lambda: side.peer.send(bomb))
    assert side.ends_with((1, 11))
    assert len(side.setting.begun) == 1


def test_a_window_of_zero_kept_for_ever_costs_a_bound() -> None:
    limits = replace(NetLimits(), idle_seconds=10)
    side = Side(silent, limits)
    side.peer.send(frame(SETTINGS, 0, 0, setting(4, 0)))
    side.peer.send(CLOSED)
    one = side.setting.begun[0]
    assert isinstance(one, Exchanged)
    assert one.client is not None
    one.client.answer(AnswerHead(status=200, headers=(), length=None))
    given = 0
    while True not in one.full:
        one.client.data(bytes(16384))
        given += 16384
    assert given <= 512 * 1024  # from here on the far side is not read
    side.loop.now += 1000
    side.client.expire()
    assert not side.link.closed  # an answer has no time limit
    side.peer.send(frame(SETTINGS, 0, 0, setting(4, 1 << 20)) + frame(WINDOW, 0, 0, words(1 << 20)))
    assert one.full[-1] is False


def test_a_peer_that_never_reads_is_not_read_either() -> None:
    side = Side(answer, high_bytes=1000)
    link = side.link
    link.take()
    at = 0
    began = time.monotonic()
    while not link.paused and not link.closed and at < 50_000:
        link.on_data(frame(HEADERS, 5, 2 * at + 1, BLOCK))
        side.loop.turn()
        at += 1
    assert link.paused or link.closed
    assert len(link.sent) < 1 << 20
    assert time.monotonic() - began < 20
    link.take()
    assert not link.paused or link.closed


def test_the_clock_gives_a_flood_s_budget_back() -> None:
    side = Side()
    for _ in range(5000):
        side.peer.send(frame(PING, 0, 0, bytes(8)))
        side.peer.frames.clear()
        side.loop.now += 0.01
    assert not side.link.closed
