"""Our sides on loopback ports, without front and gate: whatever comes goes to the exchanges that a test makes."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from tests.fakes.net_links import Exchanged, Forward, Surroundings

from interlock.boundary.net.http1_client import Http1Client
from interlock.boundary.net.http1_far import Http1Far
from interlock.boundary.net.http2_client import Http2Client
from interlock.boundary.net.http2_far import Http2Far
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.settings import FarConnection, Place
from interlock.boundary.net.sides import ClientSide, RequestHead

Begin = Callable[[ClientSide, RequestHead], Exchanged | Forward]


class Served:
    """Our side on a loopback port."""

    def __init__(self, begin: Begin, *, tls: ssl.SSLContext | None = None, http1: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._place = Place(host="127.0.0.1", port=self.port, tls=tls is not None, published=True)
        self.setting = Surroundings(self._loop, begin)
        self._tls = tls
        self._http1 = http1
        self._links: list[SocketLink] = []
        self._task = self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            sock, _ = await self._loop.sock_accept(self._listener)
            if self._tls is not None:
                sock.setblocking(True)
                sock = await asyncio.to_thread(self._tls.wrap_socket, sock, server_side=True)
            sock.setblocking(False)
            link = SocketLink(self._loop, sock)
            self._links.append(link)
            if self._http1:
                Http1Client(link, self._place, self.setting, lambda _client, _head: None)
            else:
                Http2Client(link, self._place, self.setting)

    async def end(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._listener.close()
        for link in self._links:
            link.abort()
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def served(
    begin: Begin, *, tls: ssl.SSLContext | None = None, http1: bool = False
) -> AsyncIterator[Served]:
    one = Served(begin, tls=tls, http1=http1)
    try:
        yield one
    finally:
        await one.end()


def picking(port: int, *, h2: bool = True) -> tuple[Callable[[], FarConnection], Callable[[], None]]:
    """Return what gives a connection to a loopback port, and what ends all of them."""
    kept: list[Http2Far | Http1Far] = []

    def pick() -> FarConnection:
        for one in kept:
            if one.room:
                return one
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        link = SocketLink(loop, sock)
        setting = Surroundings(loop, lambda client, head: Forward(client, head, pick))
        kept.append(Http2Far(link, setting) if h2 else Http1Far(link, setting))
        return kept[-1]

    def end() -> None:
        for one in kept:
            one.close()

    return pick, end


def forwarding(port: int, *, h2: bool = True) -> tuple[Begin, Callable[[], None]]:
    """Return how exchanges begin that go on to a loopback port, and how the far connections end."""
    pick, end = picking(port, h2=h2)
    return (lambda client, head: Forward(client, head, pick)), end


def go(work: Awaitable[None]) -> None:
    async def within() -> None:
        await work

    asyncio.run(within())
