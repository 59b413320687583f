"""What the bad-input tests share: the peak of memory, floods, waiting, and a far side that speaks websocket."""

import asyncio
import base64
import contextlib
import gc
import hashlib
import time
from collections.abc import Awaitable, Callable

from tests.boundary.smuggling.proxy import Carried, World

GET = b"GET / HTTP/1.1\r\nhost: target.test\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: target.test\r\ncontent-length: %d\r\n\r\n"
MB = 1024 * 1024
GROWTH_MB = 40
"""What the process may grow by while 100 MB pass it: the agent, the proxy and the far side are all in it."""


class Peak:
    """How much the process grew at its highest since `begin`."""

    def begin(self) -> None:
        gc.collect()
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        self._from_kb = self._read("VmRSS")

    @property
    def grown_mb(self) -> float:
        return (self._read("VmHWM") - self._from_kb) / 1024

    def _read(self, name: str) -> int:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))


async def flood(world: World, first: bytes, chunk: bytes, total_bytes: int) -> tuple[bytes, int]:
    """Send much on one connection, reading what comes. Returns: what came, and how much could be sent."""
    sock = world.connect()
    loop = world.front.loop
    came = bytearray()

    async def listen() -> None:
        with contextlib.suppress(ConnectionError):
            while some := await loop.sock_recv(sock, 65536):
                came.extend(some)

    listening = asyncio.ensure_future(listen())
    sent = 0
    try:
        with contextlib.suppress(ConnectionError):
            await loop.sock_sendall(sock, first)
            while sent < total_bytes:
                await asyncio.wait_for(loop.sock_sendall(sock, chunk), 10)
                sent += len(chunk)
                await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(listening, 4)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        sock.close()
    return bytes(came), sent


async def until(holds: Callable[[], object], seconds: float = 8.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come to hold"
        await asyncio.sleep(0.01)


async def works(world: World) -> None:
    """Check that the proxy still serves others."""
    heard = await world.speak(GET)
    assert heard.status == 200


def accepting(
    said: bytes = b"",
) -> Callable[[Carried, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def answers(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        carried.raw += asked
        key = next(line for line in asked.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))
        digest = hashlib.sha1(
            key.split(b":", 1)[1].strip() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        ).digest()
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
            b"sec-websocket-accept: %b\r\n\r\n" % base64.b64encode(digest)
        )
        while True:
            writer.write(said)
            await writer.drain()
            some = await reader.read(65536) if not said else b"x"
            if not some:
                await asyncio.sleep(30)  # it never closes
            carried.raw += some
            await asyncio.sleep(0)

    return answers


ASK_WS = (
    b"GET /ws HTTP/1.1\r\nhost: target.test\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
