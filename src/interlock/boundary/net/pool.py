"""Connections to far sides, kept alive between requests, and what is known of the protocols that they speak."""

import asyncio
from typing import NamedTuple, Protocol

from interlock.boundary.net.dial import dial
from interlock.boundary.net.dialling import Dialled
from interlock.boundary.net.http1_far import Http1Far
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.settings import FarConnection

_IDLE_SECONDS = 60.0
_IDLE_PER_WAY = 256
_BOTH = ("h2", "http/1.1")
_ONE = ("http/1.1",)


class Way(NamedTuple):
    """Where a connection leads: two requests share one only if they agree in all of it."""

    address: str
    host: str
    port: int
    tls: bool
    published: bool


class Dial(Protocol):
    """How a far side is reached: `dial.dial`."""

    async def __call__(
        self,
        plan: NetPlan,
        host: str,
        port: int,
        *,
        tls: bool,
        alpn: tuple[str, ...],
        address: str = "",
        published: bool = False,
    ) -> Dialled:
        """Connect. Raises: DialError."""
        ...


class Pool:
    """The far connections of a run, by way.

    Holds: an HTTP/1 connection is lent to one exchange at a time; nothing is dialled but by `open`, `fresh`, `probe`
    and `link`, which are called for what was passed, or for hosts that the operator named.
    """

    def __init__(self, plan: NetPlan, loop: asyncio.AbstractEventLoop, dialler: Dial = dial) -> None:
        self.loop = loop
        self._dialler = dialler
        self.limits = plan.limits
        self._plan = plan
        self._idle: dict[Way, list[tuple[float, Http1Far]]] = {}
        self._shared: dict[Way, list[FarConnection]] = {}
        self._every: set[FarConnection] = set()
        self._ways: dict[FarConnection, Way] = {}
        self._opening: dict[Way, asyncio.Future[None]] = {}
        self._h2: dict[tuple[str, int], bool] = {}
        self._ended = False

    def speaks_h2(self, host: str, port: int) -> bool | None:
        """Say whether the far side speaks HTTP/2; None where that is not known."""
        return self._h2.get((host, port))

    def ready(self, way: Way, h2: bool) -> FarConnection | None:
        """Return a connection on which an exchange can begin at once. Takes: `h2`, whether HTTP/2 will do."""
        if h2:
            for one in self._shared.get(way, ()):
                if one.room:
                    return one
        waiting = self._idle.get(way)
        while waiting:
            _, far = waiting.pop()
            if far.room:
                return far
        return None

    async def open(self, way: Way, h2: bool) -> FarConnection:
        """Dial a connection, or share one that another exchange has just dialled. Raises: DialError."""
        h2 = h2 and self._h2.get((way.host, way.port)) is not False
        if h2:
            while (pending := self._opening.get(way)) is not None:
                await asyncio.wait([pending])
                found = self.ready(way, h2)
                if found is not None:
                    return found
                if self._h2.get((way.host, way.port)) is False:
                    break  # each has to have a connection of its own
        if not h2 or not way.tls:
            return await self._dial(way, _ONE if way.tls else ())
        pending = self._opening[way] = self.loop.create_future()
        try:
            return await self._dial(way, _BOTH)
        finally:
            if self._opening.get(way) is pending:
                del self._opening[way]
            if not pending.done():
                pending.set_result(None)

    async def fresh(self, way: Way) -> Http1Far:
        """Dial an HTTP/1 connection that no other exchange gets, for an upgrade. Raises: DialError."""
        far = await self._dial(way, _ONE if way.tls else ())
        assert isinstance(far, Http1Far)
        return far

    async def probe(self, way: Way) -> bool:
        """Learn whether the far side speaks HTTP/2 by dialling it; the connection is kept. Raises: DialError."""
        known = self._h2.get((way.host, way.port))
        if known is None:
            far = await self._dial(way, _BOTH)
            if isinstance(far, Http1Far):
                self._rest(far)
        return self._h2.get((way.host, way.port), False)

    async def link(self, way: Way) -> SocketLink:
        """Dial a connection whose bytes pass unread. Raises: DialError."""
        dialled = await self._dialler(
            self._plan, way.host, way.port, tls=False, alpn=(), address=way.address, published=way.published
        )
        return SocketLink(self.loop, dialled.sock)

    def rest(self, far: FarConnection) -> None:
        """Give back a connection on which nothing was begun."""
        if isinstance(far, Http1Far):
            self._rest(far)

    def sweep(self, now: float) -> None:
        """Close what was idle too long."""
        for way, waiting in list(self._idle.items()):
            while waiting and waiting[0][0] < now - _IDLE_SECONDS:
                waiting.pop(0)[1].close()
            if not waiting:
                del self._idle[way]

    def close(self) -> None:
        """Close every connection that no exchange runs on, and keep none from now on."""
        self._ended = True
        for far in list(self._every):
            far.close()
        self._idle.clear()
        self._shared.clear()

    async def _dial(self, way: Way, alpn: tuple[str, ...]) -> FarConnection:
        dialled = await self._dialler(
            self._plan,
            way.host,
            way.port,
            tls=way.tls,
            alpn=alpn,
            address=way.address,
            published=way.published,
        )
        link = SocketLink(self.loop, dialled.sock, dialled.alpn)
        if alpn == _BOTH:
            self._h2[way.host, way.port] = dialled.alpn == "h2"
        far: FarConnection
        if dialled.alpn == "h2":
            from interlock.boundary.net.http2_far import Http2Far

            far = Http2Far(link, self)
            self._shared.setdefault(way, []).append(far)
        else:
            far = Http1Far(link, self)
        self._every.add(far)
        self._ways[far] = way
        far.on_idle = self._idled
        far.on_gone = self._left
        return far

    def _idled(self, far: FarConnection) -> None:
        if self._ended:
            far.close()
        elif isinstance(far, Http1Far):
            self._rest(far)

    def _rest(self, far: Http1Far) -> None:
        way = self._ways.get(far)
        if way is None or not far.room:
            return
        waiting = self._idle.setdefault(way, [])
        waiting.append((self.loop.time(), far))
        if len(waiting) > _IDLE_PER_WAY:
            waiting.pop(0)[1].close()

    def _left(self, far: FarConnection) -> None:
        self._every.discard(far)
        way = self._ways.pop(far, None)
        if way is None:
            return
        shared = self._shared.get(way)
        if shared is not None and far in shared:
            shared.remove(far)
        waiting = self._idle.get(way)
        if waiting:
            waiting[:] = [entry for entry in waiting if entry[1] is not far]
