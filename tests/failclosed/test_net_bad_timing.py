"""Bad input at the network boundary: trickles, crowds and resets end alone, and nothing leaves undecided."""

import asyncio
import contextlib
import socket
import time

import pytest
from tests.boundary.smuggling.frames import (
    END_STREAM,
    HEADERS,
    data,
    frame,
    get,
    head,
    opening,
    pack,
    read,
)
from tests.boundary.smuggling.proxy import OK, Carried, World, saying, with_reset
from tests.boundary.smuggling.readers import read_all, read_answers
from tests.boundary.smuggling.strain import GET, GROWTH_MB, MB, POST, Peak, flood, until, works

from interlock.boundary.net.plan import NetLimits
from interlock.model.requests import Outcome

BLOCK = pack(get())


@pytest.fixture
def peak() -> Peak:
    return Peak()


# trickles


QUICK = NetLimits(head_seconds=0.6, idle_seconds=0.9, connect_seconds=2.0)


@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\nhost: target.test\r\nx: ",
        b"POST / HTTP/1.1\r\nhost: target.test\r\nX",
        b"G",
        opening(frame(HEADERS, END_STREAM, 1, BLOCK))[:-4],
        b"PRI * HTTP/2.0\r\n\r\nS",
        b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03",
    ],
    ids=["value", "name", "first letter", "http2 head", "preface", "tls hello"],
)
def test_many_who_trickle_a_head_are_ended_and_others_are_served(first: bytes) -> None:
    async def trickle(world: World) -> float:
        sock = world.connect()
        loop = world.front.loop
        began = time.monotonic()
        try:
            with contextlib.suppress(ConnectionError):
                await loop.sock_sendall(sock, first)
                while time.monotonic() - began < 8:
                    with contextlib.suppress(TimeoutError):
                        if not await asyncio.wait_for(loop.sock_recv(sock, 4096), 0.1):
                            break
                    await loop.sock_sendall(sock, b"a")
        finally:
            sock.close()
        return time.monotonic() - began

    async def check() -> None:
        async with World(limits=QUICK) as world:
            trickling = [asyncio.ensure_future(trickle(world)) for _ in range(100)]
            await asyncio.sleep(0.1)
            await works(world)
            took = await asyncio.gather(*trickling)
            assert max(took) < 6
            assert not [request for request in world.witness.requests if request.headers]
            await until(lambda: world.front.connections == 0)

    asyncio.run(check())


@pytest.mark.parametrize(
    "raw",
    [
        POST % 100 + b"abc",
        b"POST / HTTP/1.1\r\nhost: target.test\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab",
        opening(head(1, get(method="POST"), end=False), data(1, b"abc", end=False)),
    ],
    ids=["counted", "chunked", "http2"],
)
def test_a_body_that_stops_is_given_up_and_nothing_leaves(raw: bytes) -> None:
    async def check() -> None:
        async with World(limits=QUICK) as world:
            sock = world.connect()
            loop = world.front.loop
            await loop.sock_sendall(sock, raw)
            came = bytearray()
            began = time.monotonic()
            with contextlib.suppress(ConnectionError, TimeoutError):
                while some := await asyncio.wait_for(loop.sock_recv(sock, 65536), 5):
                    came.extend(some)
                    if raw.startswith(b"PRI") and read(bytes(came)).resets:
                        break
            assert time.monotonic() - began < 5
            assert not world.witness.requests
            assert not world.raw
            sock.close()
            await works(world)

    asyncio.run(check())


def test_many_who_trickle_a_body_keep_nobody_else_waiting_and_nothing_leaves(peak: Peak) -> None:
    async def check() -> None:
        async with World(limits=QUICK) as world:
            loop = world.front.loop
            socks = [world.connect() for _ in range(300)]
            peak.begin()
            for sock in socks:
                await loop.sock_sendall(sock, POST % 1000)
            for _ in range(15):
                for sock in socks:
                    await loop.sock_sendall(sock, b"a")
                await asyncio.sleep(0.05)
            assert not world.witness.requests
            assert peak.grown_mb < GROWTH_MB
            await works(world)
            for sock in socks:
                sock.close()
            await until(lambda: world.front.connections == 0)
            assert len(world.witness.requests) == 1

    asyncio.run(check())


def test_a_tls_hello_without_end_is_refused() -> None:
    record = b"\x16\x03\x01\x40\x00" + bytes(16384)
    first = b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(16380)

    async def check() -> None:
        async with World() as world:
            began = time.monotonic()
            _, sent = await flood(world, first, record, 10 * MB)
            assert sent < 10 * MB
            assert time.monotonic() - began < 5
            assert world.witness.away
            assert not world.witness.requests
            await works(world)

    asyncio.run(check())


# many at once


def test_a_thousand_connections_at_once_are_all_answered() -> None:
    async def one(world: World, number: int) -> bytes:
        sock = world.connect()
        loop = world.front.loop
        try:
            await loop.sock_sendall(
                sock, b"GET /%d HTTP/1.1\r\nhost: target.test\r\nconnection: close\r\n\r\n" % number
            )
            came = bytearray()
            while some := await asyncio.wait_for(loop.sock_recv(sock, 65536), 60):
                came.extend(some)
            return bytes(came)
        finally:
            sock.close()

    async def check() -> None:
        async with World() as world:
            came = await asyncio.gather(*[one(world, number) for number in range(1000)])
            assert {raw.split(b"\r\n", 1)[0] for raw in came} == {b"HTTP/1.1 200 OK"}
            asked = sorted(request.path for request in world.witness.requests)
            assert asked == sorted(f"/{number}" for number in range(1000))
            assert len(read_all(world.raw)) == 1000
            await until(lambda: len(world.witness.ends) == 1000)

    asyncio.run(check())


def test_more_connections_than_allowed_are_refused_and_those_that_are_there_go_on() -> None:
    async def check() -> None:
        async with World(limits=NetLimits(connections=20)) as world:
            socks = [world.connect() for _ in range(20)]
            await until(lambda: world.front.connections == 20)
            heard = await world.speak(GET)
            assert heard.closed
            assert heard.status == 0
            assert "too many connections at once" in world.witness.away
            loop = world.front.loop
            for sock in socks:
                await loop.sock_sendall(sock, GET)
                assert (await asyncio.wait_for(loop.sock_recv(sock, 4096), 5)).startswith(b"HTTP/1.1 200")
                sock.close()
            await until(lambda: world.front.connections == 0)
            await works(world)

    asyncio.run(check())


# what comes where nothing is due


def test_bytes_that_come_on_an_idle_far_connection_are_nobodys_answer() -> None:
    async def answers(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await writer.drain()
        await asyncio.sleep(0.03)
        with contextlib.suppress(ConnectionError):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled")
            await writer.drain()
            await reader.read(65536)

    async def check() -> None:
        async with World(answers) as world:
            first = await world.speak(GET)
            await asyncio.sleep(0.1)
            second = await world.speak(GET)
            assert first.raw.endswith(b"ok")
            assert second.raw.endswith(b"ok")
            assert len(world.carried) == 2

    asyncio.run(check())


# resets


@pytest.mark.parametrize("how", ["reset", "close"])
def test_an_agent_that_leaves_within_its_body_sends_nothing(how: str) -> None:
    async def check() -> None:
        async with World() as world:
            sock = world.connect()
            await world.front.loop.sock_sendall(sock, POST % 100 + b"abc")
            await asyncio.sleep(0.05)
            if how == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.close()
            await until(lambda: world.front.connections == 0)
            assert not world.witness.requests
            assert not world.carried

    asyncio.run(check())


def test_an_agent_that_leaves_within_the_answer_ends_it_at_the_far_side_too() -> None:
    gone: list[bool] = []

    async def endless(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"data: x\n\n")
                await writer.drain()
                await asyncio.sleep(0.005)
        finally:
            gone.append(True)

    async def check() -> None:
        async with World(endless) as world:
            sock = world.connect()
            await world.front.loop.sock_sendall(sock, GET)
            assert await world.front.loop.sock_recv(sock, 4096)
            sock.close()
            await until(lambda: gone)
            await until(lambda: world.witness.ends)
            assert world.witness.ends[0][1].outcome is Outcome.UNKNOWN

    asyncio.run(check())


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nabc",
    ],
)
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_far_side_that_resets_is_never_a_whole_answer(said: bytes, version: bytes) -> None:
    async def check() -> None:
        async with World(saying(said, reset=True)) as world:
            heard = await world.speak(
                b"POST / HTTP/%b\r\nhost: target.test\r\ncontent-length: 0\r\n\r\n" % version
            )
            assert world.witness.ends[0][1].outcome is Outcome.UNKNOWN
            assert len(world.witness.ends) == 1
            if b"\r\n\r\n" not in said:
                assert heard.status == 502
            elif version == b"1.1":
                assert not heard.raw or heard.raw.count(b"\r\n0\r\n\r\n") == 0
            assert heard.reset or heard.status == 502

    asyncio.run(check())


def test_a_far_side_that_resets_within_a_large_body_is_told_as_unknown() -> None:
    async def cuts(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        with_reset(writer)

    async def check() -> None:
        async with World(cuts) as world:
            body = bytes(8 * MB)
            heard = await world.speak(POST % len(body) + body)
            assert heard.status == 502
            assert [end[1].outcome for end in world.witness.ends] == [Outcome.UNKNOWN]

    asyncio.run(check())


def test_an_answer_before_the_body_is_taken_ends_both_connections_well() -> None:
    async def early(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await writer.drain()
        await asyncio.sleep(0.2)

    async def check() -> None:
        async with World(early) as world:
            body = bytes(8 * MB)
            heard = await world.speak(POST % len(body) + body)
            assert read_answers(heard.raw, (b"POST",), ended=True) == [(413, b"no")]
            assert [end[1].outcome for end in world.witness.ends] == [Outcome.DONE]

    asyncio.run(check())
