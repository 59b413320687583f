"""HTTP/1.1 toward the far side: requests are written from their checked form, answers read with the same care."""

from collections.abc import Callable
from typing import NamedTuple

from interlock.boundary.net.framing import (
    Chunked,
    Frame,
    Measured,
    UntilClose,
    WireError,
    read_answer_head,
    take_head,
)
from interlock.boundary.net.heads import HeadRefusal, persists, read_answer, read_trailers
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.settings import FarConnection, FarSetting
from interlock.boundary.net.sides import AnswerHead, Exchange, RawHeaders, RequestHead
from interlock.boundary.net.targets import authority
from interlock.model.records import dataclass
from interlock.model.requests import Outcome

_INTERIM_COUNT = 32
"""Interim answers to one request that are still taken for honest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """A far side that has switched to another protocol. Takes: `rest`, what came after its head."""

    link: SocketLink
    rest: bytes
    answer: AnswerHead


class _Known(NamedTuple):
    """An answer's head as it was read last: the same bytes mean the same."""

    block: bytes
    method: str
    head: AnswerHead
    keep: bool
    chunked: bool


_NOTHING = _Known(b"", "", AnswerHead(status=0, headers=()), False, False)


def _unheard(_connection: FarConnection) -> None:
    pass


class Http1Far:
    """A connection to a far side: a `FarConnection`, and the `FarSide` of its current exchange.

    Holds: what comes while no answer is due ends the connection, so that no answer is taken for another's.
    """

    def __init__(self, link: SocketLink, setting: FarSetting) -> None:
        self.link = link
        self._limits = setting.limits
        self._loop = setting.loop
        self._exchange: Exchange | None = None
        self._buffer = bytearray()
        self._searched = 0
        self._frame: Frame | None = None
        self._known = _NOTHING
        self._method = ""
        self._upgrade = False
        self._chunked = False
        self._sending = False
        self._keep = True
        self._interims = 0
        self._gone = False
        self.used = False  # whether an answer came on it before: a failure may then only mean that it was idle too long
        self.began = False  # whether anything of the current answer came
        self.on_switched: Callable[[Switched], None] | None = None
        self.on_idle: Callable[[FarConnection], None] = _unheard
        self.on_gone: Callable[[FarConnection], None] = _unheard
        link.on_data = self._came
        link.on_eof = self._came_eof
        link.on_closed = self._closed
        link.on_room = self._room
        link.resume()

    @property
    def room(self) -> bool:
        """Say whether an exchange can begin on it."""
        return self._exchange is None and not self._gone and not self.link.closed

    def begin(self, head: RequestHead, exchange: Exchange, *, body: bool) -> "Http1Far":
        """Send the head on."""
        self._exchange = exchange
        self._method = head.method
        self._upgrade = head.upgrade != ""
        self._frame = None
        self._interims = 0
        self.began = False
        self._keep = True
        self._sending = body
        self._chunked = body and head.length is None
        lines = [b"%b %b HTTP/1.1\r\nhost: %b\r\n" % (
            head.method.encode("ascii"),
            head.target.encode("ascii"),
            authority(head.authority_host, head.port, head.scheme).encode("ascii"),
        )]  # fmt: skip
        # a cookie may come in pieces from HTTP/2, and has one field in HTTP/1 (RFC 9113 §8.2.3)
        cookies = [value for name, value in head.headers if name == b"cookie"]
        lines += [b"%b: %b\r\n" % field for field in head.headers if field[0] not in (b"cookie", b"te")]
        if cookies:
            lines.append(b"cookie: %b\r\n" % b"; ".join(cookies))
        if self._upgrade:
            lines.append(b"connection: upgrade\r\nupgrade: websocket\r\n")
        if self._chunked:
            lines.append(b"transfer-encoding: chunked\r\n")
        elif head.length or head.method in ("POST", "PUT", "PATCH"):
            lines.append(b"content-length: %d\r\n" % (head.length or 0))
        lines.append(b"\r\n")
        self.link.write(b"".join(lines))
        return self

    # the far side of the exchange

    def send(self, chunk: bytes) -> None:
        """Send a part of the request's body."""
        if chunk:
            self.link.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if self._chunked else chunk)
        if self.link.full and self._exchange is not None:
            self._exchange.far_full(True)

    def end(self, trailers: RawHeaders) -> None:
        """End the request's body."""
        if self._chunked:
            self.link.write(b"0\r\n%b\r\n" % b"".join([b"%b: %b\r\n" % field for field in trailers]))
        self._sending = False

    def abort(self) -> None:
        """Give the exchange up."""
        self._exchange = None
        self.link.abort()
        self._left()

    def read_on(self, on: bool) -> None:
        """Take, or stop taking, more of the answer."""
        if on:
            self.link.resume()
        else:
            self.link.pause()

    def close(self) -> None:
        """Close it."""
        self._left()
        self.link.drop()

    # reading

    def _came(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            self._left()
            self.link.abort()  # nobody asked
            return
        self.began = True
        if self._frame is not None and not self._buffer:
            self._body(data)
            return
        self._buffer += data
        if self._frame is None:
            self._heads()
        else:
            self._body(self._taken())

    def _taken(self) -> bytes:
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def _heads(self) -> None:
        while self._exchange is not None and self._frame is None:
            try:
                block = take_head(self._buffer, self._limits.head_bytes, self._searched)
                if block is None:
                    self._searched = len(self._buffer)
                    return
                self._searched = 0
                known = self._known
                if block != known.block or self._method != known.method:
                    known = self._known = self._read(block)
            except WireError as error:
                self._fail(f"the far side's answer cannot be read: {error.reason}")
                return
            head = known.head
            if head.status == 101:
                self._switch(head)
                return
            if head.status < 200:
                self._interims += 1
                if self._interims > _INTERIM_COUNT:
                    self._fail("the far side sends interim answers without end")
                    return
                if head.status != 100:  # what it says, the boundary has said itself
                    self._exchange.came_interim(head)
                continue
            self._keep = known.keep
            self._frame = self._framed(head, known.chunked)
            exchange = self._exchange
            exchange.came_head(head)
            if self._exchange is not exchange:
                return
            if self._buffer or self._frame.whole:
                self._body(self._taken())
            return

    def _read(self, block: bytes) -> _Known:
        raw = read_answer_head(block)
        head = read_answer(self._method, raw.status, raw.minor, raw.fields, self._limits)
        if isinstance(head, HeadRefusal):
            raise WireError(head.reason, head.status)
        chunked = any(name.lower() == b"transfer-encoding" for name, _ in raw.fields)
        return _Known(block, self._method, head, persists(raw.minor, raw.fields), chunked)

    def _framed(self, head: AnswerHead, chunked: bool) -> Frame:
        if head.length is not None:
            return Measured(head.length)
        if chunked:
            return Chunked(self._limits.head_bytes, 502)
        self._keep = False
        return UntilClose()

    def _body(self, data: bytes) -> None:
        frame, exchange = self._frame, self._exchange
        assert frame is not None
        assert exchange is not None
        try:
            parts, taken = frame.take(data)
        except WireError as error:
            self._fail(f"the far side's answer cannot be read: {error.reason}")
            return
        for part in parts:
            exchange.came_data(part)
            if self._exchange is not exchange:
                return
        if taken < len(data):
            self._buffer += data[taken:] if taken else data
        if frame.whole:
            self._whole(frame, exchange)

    def _whole(self, frame: Frame, exchange: Exchange) -> None:
        trailers = read_trailers(frame.trailers, self._limits)
        if trailers is None:
            self._fail("the far side's trailers are broken")
            return
        # what follows an answer that nobody asked for must not become the next one's
        keep = self._keep and not self._buffer and not self._sending and not self.link.closed
        self._exchange = None
        self._frame = None
        self.used = True
        if keep:
            self.link.resume()
            self.on_idle(self)
        else:
            self.close()
        exchange.came_end(trailers)

    def _switch(self, head: AnswerHead) -> None:
        if not self._upgrade or self.on_switched is None:
            self._fail("the far side switched protocols unasked")
            return
        self._left()
        self._exchange = None
        self.link.pause()
        self.on_switched(Switched(link=self.link, rest=self._taken(), answer=head))

    def _came_eof(self) -> None:
        frame, exchange = self._frame, self._exchange
        if exchange is None:
            self.close()
        elif isinstance(frame, UntilClose) and self.link.clean_eof:
            frame.whole = True
            self._whole(frame, exchange)
        else:
            self._fail("the far side closed before its answer was whole")

    def _closed(self) -> None:
        if self._exchange is not None:
            self._fail("the far side reset the connection")
        self._left()

    def _room(self) -> None:
        if self._exchange is not None:
            self._exchange.far_full(False)

    def _fail(self, detail: str) -> None:
        exchange, self._exchange = self._exchange, None
        self._frame = None
        self.link.abort()
        self._left()
        if exchange is not None:
            exchange.came_failure(Outcome.UNKNOWN, detail)

    def _left(self) -> None:
        if not self._gone:
            self._gone = True
            self.on_gone(self)
