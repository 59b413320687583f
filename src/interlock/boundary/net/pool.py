"""Connections to far sides, kept alive between requests, and what is known of the protocols that they speak."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from interlock.boundary.net.dial import DialError, dial
from interlock.boundary.net.dialling import Dialled
from interlock.boundary.net.faults import tell
from interlock.boundary.net.http1_far import Http1Far
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.settings import FarConnection

if TYPE_CHECKING:
    from interlock.boundary.net.http2_far import Http2Far

_IDLE_SECONDS = 60.0
_IDLE_PER_WAY = 256
_SLOW_SECONDS = 0.5
_FAILED_SECONDS = 5.0
_FAILED_WAYS = 256
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
    and `link`, which are called for what was passed, or for hosts that the operator named; a probe that failed slowly
    is not tried again for a moment, so that the request behind it does not wait a second time.
    """

    def __init__(self, plan: NetPlan, loop: asyncio.AbstractEventLoop, dialler: Dial = dial) -> None:
        self.loop = loop
        self._dialler = dialler
        self.limits = plan.limits
        self._plan = plan
        self._idle: dict[Way, list[tuple[float, Http1Far]]] = {}
        self._shared: dict[Way, list[Http2Far]] = {}
        self._every: set[FarConnection] = set()
        self._ways: dict[FarConnection, Way] = {}
        self._opening: dict[Way, asyncio.Future[DialError | None]] = {}
        self._h2: dict[tuple[str, int], bool] = {}
        self._failed: dict[Way, tuple[float, DialError]] = {}
        self._h1_until: dict[Way, float] = {}
        self._ended = False

    def speaks_h2(self, host: str, port: int) -> bool | None:
        """Say whether the far side speaks HTTP/2; None where that is not known."""
        return self._h2.get((host, port))

    def ready(self, way: Way, h2: bool) -> FarConnection | None:
        """Return a connection on which an exchange can begin at once. Takes: `h2`, whether HTTP/2 will do.

        Holds: without TLS nothing is agreed on: who speaks HTTP/2 there knows that the far side does, which may speak
        nothing else.
        """
        if h2:
            for one in self._shared.get(way, ()):
                if one.room:
                    return one
            if not way.tls and not self._speaks_h1_alone(way):
                return None
        waiting = self._idle.get(way)
        while waiting:
            _, far = waiting.pop()
            if far.room:
                return far
        return None

    async def open(self, way: Way, h2: bool) -> FarConnection:
        """Dial a connection, or share one that another exchange has just dialled. Raises: DialError."""
        h2 = h2 and not self._speaks_h1_alone(way)
        if h2:
            while True:
                found = self.ready(way, h2)  # another's dialling may have ended since the caller looked
                if found is not None:
                    return found
                pending = self._opening.get(way)
                if pending is None:
                    break
                await asyncio.wait([pending])
                failed = pending.result()
                if failed is not None:
                    raise _again(failed)  # else those who wait would try one after the other
                if self._speaks_h1_alone(way):
                    h2 = False  # each has to have a connection of its own
                    break
        if not h2:
            return await self._dial(way, _ONE if way.tls else ())
        pending = self._opening[way] = self.loop.create_future()
        try:
            return await self._dial(way, _BOTH) if way.tls else await self._dial_unagreed(way)
        except DialError as error:
            pending.set_result(error)
            raise
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
            begun = self.loop.time()
            try:
                far = await self._dial(way, _BOTH)
            except DialError as error:
                self._remember(way, error, begun)
                raise
            if isinstance(far, Http1Far):
                self._rest(far)
        return self._h2.get((way.host, way.port), False)

    async def link(self, way: Way) -> SocketLink:
        """Dial a connection whose bytes pass unread. Raises: DialError."""
        return await self._reach(way, ())

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
        for shared in list(self._shared.values()):
            for far in list(shared):
                if far.idle_since is not None and far.idle_since < now - self.limits.idle_seconds:
                    far.close()
        self._failed = {way: entry for way, entry in self._failed.items() if entry[0] >= now}
        self._h1_until = {way: until for way, until in self._h1_until.items() if until >= now}

    def close(self) -> None:
        """Close every connection that no exchange runs on, and keep none from now on."""
        self._ended = True
        for far in list(self._every):
            far.close()
        self._idle.clear()
        self._shared.clear()

    async def _dial(self, way: Way, alpn: tuple[str, ...]) -> FarConnection:
        link = await self._reach(way, alpn)
        if alpn == _BOTH:
            self._h2[way.host, way.port] = link.alpn == "h2"
        if link.alpn == "h2":
            from interlock.boundary.net.http2_far import Http2Far

            shared = Http2Far(link, self)
            self._take(way, shared)
            self._shared.setdefault(way, []).append(shared)
            return shared
        far = Http1Far(link, self)
        self._take(way, far)
        return far

    async def _dial_unagreed(self, way: Way) -> FarConnection:
        """Dial without TLS for who speaks HTTP/2 there.

        Holds: nothing of a request leaves before the far side has shown that it speaks it too, for another could find
        requests in the frames of a body; to one that does not, it is written as HTTP/1.
        """
        from interlock.boundary.net.http2_far import Http2Far

        far = Http2Far(await self._reach(way, ()), self)
        self._take(way, far)
        greeted: asyncio.Future[bool] = self.loop.create_future()
        far.on_greeted = greeted.set_result
        seconds = self.limits.connect_seconds
        if not await _waited(far, greeted, seconds):
            raise DialError(f"`{way.host}` did not begin to speak HTTP/2 in {seconds:g} s", "timed-out")
        if greeted.result():
            if far in self._every:  # it may have gone meanwhile: then it takes nothing, and says so
                self._shared.setdefault(way, []).append(far)
            return far
        self._h1_until[way] = self.loop.time() + _FAILED_SECONDS
        return await self._dial(way, ())

    async def _reach(self, way: Way, alpn: tuple[str, ...]) -> SocketLink:
        until, failed = self._failed.get(way, (0.0, None))
        if failed is not None and self.loop.time() < until:
            raise _again(failed)
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
        link.on_fault = partial(tell, self.loop, way.host, way.port)
        return link

    def _take(self, way: Way, far: FarConnection) -> None:
        self._every.add(far)
        self._ways[far] = way
        far.on_idle = self._idled
        far.on_gone = self._left

    def _speaks_h1_alone(self, way: Way) -> bool:
        if way.tls:
            return self._h2.get((way.host, way.port)) is False
        return self._h1_until.get(way, 0.0) > self.loop.time()

    def _remember(self, way: Way, error: DialError, begun: float) -> None:
        now = self.loop.time()
        if now - begun >= _SLOW_SECONDS and len(self._failed) < _FAILED_WAYS:
            self._failed[way] = (now + _FAILED_SECONDS, _again(error))

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
            shared[:] = [one for one in shared if one is not far]
            if not shared:
                del self._shared[way]
        waiting = self._idle.get(way)
        if waiting:
            waiting[:] = [entry for entry in waiting if entry[1] is not far]


async def _waited(far: "Http2Far", greeted: "asyncio.Future[bool]", seconds: float) -> bool:
    """Wait for the far side's settings; a connection without them is closed."""
    try:
        await asyncio.wait([greeted], timeout=seconds)
    finally:
        far.on_greeted = _ignore
        if not (greeted.done() and greeted.result()):
            far.close()
    return greeted.done()


def _ignore(_speaks: bool) -> None:
    pass


def _again(error: DialError) -> DialError:
    return DialError(error.message, error.kind, error.outcome, hint=error.hint)
