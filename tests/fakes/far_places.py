"""Far sides on loopback: a server that greets, one that never does, and a proxy that opens tunnels."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

GREETING = b"hello from afar\n"


@asynccontextmanager
async def listening(
    on: object, *, secure: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    """Serve connections with a coroutine, and give the port."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await on(reader, writer)  # type: ignore[operator]
        finally:
            tasks.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(serve, host, 0, ssl=secure)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0.01)


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak first, as SSH does; then send back what comes."""
    writer.write(GREETING)
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take everything and never answer."""
    while await reader.read(65536):
        pass


class TunnelProxy:
    """An HTTP proxy that knows CONNECT alone.

    Takes: `places`, where each `host:port` really is; `login`, user and password that it asks for.
    Holds: `asked` has the places that were asked for, in order.
    """

    def __init__(self, places: dict[str, int], login: str = "") -> None:
        self.places = places
        self.login = login
        self.asked: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
        method, place, version = lines[0].split(" ")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        assert (method, version, fields["host"]) == ("CONNECT", "HTTP/1.1", place)
        self.asked.append(place)
        wanted = "basic " + base64.b64encode(self.login.encode()).decode().lower()
        if self.login and fields.get("proxy-authorization") != wanted:
            writer.write(
                b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
            )
        elif place not in self.places:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        else:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.places[place])
            try:
                # head and the far side's first bytes in one go: the client must tell them apart
                first = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 fake\r\n\r\n"
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        first += await far_reader.read(65536)
                writer.write(first)
                await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))
            finally:
                far_writer.transport.abort()
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()
