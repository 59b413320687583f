"""HTTP/1 toward the agent: requests are read one after the other, answers are written from their parsed form."""

import math
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple

from interlock.boundary.net.framing import (
    Chunked,
    Frame,
    Measured,
    WireError,
    check_start,
    read_request_head,
    take_head,
)
from interlock.boundary.net.heads import HeadRefusal, bodyless, persists, read_request, read_trailers
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.refusal import plain
from interlock.boundary.net.settings import Place, Setting
from interlock.boundary.net.sides import AnswerHead, Exchange, RawHeaders, RequestHead

_AHEAD_BYTES = 64 * 1024
_BLANK_LINES = 8
"""So many empty lines before a request are borne (RFC 9112 §2.2 asks for one)."""
"""What of the requests after the current one is taken ahead."""
_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


class _Known(NamedTuple):
    """A head as it was read last: a client that asks the same again sends the same bytes, which mean the same."""

    block: bytes
    head: RequestHead | HeadRefusal
    method: str
    minor: int
    keep: bool


_NOTHING = _Known(b"", HeadRefusal(status=400, reason=""), "", 1, False)


class Http1Client:
    """A client's HTTP/1 connection: the `ClientSide` of its current exchange.

    Takes: `tunnel`, called for an agent that takes us for its proxy, with the checked head of a CONNECT, once its
    answer may be written.
    Holds: the next request is not read before the answer to the one before is out, so answers are in order;
    `deadline` says when the front may end it for being idle.
    """

    def __init__(
        self,
        link: SocketLink,
        place: Place,
        setting: Setting,
        tunnel: Callable[["Http1Client", RequestHead], None],
    ) -> None:
        self.link = link
        self.place = place
        self._setting = setting
        self._limits = setting.plan.limits
        self._tunnel = tunnel
        self._buffer = bytearray()
        self._searched = 0
        self._blank = 0
        self._first = True
        self._exchange: Exchange | None = None
        self._frame: Frame | None = None  # the body that is being read
        self._known = _NOTHING
        self._method = ""
        self._minor = 1
        self._keep = True
        self._chunked = False
        self._held = b""  # an answer's head that waits for the first of its body, until the loop's next turn
        self._answering = False
        self._eof = False
        self._stalled = False
        self.deadline = setting.loop.time() + self._limits.head_seconds
        link.on_data = self._came
        link.on_eof = self._came_eof
        link.on_closed = self._closed
        link.on_room = self._room
        link.resume()

    # reading

    def _came(self, data: bytes) -> None:
        frame = self._frame
        if frame is not None and not self._buffer:
            self._body(data)
            return
        self._buffer += data
        if self._exchange is None:
            self._next()
        elif frame is not None:
            self._body(self._taken())
        elif len(self._buffer) > _AHEAD_BYTES:
            self.link.pause()

    def _taken(self) -> bytes:
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def _next(self) -> None:
        """Begin the next request, if its head is here."""
        buffer = self._buffer
        if self.link.full:  # it asks on, and reads nothing
            self._stalled = True
            self.deadline = math.inf
            self.link.pause()
            return
        while buffer.startswith(b"\r\n"):  # after a body, as some old clients send it
            del buffer[:2]
            self._blank += 1
            if self._blank > _BLANK_LINES:
                self._broken(WireError("empty lines in place of a request"))
                return
        if not buffer:
            if self._eof:
                self.link.close()
            return
        try:
            block = take_head(buffer, self._limits.head_bytes, self._searched)
            if block is None:
                if not self._searched:
                    self.deadline = self._setting.loop.time() + self._limits.head_seconds
                self._searched = len(buffer)
                check_start(buffer)
                if self._eof:
                    self._refuse(HeadRefusal(status=400, reason="the connection ended within a head"))
                return
            self._searched = self._blank = 0
            known = self._known if block == self._known.block else self._read(block)
        except WireError as error:
            self._broken(error)
            return
        self._first = False
        head, self._minor, self._keep, self._method = known.head, known.minor, known.keep, known.method
        if isinstance(head, HeadRefusal):
            self._refuse(head)
            return
        self.deadline = math.inf
        if head.method == "CONNECT":
            self._tunnel(self, head)
            return
        exchange = self._exchange = self._setting.begin(self, head, self.place)
        if head.length == 0:
            exchange.body_end(())
            return
        self._frame = Chunked(self._limits.head_bytes) if head.length is None else Measured(head.length)
        self.deadline = self._setting.loop.time() + self._limits.idle_seconds
        if buffer:
            self._body(self._taken())

    def _read(self, block: bytes) -> _Known:
        raw = read_request_head(block)
        head = read_request(raw.method, raw.target, raw.minor, raw.fields, self.place, self._limits)
        self._known = _Known(
            block=block,
            head=head,
            method=raw.method.decode("latin-1"),
            minor=raw.minor if raw.minor in (0, 1) else 1,
            keep=persists(raw.minor, raw.fields),
        )
        return self._known

    def _body(self, data: bytes) -> None:
        frame, exchange = self._frame, self._exchange
        assert frame is not None
        assert exchange is not None
        self.deadline = self._setting.loop.time() + self._limits.idle_seconds
        try:
            parts, taken = frame.take(data)
        except WireError as error:
            self._broken(error)
            return
        for part in parts:
            exchange.body_data(part)
            if self._exchange is not exchange:
                return  # it was answered early, and the connection ends
        if taken < len(data):
            self._buffer += data[taken:] if taken else data
        if not frame.whole:
            return
        trailers = read_trailers(frame.trailers, self._limits)
        if trailers is None:
            self._broken(WireError("the trailers are broken"))
            return
        self._frame = None
        self.deadline = math.inf
        exchange.body_end(trailers)

    def _came_eof(self) -> None:
        """A client may close its direction and still wait for its answers."""
        self._eof = True
        if self._exchange is None:
            self._next()
        elif self._frame is not None:
            self._leave()
            self.link.abort()

    def _closed(self) -> None:
        self._leave()
        self.deadline = math.inf

    def _leave(self) -> None:
        exchange, self._exchange = self._exchange, None
        self._frame = None
        if exchange is not None:
            exchange.client_gone()

    def _broken(self, error: WireError) -> None:
        if self._first and not error.spoken and self._exchange is None:
            self._setting.turned_away(self.place, "neither HTTP nor TLS, and not named as opaque")
            self.link.abort()
            return
        refusal = HeadRefusal(status=error.status, reason=error.reason)
        if self._answering:
            self._setting.turned_away(self.place, refusal.reason)
            self._leave()
            self.link.abort()
            return
        self._leave()
        self._refuse(refusal)

    def _refuse(self, refusal: HeadRefusal) -> None:
        """Answer what was never an effect, and end the connection: where the next message begins is not certain."""
        self._setting.turned_away(self.place, refusal.reason)
        self._keep = False
        self._frame = None
        self._exchange = None
        head, body = plain(refusal.status, "Refused by Interlock", refusal.reason)
        self.answer(head)
        if body and not bodyless(self._method, head.status):
            self.data(body)
        self.end(())

    def expire(self) -> None:
        """End it: its deadline has passed."""
        if self._buffer or self._frame is not None:
            answering = self._answering
            self._leave()
            if answering:
                self.link.abort()
                return
            self._refuse(HeadRefusal(status=408, reason="the request did not arrive in time"))
        else:
            self.link.close()

    # the client's side of the exchange

    def interim(self, head: AnswerHead) -> None:
        """Send a 1xx answer on; HTTP/1.0 knows none."""
        if self._minor == 1:
            self.link.write(self._written(head))

    def answer(self, head: AnswerHead) -> None:
        """Begin the answer."""
        self._answering = True
        if self._frame is not None:
            self._keep = False  # answered before the request was whole
        extra = b""
        if bodyless(self._method, head.status):
            self._chunked = False
        elif head.length is not None:
            self._chunked = False
            extra = b"content-length: %d\r\n" % head.length
        elif self._minor == 1:
            self._chunked = True
            extra = b"transfer-encoding: chunked\r\n"
        else:
            self._chunked = self._keep = False
        if self._eof and not self._buffer:
            self._keep = False
        if not self._keep:
            extra += b"connection: close\r\n"
        elif self._minor == 0:
            extra += b"connection: keep-alive\r\n"
        self._held = self._written(head, extra)
        self._setting.loop.call_soon(self._flush)

    def data(self, chunk: bytes) -> None:
        """Send a part of the answer's body."""
        held, self._held = self._held, b""
        if self._chunked and chunk:
            chunk = b"%b%x\r\n%b\r\n" % (held, len(chunk), chunk)
        elif held and len(chunk) <= _AHEAD_BYTES:
            chunk = held + chunk
        elif held:
            self.link.write(held)
        if chunk:
            self.link.write(chunk)
        if self.link.full and self._exchange is not None:
            self._exchange.client_full(True)

    def end(self, trailers: RawHeaders) -> None:
        """End the answer, and go on to the next request."""
        held, self._held = self._held, b""
        if self._chunked:
            fields = b"".join([b"%b: %b\r\n" % field for field in trailers])
            held += b"0\r\n%b\r\n" % fields
        if held:
            self.link.write(held)
        self._exchange = None
        self._answering = False
        if not self._keep or self._frame is not None:
            self._frame = None
            self.deadline = math.inf
            self.link.close()
            return
        self.deadline = self._setting.loop.time() + self._limits.idle_seconds
        if self._buffer or self._eof:
            self._setting.loop.call_soon(self._go_on)
        else:
            self.link.resume()

    def cut(self) -> None:
        """Break the connection."""
        self._exchange = None
        self._frame = None
        self.link.abort()

    def read_on(self, on: bool) -> None:
        """Take, or stop taking, more of the request's body."""
        if on:
            self.link.resume()
        else:
            self.link.pause()

    def give_up(self) -> bytes:
        """Leave the link to another protocol. Returns: what came after the current request's head."""
        self._exchange = None
        self.deadline = math.inf
        return self._taken()

    def switch(self, head: AnswerHead) -> None:
        """Write a 101, after which the link speaks another protocol."""
        self.link.write(self._written(head, b"connection: upgrade\r\nupgrade: websocket\r\n"))

    def agree(self) -> None:
        """Answer a CONNECT, after which the link is a new connection."""
        self.link.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

    def _go_on(self) -> None:
        if self._exchange is None and not self.link.closed:
            self.link.resume()
            self._next()

    def _room(self) -> None:
        if self._exchange is not None:
            self._exchange.client_full(False)
        elif self._stalled:
            self._stalled = False
            self._go_on()

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held:
            self.link.write(held)

    def _written(self, head: AnswerHead, extra: bytes = b"") -> bytes:
        phrase = _PHRASES.get(head.status, b"")
        fields = b"".join([b"%b: %b\r\n" % field for field in head.headers])
        return b"HTTP/1.1 %d %b\r\n%b%b\r\n" % (head.status, phrase, fields, extra)
