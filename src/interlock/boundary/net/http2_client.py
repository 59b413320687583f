"""HTTP/2 on the agent's side: one connection, each of its streams a `ClientSide` with its exchange."""

import math
from dataclasses import replace

from h2.events import DataReceived, Event, RequestReceived, StreamEnded, StreamReset, TrailersReceived

from interlock.boundary.net.heads import HeadRefusal, read_request2, read_trailers
from interlock.boundary.net.http2_connection import STREAMS
from interlock.boundary.net.http2_frames import (
    CANCEL,
    ENHANCE_YOUR_CALM,
    INTERNAL_ERROR,
    NO_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    Budget,
)
from interlock.boundary.net.http2_wire import Lane, Wire
from interlock.boundary.net.refusal import is_grpc, plain
from interlock.boundary.net.settings import Place, Setting
from interlock.boundary.net.sides import AnswerHead, DroppableLink, Exchange, RawHeaders, RequestHead


class _Stream:
    """One request of the agent's and its answer."""

    __slots__ = ("_connection", "_held", "ended", "exchange", "lane", "left", "number", "owed", "paused", "seen_at",
                 "timed")  # fmt: skip

    def __init__(self, connection: "Http2Client", number: int, lane: Lane) -> None:
        self._connection = connection
        self.number = number
        self.lane = lane
        self.exchange: Exchange | None = None
        self.ended = False
        self.left: int | None = None
        self.paused = False
        self.owed = 0
        self.seen_at = 0.0
        self.timed = True
        self._held: list[tuple[bytes, bytes]] | None = None

    @property
    def awaited(self) -> bool:
        """Say whether more of the request should come soon; a gRPC call may stay open in silence."""
        return self.timed and not self.ended and not self.paused

    def interim(self, head: AnswerHead) -> None:
        """Send a 1xx answer on."""
        self._connection.wire.headers(self.number, _fields(head))

    def answer(self, head: AnswerHead) -> None:
        """Begin the answer; the head of one without a body waits for the end, which it then carries (gRPC insists)."""
        fields = _fields(head)
        if head.length == 0:
            self._held = fields
        else:
            self._connection.wire.headers(self.number, fields)

    def data(self, chunk: bytes) -> None:
        """Send a part of the answer's body."""
        self._release()
        self._connection.wire.put(self.lane, chunk)

    def end(self, trailers: RawHeaders) -> None:
        """End the answer."""
        held, self._held = self._held, None
        if held is not None:
            self._connection.wire.headers(self.number, held, end=not trailers)
        if held is not None and not trailers:
            self._connection.wire.drop(self.lane)
            self._connection.all_sent(self.number)
        else:
            self._connection.wire.finish(self.lane, trailers)

    def cut(self) -> None:
        """End it so that the client sees it as broken."""
        self._connection.cut(self.number, INTERNAL_ERROR)

    def read_on(self, on: bool) -> None:
        """Give the window back, or hold it."""
        self.paused = not on
        if on:
            self.seen_at = self._connection.wire.loop.time()
            owed, self.owed = self.owed, 0
            self._connection.wire.taken(self.number, owed)

    def full(self, full: bool) -> None:
        """Tell the exchange that the client is slow, or no longer."""
        if self.exchange is not None:
            self.exchange.client_full(full)

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._connection.wire.headers(self.number, held)


class Http2Client:
    """The server's role towards the agent.

    Holds: at most `STREAMS` exchanges at once; a flood ends the connection with ENHANCE_YOUR_CALM; an exchange is told
    `client_gone` once its stream or the connection has ended before its answer.
    """

    def __init__(self, link: DroppableLink, place: Place, setting: Setting, first: bytes = b"") -> None:
        self._place = place
        self._setting = setting
        self._limits = setting.plan.limits
        self._streams: dict[int, _Stream] = {}
        self._draining = False
        self._resets = Budget(200, 20.0, setting.loop.time)
        self._seen_at = setting.loop.time()
        self.wire = Wire(link, setting.loop, self._limits, self, server=True)
        if first:
            self.wire.feed(first)
        link.resume()

    @property
    def deadline(self) -> float:
        """Return when the front may call `expire`, in the loop's time."""
        if not self.wire.alive:
            return math.inf
        began = self.wire.began_at
        until = math.inf if began is None else began + self._limits.head_seconds
        if not self._streams:
            return min(until, self._seen_at + self._limits.idle_seconds)
        waits = [stream.seen_at for stream in self._streams.values() if stream.awaited]
        return min(until, min(waits) + self._limits.idle_seconds) if waits else until

    def expire(self) -> None:
        """End what has waited too long: a head, a request's body, a connection without a request."""
        now = self.wire.loop.time()
        began = self.wire.began_at
        if began is not None and now - began > self._limits.head_seconds:
            self.wire.shut(PROTOCOL_ERROR, "a head took too long")
            return
        if not self._streams and now - self._seen_at > self._limits.idle_seconds:
            self.wire.close()
            return
        for stream in tuple(self._streams.values()):
            if stream.awaited and now - stream.seen_at > self._limits.idle_seconds:
                self.cut(stream.number, CANCEL)
                if stream.exchange is not None:
                    stream.exchange.client_gone()

    def close(self) -> None:
        """Take no more requests, and close once those that run have ended."""
        self._draining = True
        self.wire.farewell()
        self._close_if_done()

    def came(self, event: Event) -> None:
        """One of h2's events came."""
        self._seen_at = self.wire.loop.time()
        match event:
            case DataReceived():
                self._data(event)
            case RequestReceived():
                self._request(event)
            case StreamEnded():
                self._request_end(event.stream_id, ())
            case TrailersReceived():
                self._trailers(event)
            case StreamReset():
                self._reset(event)
            case _:
                pass  # pings, settings and priorities need nothing more

    def gone_away(self, last: int) -> None:
        """The agent opens no more streams."""
        self._draining = True
        self._close_if_done()

    def died(self, detail: str) -> None:
        """The connection is over."""
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            if stream.exchange is not None:
                stream.exchange.client_gone()

    def all_sent(self, number: int) -> None:
        """An answer is on its way whole."""
        stream = self._streams.pop(number, None)
        if stream is None:
            return
        self._seen_at = self.wire.loop.time()
        self._resets.earn(1)
        if not stream.ended:
            self.wire.reset(number, NO_ERROR)  # the rest of the request is of no use (RFC 9113 §8.1)
        self._close_if_done()

    def cut(self, number: int, code: int) -> None:
        """Reset a stream that its exchange gave up."""
        if self._streams.pop(number, None) is not None:
            self.wire.reset(number, code)
            self._close_if_done()

    def _request(self, event: RequestReceived) -> None:
        number = event.stream_id
        if len(self._streams) >= STREAMS or self._draining:
            self._fault(number, REFUSED_STREAM)
            return
        ended = event.stream_ended is not None
        self.wire.measure(number)
        head = read_request2(tuple((bytes(name), bytes(value)) for name, value in event.headers), self._place,
                             self._limits)  # fmt: skip
        if isinstance(head, RequestHead) and ended and head.length:
            self._fault(number, PROTOCOL_ERROR)
            return
        stream = _Stream(self, number, self.wire.lane(number, self._ignore))
        stream.seen_at = self._seen_at
        self._streams[number] = stream
        if isinstance(head, HeadRefusal):
            self._refuse(stream, head, silent=(b":method", b"HEAD") in event.headers)
            return
        stream.lane.on_full = stream.full
        stream.left = head.length
        stream.timed = not is_grpc(head.headers)
        if ended:
            head = replace(head, length=0, expects_continue=False)
        stream.exchange = self._setting.begin(stream, head, self._place)

    def _refuse(self, stream: _Stream, refusal: HeadRefusal, *, silent: bool) -> None:
        self._setting.turned_away(self._place, refusal.reason)
        answer, body = plain(refusal.status, "Refused by Interlock", refusal.reason)
        if silent:
            stream.answer(replace(answer, length=0))
        else:
            stream.answer(answer)
            stream.data(body)
        stream.end(())
        self._spend()

    def _data(self, event: DataReceived) -> None:
        size = event.flow_controlled_length or 0
        stream = self._streams.get(event.stream_id)
        if stream is None or stream.exchange is None:
            self.wire.taken(event.stream_id, size)
            return
        data = bytes(event.data or b"")
        stream.seen_at = self._seen_at
        if stream.left is not None:
            stream.left -= len(data)
            if stream.left < 0:
                self._malformed(stream)
                return
        if data:
            stream.exchange.body_data(data)
        if stream.paused:
            stream.owed += size
        else:
            self.wire.taken(event.stream_id, size)

    def _trailers(self, event: TrailersReceived) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        trailers = None
        if not any(name.startswith(b":") for name, _ in event.headers):
            trailers = read_trailers(
                tuple((bytes(name), bytes(value)) for name, value in event.headers), self._limits
            )
        if trailers is None:
            self._malformed(stream)
        else:
            self._request_end(event.stream_id, trailers)

    def _request_end(self, number: int, trailers: RawHeaders) -> None:
        stream = self._streams.get(number)
        if stream is None or stream.ended:
            return
        if stream.left:
            self._malformed(stream)
            return
        stream.ended = True
        if stream.exchange is not None:
            stream.exchange.body_end(trailers)

    def _reset(self, event: StreamReset) -> None:
        stream = self._streams.pop(event.stream_id, None)
        if stream is None:
            return
        self.wire.drop(stream.lane)
        if stream.exchange is not None:
            stream.exchange.client_gone()
        self._spend()
        self._close_if_done()

    def _malformed(self, stream: _Stream) -> None:
        if self._streams.pop(stream.number, None) is None:
            return
        self._setting.turned_away(self._place, "the request's body is not what its head or trailers say")
        self._fault(stream.number, PROTOCOL_ERROR)
        if stream.exchange is not None:
            stream.exchange.client_gone()
        self._close_if_done()

    def _fault(self, number: int, code: int) -> None:
        # a reset that the agent provoked counts as its own: else it could have any number of requests begun and dropped
        self.wire.reset(number, code)
        self._spend()

    def _spend(self) -> None:
        if not self._resets.spend():
            self.wire.shut(ENHANCE_YOUR_CALM, "too many requests begun and dropped")

    def _close_if_done(self) -> None:
        if self._draining and not self._streams:
            self.wire.close()

    def _ignore(self, _full: bool) -> None:
        pass


def _fields(head: AnswerHead) -> list[tuple[bytes, bytes]]:
    fields = [(b":status", b"%d" % head.status), *head.headers]
    if head.length and not any(name == b"content-length" for name, _ in head.headers):
        fields.append((b"content-length", b"%d" % head.length))
    return fields
