"""Bad input at the network boundary: heads without end, floods and bombs are refused in bounded memory, over real sockets."""

import asyncio
import functools
import time
import zlib
from collections.abc import Callable

import pytest
from tests.boundary.smuggling.frames import (
    ACK,
    CALM,
    CONTINUATION,
    END_STREAM,
    HEADERS,
    PING,
    PRIORITY,
    SETTINGS,
    data,
    frame,
    get,
    head,
    opening,
    pack,
    read,
    reset,
    settings,
    window,
)
from tests.boundary.smuggling.proxy import OK, Carried, World, saying
from tests.boundary.smuggling.readers import read_all, read_answers
from tests.boundary.smuggling.strain import GET, GROWTH_MB, MB, POST, Peak, flood, until, works

from interlock.model.requests import Outcome


@pytest.fixture
def peak() -> Peak:
    return Peak()


# more than anyone needs


@pytest.mark.parametrize(
    ("first", "chunk"),
    [
        (b"GET / HTTP/1.1\r\nhost: target.test\r\nx: ", b"a" * 65536),
        (b"GET / HTTP/1.1\r\nhost: target.test\r\n", b"x-a: abcdefgh\r\n" * 4096),
        (b"GET /", b"a" * 65536),
        (b"G", b"G" * 65536),
        (b"POST / HTTP/1.1\r\nhost: target.test\r\ntransfer-encoding: chunked\r\n\r\n", b"0" * 65536),
        (b"POST / HTTP/1.1\r\nhost: target.test\r\ntransfer-encoding: chunked\r\n\r\n3;", b"a" * 65536),
        (b"POST / HTTP/1.1\r\nhost: target.test\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n" * 8192),
    ],
    ids=["one field", "many fields", "target", "method", "chunk size", "chunk extension", "trailers"],
)  # fmt: skip
def test_a_head_of_100_mb_is_refused_in_bounded_memory(peak: Peak, first: bytes, chunk: bytes) -> None:
    async def check() -> None:
        async with World() as world:
            peak.begin()
            came, _ = await flood(world, first, chunk, 100 * MB)
            assert peak.grown_mb < GROWTH_MB
            assert not world.raw
            assert not came or came.split(b" ")[1] in (b"400", b"431", b"501", b"414")
            await works(world)

    asyncio.run(check())


def test_blank_lines_without_end_are_no_way_to_wait_for_a_request() -> None:
    """One or two are harmless (RFC 9112 §2.2); read one by one, a gigabyte of them would keep everyone waiting."""

    async def check() -> None:
        async with World() as world:
            heard = await world.speak(POST % 3 + b"abc" + b"\r\n" * 500_000)
            assert len(read_all(world.raw)) == 1
            assert heard.closed

    asyncio.run(check())


def test_a_far_sides_head_of_100_mb_is_refused_in_bounded_memory(peak: Peak) -> None:
    async def endless(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for _ in range(100 * MB // 65536):
            writer.write(b"x-a: abcdefgh\r\n" * 4369)
            await writer.drain()

    async def check() -> None:
        async with World(endless) as world:
            peak.begin()
            heard = await world.speak(GET)
            assert heard.status == 502
            assert peak.grown_mb < GROWTH_MB
            assert world.witness.ends[0][1].outcome is Outcome.UNKNOWN

    asyncio.run(check())


def test_an_answer_to_head_with_endless_chunks_ends_the_far_connection(peak: Peak) -> None:
    ended: list[int] = []

    async def endless(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        sent = 0
        try:
            while sent < 200 * MB:
                writer.write(b"10000\r\n" + bytes(65536) + b"\r\n")
                await writer.drain()
                sent += 65536
        finally:
            ended.append(sent)

    async def check() -> None:
        async with World(endless) as world:
            peak.begin()
            heard = await world.speak(GET.replace(b"GET", b"HEAD"))
            assert read_answers(heard.raw, (b"HEAD",), ended=True) == [(200, b"")]
            await until(lambda: ended)
            assert ended[0] < 100 * MB
            assert peak.grown_mb < GROWTH_MB

    asyncio.run(check())


def test_ten_thousand_interim_answers_are_too_many(peak: Peak) -> None:
    said = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 10_000

    async def check() -> None:
        async with World(saying(said, OK)) as world:
            peak.begin()
            heard = await world.speak(GET)
            assert read_answers(heard.raw, (b"GET",), ended=True)[0][0] == 502
            assert heard.raw.count(b"HTTP/1.1 103") <= 100
            assert peak.grown_mb < GROWTH_MB

    asyncio.run(check())


def test_an_answer_of_200_mb_to_a_slow_client_is_held_back(peak: Peak) -> None:
    sent = [0]

    async def large(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (200 * MB))
        while sent[0] < 200 * MB:
            writer.write(bytes(65536))
            await writer.drain()
            sent[0] += 65536

    async def check() -> None:
        async with World(large) as world:
            sock = world.connect()
            peak.begin()
            await world.front.loop.sock_sendall(sock, GET)
            await asyncio.sleep(0.5)  # the agent reads nothing
            assert sent[0] < 50 * MB
            assert peak.grown_mb < GROWTH_MB
            sock.close()
            await until(lambda: world.witness.ends)
            assert world.witness.ends[0][1].outcome is Outcome.UNKNOWN

    asyncio.run(check())


# HTTP/2 floods

BLOCK = pack(get())
FLOODS: dict[str, tuple[bytes, bytes]] = {
    "ping": (b"", frame(PING, 0, 0, b"12345678")),
    "settings": (b"", settings((4, 1000))),
    "settings of nothing": (b"", settings()),
    "acknowledgements": (b"", frame(SETTINGS, ACK, 0)),
    "priority": (b"", frame(PRIORITY, 0, 1, b"\0\0\0\0\x10")),
    "empty data": (head(1, get(method="POST"), end=False), data(1, b"", end=False)),
    "padding alone": (head(1, get(method="POST"), end=False), frame(0, 8, 1, b"\x00")),
    "window": (b"", window(0, 1)),
    "unknown": (b"", frame(0x77, 0, 0, bytes(20))),
    "continuation": (frame(HEADERS, END_STREAM, 1, BLOCK), frame(CONTINUATION, 0, 1)),
    "continuation with fields": (frame(HEADERS, END_STREAM, 1, BLOCK), frame(CONTINUATION, 0, 1, pack([("a", "b" * 4000)]))),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOODS)
def test_an_http2_flood_ends_its_connection(peak: Peak, name: str) -> None:
    first, one = FLOODS[name]
    chunk = one * max(1, 32768 // len(one))

    async def check() -> None:
        async with World() as world:
            peak.begin()
            came, _ = await flood(world, opening(first), chunk, 5 * MB)
            assert peak.grown_mb < GROWTH_MB
            assert read(came).goaway in ((CALM, 1) if "with fields" in name else (CALM,))
            assert not world.witness.requests
            await works(world)

    asyncio.run(check())


def test_rapid_resets_end_the_connection_before_they_cost_much(peak: Peak) -> None:
    """Streams begun and reset at once (CVE-2023-44487)."""

    async def check() -> None:
        async with World() as world:
            raw = b"".join(head(2 * at + 1, get()) + reset(2 * at + 1) for at in range(20_000))
            peak.begin()
            came, _ = await flood(world, opening(), raw, len(raw))
            told = read(came)
            assert told.goaway == CALM
            assert len(world.witness.requests) < 2000
            assert len(world.carried) < 2000
            assert peak.grown_mb < 2 * GROWTH_MB
            await until(lambda: len(world.witness.ends) == len(world.witness.requests))
            await works(world)

    asyncio.run(check())


def test_resets_that_the_agent_provokes_count_as_its_own() -> None:
    """Malformed streams make the server reset them: the same work, the other way round."""

    async def check() -> None:
        async with World() as world:
            bad = b"".join(
                head(2 * at + 1, get(method="POST"), end=False) + window(2 * at + 1, 0)
                for at in range(20_000)
            )
            came, _ = await flood(world, opening(), bad, len(bad))
            assert read(came).goaway is not None
            assert not world.witness.requests
            await works(world)

    asyncio.run(check())


# compression


@functools.cache
def bomb(wrapper: str) -> bytes:
    """10 GB of zeros in about 10 MB: one block repeated, as each full flush allows."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = engine.compress(bytes(10 * MB)) + engine.flush(zlib.Z_FULL_FLUSH)
    start = {"gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\xff", "zlib": b"\x78\x9c", "raw": b""}[wrapper]
    return start + block * 1024


@functools.cache
def nested() -> bytes:
    return zlib.compress(zlib.compress(bomb("gzip"), wbits=31), wbits=31)


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("gzip", lambda: bomb("gzip")),
    "x-gzip": ("x-gzip", lambda: bomb("gzip")),
    "deflate": ("deflate", lambda: bomb("zlib")),
    "raw deflate": ("deflate", lambda: bomb("raw")),
    "nested": ("gzip, gzip, gzip", nested),
    "nested deep": (", ".join(["gzip"] * 50), lambda: b"\x1f\x8b" + bytes(100)),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("way", ["request", "answer"])
def test_a_decompression_bomb_is_not_read_and_costs_little(peak: Peak, name: str, way: str) -> None:
    coding, make = BOMBS[name]
    body = make()
    fields = b"content-type: application/json\r\ncontent-encoding: %b\r\n" % coding.encode()

    async def check() -> None:
        said = b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n" % (fields, len(body)) + body
        async with World(saying(said) if way == "answer" else None) as world:
            peak.begin()
            began = time.thread_time()
            if way == "request":
                raw = b"POST / HTTP/1.1\r\nhost: target.test\r\n%bcontent-length: %d\r\n\r\n" % (
                    fields,
                    len(body),
                )
                await world.speak(raw + body)
                assert world.witness.requests[0].body_text is None
                assert world.witness.requests[0].body_size_bytes == len(body)
            else:
                heard = await world.speak(GET)
                await until(lambda: world.witness.ends)
                assert world.witness.bodies == [None]
                assert heard.raw.endswith(body)
            assert time.thread_time() - began < 5
            assert peak.grown_mb < 4 * GROWTH_MB  # the bomb itself passes several buffers of ours

    asyncio.run(check())
