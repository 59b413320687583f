"""HTTP/2 on the far side: one connection, many exchanges on it, each with its own window."""

from collections.abc import Callable
from dataclasses import replace

from h2.events import (
    DataReceived,
    Event,
    InformationalResponseReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import H2Error

from interlock.boundary.net.heads import HeadRefusal, bodyless, read_answer, read_trailers
from interlock.boundary.net.http2_connection import CONNECTION_WINDOW_BYTES, STREAMS
from interlock.boundary.net.http2_frames import CANCEL, ENHANCE_YOUR_CALM, PROTOCOL_ERROR, REFUSED_STREAM
from interlock.boundary.net.http2_wire import Lane, Wire
from interlock.boundary.net.settings import FarConnection, FarSetting
from interlock.boundary.net.sides import AnswerHead, DroppableLink, Exchange, RawHeaders, RequestHead
from interlock.boundary.net.targets import authority
from interlock.model.requests import Outcome

_LAST_STREAM = 2**31 - 1


class _Stream:
    """One exchange on a connection to the far side."""

    __slots__ = (
        "_connection",
        "body",
        "exchange",
        "headed",
        "lane",
        "left",
        "method",
        "number",
        "owed",
        "paused",
    )

    def __init__(self, connection: "Http2Far", number: int, exchange: Exchange, method: str) -> None:
        self._connection = connection
        self.number = number
        self.exchange = exchange
        self.method = method
        self.lane: Lane | None = None
        self.headed = False
        self.left: int | None = None
        self.paused = False
        self.owed = 0

    def send(self, chunk: bytes) -> None:
        """Send a part of the request's body."""
        if self.lane is not None:
            self._connection.wire.put(self.lane, chunk)

    def end(self, trailers: RawHeaders) -> None:
        """End the request."""
        if self.lane is not None:
            self._connection.wire.finish(self.lane, trailers)

    def abort(self) -> None:
        """Give the exchange up; the others on the connection go on."""
        self._connection.forget(self, CANCEL)

    def read_on(self, on: bool) -> None:
        """Give the window back, or hold it."""
        self.paused = not on
        if on and self.owed:
            owed, self.owed = self.owed, 0
            self._connection.wire.taken(self.number, owed)


class Http2Far:
    """The client's role towards a far side.

    Holds: an exchange that the far side says it did not take (GOAWAY, REFUSED_STREAM) ends as FAILED, one that is cut
    off otherwise as UNKNOWN; `idle_since`, by the loop's clock, is None while exchanges run on it.
    """

    def __init__(self, link: DroppableLink, setting: FarSetting) -> None:
        self.on_idle: Callable[[FarConnection], None] = _nothing
        self.on_gone: Callable[[FarConnection], None] = _nothing
        self.on_greeted: Callable[[bool], None] = _ignore
        """Told once whether the far side speaks HTTP/2 at all: its settings came, or the connection ended without."""
        self._setting = setting
        self._streams: dict[int, _Stream] = {}
        self._gone = False
        self._next = 1
        self._allowed = STREAMS
        self.idle_since: float | None = setting.loop.time()
        self.wire = Wire(link, setting.loop, setting.limits, self, server=False)
        link.resume()

    @property
    def room(self) -> bool:
        """Say whether another exchange can begin on it now; not while slow readers hold half of its window."""
        held = sum(stream.owed for stream in self._streams.values())
        return (
            not self._gone
            and len(self._streams) < self._allowed
            and self._next < _LAST_STREAM
            and held < CONNECTION_WINDOW_BYTES // 2
        )

    def begin(self, head: RequestHead, exchange: Exchange, *, body: bool) -> _Stream:
        """Send the head on; without a `body` this ends the request."""
        number = self._next
        stream = _Stream(self, number, exchange, head.method)
        fields = [
            (b":method", head.method.encode("ascii")),
            (b":scheme", head.scheme.encode("ascii")),
            (b":authority", authority(head.authority_host, head.port, head.scheme).encode("ascii")),
            (b":path", head.target.encode("ascii")),
            *head.headers,
        ]
        if body and head.length is not None:
            fields.append((b"content-length", b"%d" % head.length))
        try:
            if not self.room:
                raise H2Error
            self.wire.h2.send_headers(number, fields, end_stream=not body)
        except H2Error:
            # nothing of it has left; never told from within this call
            self._setting.loop.call_soon(
                exchange.came_failure, Outcome.FAILED, "the connection takes no more requests"
            )
            return stream
        self._next += 2
        self._streams[number] = stream
        self.idle_since = None
        if body:
            stream.lane = self.wire.lane(number, exchange.far_full)
        self.wire.soon()
        return stream

    def close(self) -> None:
        """Close it: no exchange runs on it."""
        self.wire.close()

    def came(self, event: Event) -> None:
        """One of h2's events came."""
        if isinstance(event, RemoteSettingsChanged):
            self._allowed = min(STREAMS, self.wire.h2.remote_settings.max_concurrent_streams)
            self._greeted(True)
            return
        stream = self._streams.get(getattr(event, "stream_id", None) or 0)
        if stream is None:
            if isinstance(event, DataReceived):
                self.wire.taken(event.stream_id, event.flow_controlled_length or 0)
            return
        match event:
            case DataReceived():
                self._data(stream, event)
            case ResponseReceived():
                self._head(stream, event)
            case InformationalResponseReceived():
                self._interim(stream, event)
            case TrailersReceived():
                self._trailers(stream, event)
            case StreamEnded():
                self._end(stream, ())
            case StreamReset():
                refused = event.error_code == REFUSED_STREAM and not stream.headed
                self._fail(
                    stream, Outcome.FAILED if refused else Outcome.UNKNOWN, "the far side reset the stream"
                )
            case _:
                pass

    def gone_away(self, last: int) -> None:
        """The far side took nothing above `last`, and takes nothing more."""
        self._leave()
        for stream in tuple(self._streams.values()):
            if stream.number > last:
                self._fail(stream, Outcome.FAILED, "the far side went away before it took the request")
        self._rest()

    def all_sent(self, number: int) -> None:
        """A request is on its way whole."""

    def died(self, detail: str) -> None:
        """The connection is over: what ran on it may have been taken."""
        self._leave()
        self._greeted(False)
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.lane = None
            stream.exchange.came_failure(Outcome.UNKNOWN, detail)

    def forget(self, stream: _Stream, code: int) -> None:
        """End a stream that is of no use any more."""
        if self._streams.pop(stream.number, None) is None:
            return
        stream.lane = None
        self.wire.reset(stream.number, code)
        self._rest()

    def _head(self, stream: _Stream, event: ResponseReceived) -> None:
        self.wire.measure(stream.number)
        head = self._answer(stream, event)
        if head is None or head.status < 200:
            self._broken(stream)
            return
        stream.headed = True
        stream.left = head.length
        ended = event.stream_ended is not None
        if ended:
            if head.length:
                self._broken(stream)
                return
            head = replace(head, length=0)
        elif bodyless(stream.method, head.status):
            stream.left = 0
        stream.exchange.came_head(head)

    def _interim(self, stream: _Stream, event: InformationalResponseReceived) -> None:
        head = self._answer(stream, event)
        if head is None or head.status in (101, 200) or stream.headed:
            self._broken(stream)
        elif not self.wire.spend():
            self.wire.shut(ENHANCE_YOUR_CALM, "too many interim answers")
        else:
            stream.exchange.came_interim(head)

    def _answer(
        self, stream: _Stream, event: ResponseReceived | InformationalResponseReceived
    ) -> AnswerHead | None:
        fields = tuple((bytes(name), bytes(value)) for name, value in event.headers)
        status = fields[0][1] if fields and fields[0][0] == b":status" else b""
        rest = fields[1:]
        if len(status) != 3 or not status.isdigit():
            return None
        if any(name.startswith(b":") or name != name.lower() or name in _HTTP1 for name, _ in rest):
            return None
        head = read_answer(stream.method, int(status), 2, rest, self._setting.limits)
        return None if isinstance(head, HeadRefusal) else head

    def _data(self, stream: _Stream, event: DataReceived) -> None:
        size = event.flow_controlled_length or 0
        data = bytes(event.data or b"")
        if stream.left is not None:
            stream.left -= len(data)
        if not stream.headed or (stream.left is not None and stream.left < 0):
            self.wire.taken(stream.number, size)
            self._broken(stream)
            return
        if data:
            stream.exchange.came_data(data)
        if stream.paused:
            stream.owed += size
        else:
            self.wire.taken(stream.number, size)

    def _trailers(self, stream: _Stream, event: TrailersReceived) -> None:
        fields = tuple((bytes(name), bytes(value)) for name, value in event.headers)
        trailers = None
        if not any(name.startswith(b":") for name, _ in fields):
            trailers = read_trailers(fields, self._setting.limits)
        if trailers is None:
            self._broken(stream)
        else:
            self._end(stream, trailers)

    def _end(self, stream: _Stream, trailers: RawHeaders) -> None:
        if stream.number not in self._streams:
            return
        if not stream.headed or stream.left:
            self._broken(stream)
            return
        del self._streams[stream.number]
        if not self.wire.sent(stream.number):
            self.wire.reset(stream.number, CANCEL)  # it answered without waiting for the rest
        stream.lane = None
        stream.exchange.came_end(trailers)
        self._rest()

    def _broken(self, stream: _Stream) -> None:
        self.wire.reset(stream.number, PROTOCOL_ERROR)
        self._fail(stream, Outcome.UNKNOWN, "the far side's answer is malformed")

    def _fail(self, stream: _Stream, outcome: Outcome, detail: str) -> None:
        if self._streams.pop(stream.number, None) is None:
            return
        if stream.lane is not None:
            self.wire.drop(stream.lane)
            stream.lane = None
        stream.exchange.came_failure(outcome, detail)
        self._rest()

    def _greeted(self, speaks: bool) -> None:
        on_greeted, self.on_greeted = self.on_greeted, _ignore
        on_greeted(speaks)

    def _leave(self) -> None:
        if not self._gone:
            self._gone = True
            self.on_gone(self)

    def _rest(self) -> None:
        if self._streams:
            return
        if self._gone:
            self.wire.close()
        else:
            self.idle_since = self._setting.loop.time()
            self.on_idle(self)


_HTTP1 = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"upgrade", b"transfer-encoding"))


def _nothing(_far: FarConnection) -> None:
    pass


def _ignore(_speaks: bool) -> None:
    pass
