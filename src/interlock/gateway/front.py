"""The gateway's front: HTTP/1.1 on a listening socket, each request an exchange of its session's run."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from interlock.boundary.net.faults import tell
from interlock.boundary.net.heads import bodyless
from interlock.boundary.net.http1_client import Http1Client
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.refusal import plain
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, Exchange, RawHeaders, RequestHead
from interlock.gateway.requests import Door, Taken, Turned, read
from interlock.gateway.session import Session
from interlock.gateway.upstreams import Upstreams
from interlock.gateway.waiting import Waiting
from interlock.model.errors import InterlockError
from interlock.model.requests import Outcome

_ACCEPTED_AT_ONCE = 64
_SWEEP_SECONDS = 1.0
_FULL_SECONDS = 0.1
_PATIENCE = 3
_TITLE = "Not taken by the gateway"


class Front:
    """Serves one listening socket: the `Setting` of the clients' sides.

    Takes: `listener`, which does not block; `session_of`, which gives a session by its name, or what comes to be it,
    with an InterlockError where it cannot be opened.
    Holds: a connection that fails ends alone.
    """

    def __init__(  # noqa: PLR0917 - a front stands among all of these
        self,
        listener: socket.socket,
        plan: NetPlan,
        upstreams: Upstreams,
        door: Door,
        session_of: Callable[[str], Session | asyncio.Future[Session]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.loop = loop
        self.plan = plan
        self._listener = listener
        self._upstreams = upstreams
        self._door = door
        self._session_of = session_of
        self._links: dict[SocketLink, Http1Client] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False
        address, port = listener.getsockname()[:2]
        # A literal that was dialled itself: any name may stand in the host field here, and `requests.read` knows which.
        self._place = Place(host=address, port=port, tls=False, address=address)
        loop.add_reader(listener.fileno(), self._accept)
        self._sweeping = loop.call_later(_SWEEP_SECONDS, self._sweep)

    # the setting of the clients' sides

    def begin(self, client: ClientSide, head: RequestHead, place: Place) -> Exchange:
        """Begin an exchange of the session that a request belongs to."""
        found = read(head, self._upstreams, self._door)
        if isinstance(found, Turned):
            return _Refusing(client, head.method, found)
        session = self._session_of(found.session)
        if isinstance(session, Session):
            return session.begin(client, found.head, found.place)
        waiting = Waiting(client)
        self.run(self._opened(waiting, session, client, found))
        return waiting

    async def _opened(
        self, waiting: Waiting, opening: asyncio.Future[Session], client: ClientSide, found: Taken
    ) -> None:
        try:
            session = await asyncio.shield(opening)
        except InterlockError as error:
            turned = Turned(status=503, detail=f"no run could be opened for it: {error.message}")
            waiting.go_on(lambda: _Refusing(client, found.head.method, turned))
        else:
            waiting.go_on(lambda: session.begin(client, found.head, found.place))

    def turned_away(self, place: Place, reason: str) -> None:
        """Take note of a head that cannot be read: it belongs to no session, and was answered."""

    def run(self, work: Coroutine[Any, Any, None], place: Place | None = None) -> asyncio.Task[None] | None:
        """Run what waits, until the front closes. Returns: None where it has closed."""
        if self._ended:
            work.close()
            return None
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ran)
        return task

    @property
    def connections(self) -> int:
        """Return how many connections are open."""
        return len(self._links)

    async def end(self) -> None:
        """Take nothing more, and break off what is open."""
        if self._ended:
            return
        self._ended = True
        self._sweeping.cancel()
        self.loop.remove_reader(self._listener.fileno())
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        for link in list(self._links):
            link.abort()
        for _ in range(_PATIENCE):
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=1.0)
        for _ in range(3):  # links say from the loop that they are closed
            await asyncio.sleep(0)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                sock, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError:  # out of descriptors: those who wait are taken when there are some again
                self.loop.remove_reader(self._listener.fileno())
                self.loop.call_later(_FULL_SECONDS, self._listen)
                return
            sock.setblocking(False)
            self._forget()
            if len(self._links) >= self.plan.limits.connections:
                sock.close()
                continue
            link = SocketLink(self.loop, sock)
            link.on_fault = partial(tell, self.loop, "", 0)
            self._links[link] = Http1Client(link, self._place, self, _no_tunnel)

    def _listen(self) -> None:
        if not self._ended:
            self.loop.add_reader(self._listener.fileno(), self._accept)

    def _sweep(self) -> None:
        now = self.loop.time()
        self._forget()
        for client in list(self._links.values()):
            if client.deadline < now:
                client.expire()
        self._sweeping = self.loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _forget(self) -> None:
        for link in [link for link in self._links if link.gone]:
            del self._links[link]

    def _ran(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            tell(self.loop, "", 0, error)


def _no_tunnel(client: Http1Client, head: RequestHead) -> None:
    """Answer a client that takes the gateway for its proxy."""
    turned = Turned(status=405, detail="this is no proxy: make it the base URL of the agent's model")
    _Refusing(client, head.method, turned).body_end(())
    with contextlib.suppress(OSError):
        client.link.close()


class _Refusing:
    """The exchange of a request that is not taken: it is answered once it is whole, and nothing of it is kept."""

    def __init__(self, client: ClientSide, method: str, turned: Turned) -> None:
        self._client = client
        self._method = method
        self._turned = turned
        self._gone = False

    def body_data(self, chunk: bytes) -> None:
        pass

    def body_end(self, trailers: RawHeaders) -> None:
        if self._gone:
            return
        head, body = plain(self._turned.status, _TITLE, self._turned.detail)
        none = bodyless(self._method, head.status)
        self._client.answer(AnswerHead(status=head.status, headers=head.headers, length=0) if none else head)
        if not none:
            self._client.data(body)
        self._client.end(())

    def client_gone(self) -> None:
        self._gone = True

    def client_full(self, full: bool) -> None:
        pass

    def came_interim(self, head: AnswerHead) -> None:
        pass

    def came_head(self, head: AnswerHead) -> None:
        pass

    def came_data(self, chunk: bytes) -> None:
        pass

    def came_end(self, trailers: RawHeaders) -> None:
        pass

    def came_failure(self, outcome: Outcome, detail: str) -> None:
        pass

    def far_full(self, full: bool) -> None:
        pass
