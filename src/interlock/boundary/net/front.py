"""The front: whoever comes to a door is told apart, and every request of theirs becomes an exchange."""

import asyncio
import contextlib
import ipaddress
import os
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from interlock.boundary.net import upstream
from interlock.boundary.net.arriving import PREFACE, NotRead, look, shake
from interlock.boundary.net.authority import Authority
from interlock.boundary.net.credentials import Credentials
from interlock.boundary.net.dial import DialError, dial
from interlock.boundary.net.doors import DNS_PORT, Doors, original_destination
from interlock.boundary.net.exchange import NetExchange
from interlock.boundary.net.faults import tell
from interlock.boundary.net.gate import Gate, Passed
from interlock.boundary.net.hello import Hello
from interlock.boundary.net.http1_client import Http1Client
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.names import Names, canonical_literal
from interlock.boundary.net.nameservice import answer_datagrams, answer_stream
from interlock.boundary.net.plan import NetPlan, Published, names_host
from interlock.boundary.net.pool import Dial, Pool, Way
from interlock.boundary.net.proposing import Sight
from interlock.boundary.net.refusal import is_grpc
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import ClientSide, Exchange, RequestHead
from interlock.boundary.net.tunnel import Tunnel
from interlock.model.errors import InterlockError
from interlock.model.requests import NetRequest, NetResponse, Outcome

_ACCEPTED_AT_ONCE = 64
_SWEEP_SECONDS = 1.0
_FULL_SECONDS = 0.1
_PATIENCE = 3
_AT_ONCE = struct.pack("ii", 1, 0)
_WITH_H2 = ("h2", "http/1.1")
_WITHOUT_H2 = ("http/1.1",)


class Front:
    """Serves the doors of one sandbox: the `Setting` of the clients' sides, and what their exchanges stand in.

    Takes: `destination`, how the kernel tells where a connection was meant to go; `dialler`, how far
    sides are reached.
    Holds: a connection that fails ends alone, and the gate is told of it; nothing is dialled before the gate passed a
    request, but for `plan.probed`; `tokens`, placeholders of parked requests and their effects, is the runtime's to
    fill.
    """

    def __init__(  # noqa: PLR0917 - a front stands among all of these
        self,
        doors: Doors,
        plan: NetPlan,
        gate: Gate,
        authority: Authority,
        names: Names,
        loop: asyncio.AbstractEventLoop,
        *,
        destination: Callable[[socket.socket], tuple[str, int]] = original_destination,
        dialler: Dial = dial,
    ) -> None:
        self.loop = loop
        self.plan = plan
        self.gate = gate
        self.pool = Pool(plan, loop, dialler)
        self.credentials = Credentials(plan)
        self.sight = Sight(self.credentials, views=plan.views)
        self.tokens: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        self.parked_folder = os.path.join(plan.folder, "parked")
        self.endings: set[Callable[[], None]] = set()
        self._doors = doors
        self._authority = authority
        self._names = names
        self._destination = destination
        self._links: dict[SocketLink, Callable[[], float]] = {}
        self._expiring: dict[SocketLink, Callable[[], None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._arriving = 0
        self._ended = False
        if loop.get_exception_handler() is None:  # what asyncio would print stands amid what the agent says
            loop.set_exception_handler(self._faulted)
        self._listening: list[tuple[socket.socket, Published | None]] = [(one, None) for one in doors.tcp]
        self._listening += [(one, published) for published, sockets in doors.published for one in sockets]
        for one, published in self._listening:
            loop.add_reader(one.fileno(), self._accept, one, published)
        for one in doors.dns:
            loop.add_reader(one.fileno(), answer_datagrams, one, names)
        self._sweeping = loop.call_later(_SWEEP_SECONDS, self._sweep)

    # the setting of the clients' sides

    def begin(self, client: ClientSide, head: RequestHead, place: Place) -> Exchange:
        """Begin an exchange."""
        if head.length is None and head.protocol == "h2" and is_grpc(head.headers):
            from interlock.boundary.net.open_call import OpenCall

            return OpenCall(self, client, head, place)
        return NetExchange(self, client, head, place)

    def turned_away(self, place: Place, reason: str) -> None:
        """Report what was refused without being an effect."""
        self.gate.turned_away(place.host, place.port, reason)

    def run(self, work: Coroutine[Any, Any, None], place: Place | None = None) -> "asyncio.Task[None] | None":
        """Run what waits, until the front closes. Returns: None where it has closed."""
        if self._ended:
            work.close()
            return None
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._ran, place))
        return task

    @property
    def connections(self) -> int:
        """Return how many connections of clients are open."""
        return len(self._links) + self._arriving

    def end(self) -> None:
        """Take nothing more, and break off what is open."""
        if self._ended:
            return
        self._ended = True
        self._sweeping.cancel()
        for one, _ in self._listening:
            if one.fileno() >= 0:
                self.loop.remove_reader(one.fileno())
        for one in self._doors.dns:
            if one.fileno() >= 0:
                self.loop.remove_reader(one.fileno())
        self._doors.close()
        for ending in list(self.endings):
            ending()
        for task in self._tasks:
            task.cancel()
        for link in list(self._links):
            link.abort()
        self._links.clear()
        self.pool.close()

    def close(self) -> None:
        """End what is open, and close the loop, which does not run."""
        self.end()
        if not self.loop.is_closed():
            self.loop.run_until_complete(self.settled())
            self.loop.close()

    async def settled(self) -> None:
        """Wait, after `end`, until what was broken off has said so."""
        for _ in range(_PATIENCE):
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=1.0)
        for _ in range(3):  # links say from the loop that they are closed, and what hears it may close others
            await asyncio.sleep(0)
        self.pool.close()
        await asyncio.sleep(0)
        upstream.break_off(self.loop)
        await asyncio.sleep(0)

    # arrivals

    def _accept(self, listener: socket.socket, published: Published | None) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                sock, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError:  # out of descriptors: those who wait are taken when there are some again
                self.loop.remove_reader(listener.fileno())
                self.loop.call_later(_FULL_SECONDS, self._listen, listener, published)
                return
            sock.setblocking(False)
            if self.connections >= self.plan.limits.connections:
                self._forget()
            if self.connections >= self.plan.limits.connections:
                self.gate.turned_away("", 0, "too many connections at once")
                _reset(sock)
                continue
            self._take(sock, self._arrive(sock, published))

    def _listen(self, listener: socket.socket, published: Published | None) -> None:
        if not self._ended:
            self.loop.add_reader(listener.fileno(), self._accept, listener, published)

    def _take(self, sock: socket.socket, work: Coroutine[Any, Any, None]) -> None:
        """Let a connection arrive; whatever fails ends it alone."""

        def arrived(task: "asyncio.Task[None]") -> None:
            self._arriving -= 1
            if task.cancelled() or task.exception() is not None:
                _reset(sock)

        self._arriving += 1
        task = self.run(work)
        if task is None:
            self._arriving -= 1
            _reset(sock)
        else:
            task.add_done_callback(arrived)

    async def _arrive(self, sock: socket.socket, published: Published | None) -> None:
        if published is not None:
            place = Place(host=published.host, port=published.host_port, tls=False, published=True)
            await self._guarded(sock, place, opaque=published.opaque, published=True)
            return
        try:
            address, port = self._destination(sock)
        except OSError:
            self.gate.turned_away(
                "", 0, "made straight to a door, or the kernel does not know its destination"
            )
            _reset(sock)
            return
        if port == DNS_PORT:
            with contextlib.suppress(OSError, TimeoutError), sock:
                await answer_stream(self.loop, sock, self._names, self.plan.limits.head_seconds)
            return
        await self._meant_for(sock, address, port)

    async def _meant_for(self, sock: socket.socket, target: str, port: int) -> None:
        """Go on with a connection to an address, or to a name that a CONNECT gave."""
        literal = canonical_literal(target)
        host = target if not literal else self._names.host_of(literal)
        if host is None and (self._names.is_placeholder(literal) or _is_own(literal)):
            self.gate.turned_away(literal, port, "no name was asked for that has this address")
            _reset(sock)
            return
        address = literal if literal and host is None else ""
        place = Place(host=host or literal, port=port, tls=False, address=address)
        opaque = any(
            route.port == port and names_host((canonical_literal(route.host) or route.host,), place.host)
            for route in self.plan.opaque
        )
        await self._guarded(sock, place, opaque=opaque, published=False)

    async def _guarded(self, sock: socket.socket, place: Place, *, opaque: bool, published: bool) -> None:
        """Tell the connection apart, and answer for what it turns out to be."""
        try:
            if opaque:
                await self._pass_unread(sock, place)
                return
            async with asyncio.timeout(self.plan.limits.head_seconds):
                found = await look(sock)
                if isinstance(found, Hello):
                    if published:
                        raise NotRead("TLS to a published port, which is read as HTTP")
                    sock, place, alpn = await self._end_tls(sock, place, found)
                    http2 = alpn == "h2"
                else:
                    alpn, http2 = "", found == PREFACE
            self._serve(sock, place, alpn, http2=http2)
        except NotRead as error:
            self.gate.turned_away(place.host, place.port, str(error))
            _reset(sock)
        except ssl.SSLError as error:
            reason = (error.reason or "").lower().replace("_", " ")
            self.gate.turned_away(place.host, place.port, f"the TLS handshake failed: {reason or 'cut off'}")
            _reset(sock)
        except TimeoutError:
            self.gate.turned_away(place.host, place.port, "nothing that could be read came in time")
            _reset(sock)
        except OSError:
            _reset(sock)
        except asyncio.CancelledError:
            _reset(sock)
            raise
        except BaseException as error:  # noqa: BLE001 - it is told, or raised on
            _reset(sock)
            tell(self.loop, place.host, place.port, error)

    async def _end_tls(
        self, sock: socket.socket, place: Place, hello: Hello
    ) -> tuple[socket.socket, Place, str]:
        if hello.sni and hello.sni != place.host:
            if not place.address or place.host != place.address:
                raise NotRead("server name differs from the address that was asked for")
            place = replace(place, host=hello.sni)  # the dial checks that the name has this address
        wants = "h2" in hello.alpn
        place = replace(place, tls=True, h2=wants)
        alpn: tuple[str, ...] = _WITHOUT_H2
        if wants and "http/1.1" not in hello.alpn:
            alpn = ("h2",)  # it speaks nothing else; what the far side speaks is its own matter
        elif wants and await self._far_speaks_h2(place):
            alpn = _WITH_H2
        secured = await shake(sock, self._authority.context(place.host, alpn))
        return secured, place, secured.selected_alpn_protocol() or ""

    async def _far_speaks_h2(self, place: Place) -> bool:
        known = self.pool.speaks_h2(place.host, place.port)
        if known is None and names_host(self.plan.probed, place.host):
            way = Way(address=place.address, host=place.host, port=place.port, tls=True, published=False)
            with contextlib.suppress(DialError):  # the request itself will be told why
                known = await self.pool.probe(way)
        return bool(known)

    def _serve(self, sock: socket.socket, place: Place, alpn: str, *, http2: bool) -> None:
        link = SocketLink(self.loop, sock, alpn)
        link.on_fault = partial(tell, self.loop, place.host, place.port)
        if http2:
            from interlock.boundary.net.http2_client import Http2Client

            client: Http1Client | Http2Client = Http2Client(link, place, self)
        else:
            client = Http1Client(link, place, self, self._connect)
        self._links[link] = lambda: client.deadline
        self._expiring[link] = client.expire

    def _connect(self, client: Http1Client, head: RequestHead) -> None:
        """The agent takes us for its proxy: what follows is a new connection to the place that it names."""
        rest = client.give_up()
        client.agree()
        self._links.pop(client.link, None)
        self._expiring.pop(client.link, None)
        if rest or not client.link.empty or client.link.gone:
            self.turned_away(client.place, "a CONNECT was followed by bytes before its answer")
            client.link.abort()
            return
        sock = client.link.detach()
        self._take(sock, self._meant_for(sock, head.authority_host, head.port))

    async def _pass_unread(self, sock: socket.socket, place: Place) -> None:
        request = NetRequest(
            method="CONNECT",
            scheme="tcp",
            host=place.host,
            port=place.port,
            path="",
            protocol="opaque",
            address=place.address,
            published=place.published,
        )
        try:
            asked = self.gate.propose(request, None)
            passage = asked if not hasattr(asked, "__await__") else await asked
        except InterlockError:
            _reset(sock)
            return
        if not isinstance(passage, Passed):
            _reset(sock)
            return
        way = Way(
            address=place.address, host=place.host, port=place.port, tls=False, published=place.published
        )
        effect_id = passage.effect_id
        try:
            far = await self.pool.link(way)
        except DialError as error:
            self.gate.answered(effect_id, NetResponse(outcome=error.outcome, detail=error.message), None)
            _reset(sock)
            return
        except asyncio.CancelledError:
            self.gate.answered(effect_id, NetResponse(outcome=Outcome.FAILED, detail="the run ended"), None)
            raise
        link = SocketLink(self.loop, sock)
        link.on_fault = partial(tell, self.loop, place.host, place.port)
        self._links[link] = lambda: float("inf")
        self._links[far] = lambda: float("inf")
        Tunnel(link, far, lambda response: self.gate.answered(effect_id, response, None))

    # upkeep

    def _sweep(self) -> None:
        now = self.loop.time()
        self._forget()
        for link, deadline in list(self._links.items()):
            if deadline() < now and link in self._expiring:
                self._expiring[link]()
        self.pool.sweep(now)
        self._sweeping = self.loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _forget(self) -> None:
        for link in [link for link in self._links if link.gone]:
            del self._links[link]
            self._expiring.pop(link, None)

    def _ran(self, place: Place | None, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            host, port = ("", 0) if place is None else (place.host, place.port)
            tell(self.loop, host, port, error)

    def _faulted(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Tell of a fault of our own: it ended a connection, and no more."""
        error = context.get("exception")
        what = context.get("message", "") if error is None else type(error).__name__
        with contextlib.suppress(InterlockError):
            host, port = context.get("place", ("", 0))
            self.gate.turned_away(host, port, f"the boundary failed on it: {what}")


def _is_own(literal: str) -> bool:
    """Say whether an address is one that no connection out of the sandbox can be meant for."""
    return bool(literal) and ipaddress.ip_address(literal).is_unspecified


def _reset(sock: socket.socket) -> None:
    """Close the connection so that the client sees it refused."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    sock.close()
