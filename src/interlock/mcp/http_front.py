"""HTTP toward clients on a listening socket: each request is handed on whole, and answered whole or in events."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from interlock.boundary.mcp.messages import MAX_BYTES
from interlock.boundary.net.faults import tell
from interlock.boundary.net.heads import bodyless
from interlock.boundary.net.http1_client import Http1Client
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.mcp_events import event_bytes
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.refusal import plain
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, RawHeaders, RequestHead
from interlock.model.requests import Outcome

_ACCEPTED_AT_ONCE = 64
_SWEEP_SECONDS = 1.0
_EVENTS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_JSON = (b"content-type", b"application/json")


class Asked:
    """One request of a client's, whole, and the way to answer it: the exchange as the client's side sees it."""

    def __init__(self, client: ClientSide, head: RequestHead, take: Callable[[Asked], None]) -> None:
        self.head = head
        self.body = b""
        self.headers: dict[bytes, bytes] = {}
        for name, value in head.headers:
            self.headers[name] = self.headers[name] + b", " + value if name in self.headers else value
        self.gone = asyncio.Event()
        """The client does not wait any more."""
        self.begun = False
        self.over = False
        self.more: list[tuple[bytes, bytes]] = []
        """Headers that whatever answer gets."""
        self._client = client
        self._take = take
        self._parts = bytearray()
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_open(self) -> bool:
        """Say whether something can still be told on it."""
        return not self.over and not self.gone.is_set()

    def whole(self, status: int, body: bytes = b"", headers: RawHeaders = (), kind: bytes = b"") -> None:
        """Answer in one piece. Takes: `kind`, of the body, JSON where it is left out."""
        if self.begun or not self.is_open:
            return
        self.begun = self.over = True
        fields = [*headers, *self.more]
        if body:
            fields.append((b"content-type", kind) if kind else _JSON)
        none = bodyless(self.head.method, status)
        self._client.answer(AnswerHead(status=status, headers=tuple(fields), length=0 if none else len(body)))
        if body and not none:
            self._client.data(body)
        self._client.end(())

    def turn_away(self, status: int, why: str, headers: RawHeaders = ()) -> None:
        """Answer that it is not taken."""
        head, body = plain(status, "Not taken by Interlock", why)
        kind = dict(head.headers).get(b"content-type", b"")
        self.whole(status, body, headers, kind)

    def begin_events(self) -> None:
        """Begin a stream of events, where it has not begun."""
        if not self.begun and self.is_open:
            self.begun = True
            self._client.answer(AnswerHead(status=200, headers=(*_EVENTS, *self.more)))

    async def event(self, data: bytes, **fields: bytes) -> None:
        """Send an event, once the client has room. Raises: ConnectionError, where it does not listen any more."""
        self.begin_events()
        await self._room.wait()
        if not self.is_open:
            raise ConnectionError
        self._client.data(event_bytes(data, **fields))

    def end(self) -> None:
        """End the stream of events."""
        if self.begun and self.is_open:
            self.over = True
            self._client.end(())

    # the client's code calls these

    def body_data(self, chunk: bytes) -> None:
        """Take a part of the body."""
        if len(self._parts) <= MAX_BYTES:
            self._parts += chunk
            if len(self._parts) > MAX_BYTES:
                self.turn_away(413, "the message is larger than 32 MiB")

    def body_end(self, trailers: RawHeaders) -> None:
        """The request is whole."""
        if not self.over:
            self.body = bytes(self._parts)
            self._take(self)

    def client_gone(self) -> None:
        """The client closed."""
        self.gone.set()
        self._room.set()

    def client_full(self, full: bool) -> None:
        """The client's link is full, or has room again."""
        if full:
            self._room.clear()
        else:
            self._room.set()

    # no far side calls these: what is asked of the server has an exchange of its own

    def came_interim(self, head: AnswerHead) -> None:
        """Nothing."""

    def came_head(self, head: AnswerHead) -> None:
        """Nothing."""

    def came_data(self, chunk: bytes) -> None:
        """Nothing."""

    def came_end(self, trailers: RawHeaders) -> None:
        """Nothing."""

    def came_failure(self, outcome: Outcome, detail: str) -> None:
        """Nothing."""

    def far_full(self, full: bool) -> None:
        """Nothing."""


class Front:
    """Serves a listening socket: the `Setting` of its clients. Takes: `serve`, called with each whole request."""

    def __init__(
        self, listener: socket.socket, plan: NetPlan, serve: Callable[[Asked], Awaitable[None]]
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.plan = plan
        self._listener = listener
        self._serve = serve
        self._links: dict[SocketLink, Http1Client] = {}
        self._asked: dict[SocketLink, Asked] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        address, port = listener.getsockname()[:2]
        # A literal that was dialled itself: any name may stand in the host field here, and is looked at later.
        self._place = Place(host=address, port=port, tls=False, address=address)
        self.loop.add_reader(listener.fileno(), self._accept)
        self._sweeping = self.loop.call_later(_SWEEP_SECONDS, self._sweep)

    def begin(self, client: ClientSide, head: RequestHead, place: Place) -> Asked:
        """Begin with a request."""
        asked = Asked(client, head, self._take)
        assert isinstance(client, Http1Client)
        self._asked[client.link] = asked
        return asked

    def turned_away(self, place: Place, reason: str) -> None:
        """Take note of a head that cannot be read: it was answered."""

    async def end(self) -> None:
        """Take nothing more, and break off what is open."""
        self._sweeping.cancel()
        self.loop.remove_reader(self._listener.fileno())
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5.0)
        for link in list(self._links):
            link.abort()
        for _ in range(3):  # links say from the loop that they are closed
            await asyncio.sleep(0)

    def _take(self, asked: Asked) -> None:
        task: asyncio.Task[None] = self.loop.create_task(self._serving(asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serving(self, asked: Asked) -> None:
        try:
            await self._serve(asked)
        except Exception as error:  # noqa: BLE001 - it ends this request, and no other
            tell(self.loop, "", 0, error)
            asked.turn_away(500, f"a fault of Interlock's own: {type(error).__name__}")
        finally:
            asked.end()

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                sock, _ = self._listener.accept()
            except OSError:  # none is waiting, or descriptors are out: the sweep goes on, and so does this
                return
            sock.setblocking(False)
            if len(self._links) >= self.plan.limits.connections:
                sock.close()
                continue
            link = SocketLink(self.loop, sock)
            link.on_fault = partial(tell, self.loop, "", 0)
            self._links[link] = Http1Client(link, self._place, self, _no_tunnel)
            link.on_eof = partial(self._left, link, link.on_eof)

    def _left(self, link: SocketLink, then: Callable[[], None]) -> None:
        """Take the end of what a client says for its end: none of MCP's waits on with half a connection."""
        asked = self._asked.get(link)
        if asked is not None and not asked.over:
            asked.client_gone()
            link.abort()
        else:
            then()

    def _sweep(self) -> None:
        now = self.loop.time()
        for link in [link for link in self._links if link.gone]:
            del self._links[link]
            self._asked.pop(link, None)
        for client in list(self._links.values()):
            if client.deadline < now:
                client.expire()
        self._sweeping = self.loop.call_later(_SWEEP_SECONDS, self._sweep)

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run what goes on behind requests, until the front ends."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _no_tunnel(client: Http1Client, head: RequestHead) -> None:
    asked = Asked(client, head, lambda _asked: None)
    asked.turn_away(405, "this is no proxy: it is the address of one MCP server")
    with suppress(OSError):
        client.link.close()
