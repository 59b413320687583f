"""Bad WebSockets: broken frames, floods and far sides that never close."""

import asyncio
import contextlib

import pytest
from tests.boundary.smuggling.proxy import World
from tests.boundary.smuggling.strain import ASK_WS, GROWTH_MB, Peak, accepting, until


@pytest.fixture
def peak() -> Peak:
    return Peak()


# websocket


def test_a_websocket_whose_far_side_never_closes_ends_with_its_agent() -> None:
    async def check() -> None:
        async with World(accepting()) as world:
            sock = world.connect()
            loop = world.front.loop
            await loop.sock_sendall(sock, ASK_WS)
            assert (await asyncio.wait_for(loop.sock_recv(sock, 4096), 5)).startswith(b"HTTP/1.1 101 ")
            await loop.sock_sendall(sock, b"\x88\x82\0\0\0\0\x03\xe8")  # a close, and no more words
            await asyncio.sleep(0.05)
            sock.close()
            await until(lambda: world.witness.ends, 15)

    asyncio.run(check())


def test_a_websocket_that_floods_a_slow_agent_is_held_back(peak: Peak) -> None:
    message = b"\x82\x7f" + (60_000).to_bytes(8, "big") + bytes(60_000)

    async def check() -> None:
        async with World(accepting(message * 4)) as world:
            sock = world.connect()
            loop = world.front.loop
            peak.begin()
            await loop.sock_sendall(sock, ASK_WS)
            await asyncio.sleep(1.0)
            assert peak.grown_mb < GROWTH_MB
            sock.close()
            await until(lambda: world.witness.ends, 15)

    asyncio.run(check())


@pytest.mark.parametrize(
    "bad",
    [
        b"\x81\x05hello",  # not masked
        b"\x83\x80\0\0\0\0",  # an opcode that nobody knows
        b"\xc1\x80\0\0\0\0",  # a reserved bit
        b"\x09\x80\0\0\0\0",  # a control frame in pieces
        b"\x89\xfe\0\x7e\0\0\0\0" + bytes(126),  # a control frame that is too long
        b"\x80\x80\0\0\0\0",  # a continuation of nothing
        b"\x81\x82\0\0\0\0\xff\xff",  # text that is not UTF-8
        b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",  # a length beyond 63 bits
        b"\x88\x81\0\0\0\0\x03",  # a close with half a code
    ],
)
def test_broken_websocket_frames_end_it_and_do_not_reach_the_far_side(bad: bytes) -> None:
    async def check() -> None:
        async with World(accepting()) as world:
            sock = world.connect()
            loop = world.front.loop
            await loop.sock_sendall(sock, ASK_WS)
            assert (await asyncio.wait_for(loop.sock_recv(sock, 4096), 5)).startswith(b"HTTP/1.1 101 ")
            before = len(world.raw)
            await loop.sock_sendall(sock, bad)
            with contextlib.suppress(ConnectionError):
                while await asyncio.wait_for(loop.sock_recv(sock, 4096), 8):
                    pass
            sock.close()
            await until(lambda: world.witness.ends, 15)
            assert not world.witness.messages
            more = world.raw[before:]
            assert not more or more[0] in (0x88, 0x8A), more  # a close at most

    asyncio.run(check())
