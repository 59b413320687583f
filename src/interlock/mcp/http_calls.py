"""One message that a client posts, and one stream on which it listens: carried on and back, decided between."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from interlock.boundary.mcp import versions
from interlock.boundary.mcp.messages import (
    INTERNAL,
    Message,
    Request,
    Response,
    Unreadable,
    failure,
    read,
)
from interlock.boundary.net.mcp_events import Event, Events
from interlock.boundary.net.mcp_requests import SESSION
from interlock.mcp.http_far import Answer, Upstream
from interlock.mcp.http_front import Asked
from interlock.mcp.http_lanes import Lane
from interlock.mcp.pending import ServerGone

EVENTS, JSON = b"text/event-stream", b"application/json"
_NOT_OURS = frozenset((b"origin", b"accept-encoding", b"te", b"expect", b"content-encoding"))
_BACK = (SESSION, b"www-authenticate", b"retry-after", b"mcp-protocol-version", b"allow")
_GRACE_S = 1.0
_BOTH_ENDS_S = 0.1
_STATE = re.compile(rb'"requestState"')


def headers_onward(headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """Return what of a client's headers the server gets."""
    return [(name, value) for name, value in headers.items() if name not in _NOT_OURS]


def headers_back(answer: Answer) -> tuple[tuple[bytes, bytes], ...]:
    """Return what of the server's headers the client gets."""
    return tuple((name, answer.headers[name]) for name in _BACK if name in answer.headers)


class Posting:
    """A message that a client posts. Takes: `lane`, where it belongs; `message`, as it is read."""

    def __init__(self, upstream: Upstream, lane: Lane, asked: Asked, message: Message) -> None:
        self.answer: Answer | None = None
        """The server's, where it was asked."""
        self.on_head: Callable[[], None] = lambda: None
        """Called when the head of the server's answer is here, before the client gets any of it."""
        self._upstream = upstream
        self._lane = lane
        self._asked = asked
        self._id = message.id if isinstance(message, Request) else None
        self._modern = isinstance(message, Request) and versions.is_modern(
            versions.version_said(message.params)
        )
        self._unreadable = isinstance(message, Unreadable)
        self._pumping: asyncio.Task[None] | None = None
        self._resumable = False
        self._streaming = asyncio.Event()
        self._last = b""
        self._final: bytes | None = b""
        self._answered = False

    async def run(self) -> None:
        """Carry it, until the client has all that belongs to it."""
        if self._id is not None:
            self._lane.ids.add(self._id)
        deciding = asyncio.create_task(self._decided())
        self._lane.tasks.add(deciding)
        deciding.add_done_callback(self._over)
        gone = asyncio.create_task(self._asked.gone.wait())
        streaming = asyncio.create_task(self._streaming.wait())
        try:
            while not deciding.done() or (self._pumping is not None and not self._pumping.done()):
                waited = {
                    task
                    for task in (deciding, self._pumping, gone, streaming)
                    if task is not None and not task.done()
                }
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if self._asked.gone.is_set():
                    if self._modern:
                        self._give_up(deciding)
                    break
                if self._ended_early() and not deciding.done():
                    # Where it was cancelled, both ends come at once: only a call that goes on has a rest.
                    await asyncio.wait((deciding,), timeout=_BOTH_ENDS_S)
                    break
            if not deciding.done():
                self._lane.broken_off.add(deciding)
                deciding.add_done_callback(self._lane.broken_off.discard)
            elif self._id is not None and not self._answered and self._asked.is_open:
                # Without an answer, some clients ask for the rest of the stream again and again.
                await self._write(failure(self._id, INTERNAL, "the request was cancelled"), self._last)
        finally:
            gone.cancel()
            streaming.cancel()
            self._finish()

    def _ended_early(self) -> bool:
        """Say whether the server ended the stream to have the client ask again for the rest."""
        return self._pumping is not None and self._pumping.done() and self._resumable and not self._answered

    def _finish(self) -> None:
        if not self._asked.begun:
            status = 202 if self.answer is None else self.answer.status
            headers = headers_back(self.answer) if self.answer is not None else ()
            if status >= 400:
                self._asked.turn_away(status, "the server did not take it", headers)
            else:
                self._asked.whole(202, headers=headers)
        self._asked.end()

    def _give_up(self, deciding: asyncio.Task[None]) -> None:
        """A client of a revision without sessions takes a request back by hanging up."""
        deciding.cancel()
        if self.answer is not None:
            self.answer.abort()

    def _over(self, deciding: asyncio.Task[None]) -> None:
        self._lane.tasks.discard(deciding)
        if self._id is not None:
            self._lane.ids.discard(self._id)
        if not deciding.cancelled():
            deciding.exception()

    async def _decided(self) -> None:
        try:
            await self._lane.session.client_said(self._asked.body, back=self._back, onward=self._onward)
        except ServerGone as error:
            if self._id is not None and not self._answered:
                await self._write(failure(self._id, INTERNAL, error.message), b"")
            elif not self._asked.begun and (self.answer is None or self.answer.status < 400):
                self._asked.turn_away(502, error.message)
        if self._pumping is not None and self._id is None:
            await asyncio.wait((self._pumping,))

    # the ways of its messages

    async def _onward(self, raw: bytes) -> None:
        """To the server."""
        answer = await self._upstream.ask("POST", headers_onward(self._asked.headers), raw)
        if self.answer is None:
            self.answer = answer
            self._asked.more += [one for one in headers_back(answer) if one[0] != b"allow"]
            self.on_head()
        if answer.kind == EVENTS and answer.status < 300:
            self._streaming.set()
            self._pumping = asyncio.create_task(self._pump(answer))
            self._lane.tasks.add(self._pumping)
            self._pumping.add_done_callback(self._lane.tasks.discard)
            return
        body = await answer.whole()
        if body == b"" or (answer.status < 300 and answer.kind != JSON and self._id is None):
            if answer.status >= 400 or self._id is not None:
                raise self._refused(answer)
            return
        if (
            body is not None
            and (answer.kind != JSON or isinstance(read(body), Unreadable))
            and answer.status >= 300
        ):
            raise self._refused(answer)
        self._final = body
        await self._lane.session.server_said(body, back=self._to_server, onward=self._passed)
        await self._broken_off()

    def _refused(self, answer: Answer) -> ServerGone:
        return ServerGone(
            f"the server answered with the status {answer.status}",
            sent=answer.status >= 500 or answer.status < 300,
        )

    async def _pump(self, answer: Answer) -> None:
        """Read the server's events, each a message."""
        why = ""
        events = Events()
        try:
            async for part in answer.parts():
                for event in events.feed(part):
                    await self._came(event)
        except ServerGone as error:
            why = error.message
        if not self._resumable:
            await self._broken_off(why)

    async def _came(self, event: Event) -> None:
        if event.id:
            self._resumable = True
        if event.data is None or event.data:
            self._last = event.id
            self._final = event.data
            await self._lane.session.server_said(event.data, back=self._to_server, onward=self._passed)
        elif event.id or event.retry:
            with suppress(ConnectionError):  # it says from where the stream can go on
                await self._asked.event(b"", id=event.id, retry=event.retry)

    async def _broken_off(self, why: str = "") -> None:
        """Tell whoever waits that the server will not answer, where it did not."""
        if self._id is None or self._answered:
            return
        final = read(self._final)
        if isinstance(final, Response | Unreadable) and final.id == self._id:
            return  # the client gets it as soon as it is on record
        said = failure(self._id, INTERNAL, why or "the server did not answer the request")
        await self._lane.session.server_said(said, back=self._to_server, onward=self._passed)

    async def _passed(self, raw: bytes) -> None:
        """From the server to the client."""
        await self._write(raw, self._last)

    async def _back(self, raw: bytes) -> None:
        """From us to the client."""
        await self._write(raw, self._last if self._streaming.is_set() else b"")

    async def _to_server(self, raw: bytes) -> None:
        """From us to the server that said something."""
        await said_to_server(self._upstream, self._asked, raw)

    async def _write(self, raw: bytes, event_id: bytes) -> None:
        message = read(raw)
        ours = isinstance(message, Response) and message.id == self._id
        if ours:
            self._answered = True
            if _STATE.search(raw) and isinstance(message, Response) and message.result is not None:
                state = message.result.get("requestState")
                if isinstance(state, str):
                    self._lane.remember(state)
        if not self._asked.is_open:
            if isinstance(message, Response) and not self._modern:
                await self._lane.deliver(raw, self._id)
            return
        if (
            (ours or (isinstance(message, Response) and self._id is None))
            and not self._asked.begun
            and not self._streaming.is_set()
        ):
            status = 400 if self._unreadable else 200
            if self.answer is not None and self.answer.status >= 400:
                status = self.answer.status
            self._asked.whole(status, raw)
            return
        try:
            await self._asked.event(raw, id=event_id, name=b"message")
        except ConnectionError:
            if isinstance(message, Response) and not self._modern:
                await self._lane.deliver(raw, self._id)


class Listening:
    """A stream on which a client listens to what the server says of itself, or for the rest of what broke off."""

    def __init__(self, upstream: Upstream, lane: Lane, asked: Asked) -> None:
        self._upstream = upstream
        self._lane = lane
        self._asked = asked
        self._last = b""
        self.goes_on = b"last-event-id" in asked.headers

    async def run(self) -> None:
        """Carry it, until either side ends it."""
        try:
            answer = await self._upstream.ask("GET", headers_onward(self._asked.headers))
        except ServerGone as error:
            self._asked.turn_away(502, error.message)
            return
        streams = answer.kind == EVENTS and answer.status < 300
        kept = self._lane.kept()
        if not streams and not kept:
            answer.abort()
            status = answer.status if answer.status >= 400 else 502
            self._asked.turn_away(status, "the server gives no stream to listen on", headers_back(answer))
            return
        self._asked.begin_events()
        for raw in kept:
            await self.tell(raw)
        if not streams:
            answer.abort()
            return
        self._lane.listening.append(self)
        gone = asyncio.create_task(self._asked.gone.wait())
        pumping = asyncio.create_task(self._pump(answer))
        try:
            await asyncio.wait((gone, pumping), return_when=asyncio.FIRST_COMPLETED)
            if self._lane.broken_off and not gone.done():
                # What came for one of them is told here as soon as it is on record.
                await asyncio.wait(
                    (*self._lane.broken_off, gone), timeout=_GRACE_S, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            self._lane.left(self)
            answer.abort()
            gone.cancel()
            pumping.cancel()
            await asyncio.gather(gone, pumping, return_exceptions=True)

    async def tell(self, raw: bytes) -> None:
        """Tell the client something. Raises: ConnectionError."""
        await self._asked.event(raw, id=self._last, name=b"message")

    async def _pump(self, answer: Answer) -> None:
        events = Events()
        with suppress(ServerGone, ConnectionError):
            async for part in answer.parts():
                for event in events.feed(part):
                    if event.id:
                        self._last = event.id
                    if event.data is None or event.data:
                        message = read(event.data)
                        if isinstance(message, Response) and message.id is not None:
                            self._lane.came_on[message.id] = self
                        await self._lane.session.server_said(
                            event.data, back=self._to_server, onward=self.tell
                        )
                    elif event.id or event.retry:
                        await self._asked.event(b"", id=event.id, retry=event.retry)

    async def _to_server(self, raw: bytes) -> None:
        await said_to_server(self._upstream, self._asked, raw)


async def said_to_server(upstream: Upstream, asked: Asked, raw: bytes) -> None:
    """Post a message of our own to a server, in the session of a client's request."""
    kept = [
        one
        for one in headers_onward(asked.headers)
        if not one[0].startswith((b"mcp-method", b"mcp-name", b"last-"))
    ]
    fields = {**dict(kept), b"content-type": JSON, b"accept": JSON + b", " + EVENTS}
    with suppress(ServerGone):
        answer = await upstream.ask("POST", list(fields.items()), raw)
        answer.abort()
