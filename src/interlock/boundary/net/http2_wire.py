"""One HTTP/2 connection over a link, the same in both roles: settings, flow control, order of sending, the end."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from h2.events import Event, RemoteSettingsChanged, WindowUpdated
from h2.exceptions import H2Error, ProtocolError
from hpack.exceptions import HPACKError
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import GoAwayFrame

from interlock.boundary.net.http2_connection import TABLE_BYTES, open_connection
from interlock.boundary.net.http2_frames import (
    COMPRESSION_ERROR,
    NO_ERROR,
    PROTOCOL_ERROR,
    FrameCutter,
    FrameError,
    GoneAway,
)
from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.sides import DroppableLink, RawHeaders

_HIGH_BYTES, _LOW_BYTES = 256 * 1024, 64 * 1024
_CHUNK_BYTES = 64 * 1024
_UNREAD_BYTES = 256 * 1024
"""What is answered to a peer that does not read, before we stop reading it too."""


class Owner(Protocol):
    """What a wire tells: `Http2Client` or `Http2Far`."""

    def came(self, event: Event) -> None:
        """One of h2's events came."""
        ...

    def all_sent(self, stream: int) -> None:
        """The stream's direction of ours has ended on the wire."""
        ...

    def gone_away(self, last: int) -> None:
        """The other end takes no stream above `last`."""
        ...

    def died(self, detail: str) -> None:
        """The connection is over, once; nothing can be sent any more."""
        ...


class Lane:
    """What one stream has still to send.

    Takes: `on_full`, told when it holds more than the high mark, and when less than the low mark again.
    """

    __slots__ = ("chunks", "ended", "full", "on_full", "size_bytes", "stream", "trailers")

    def __init__(self, stream: int, on_full: Callable[[bool], None]) -> None:
        self.stream = stream
        self.chunks: deque[memoryview] = deque()
        self.size_bytes = 0
        self.ended = False
        self.trailers: RawHeaders = ()
        self.full = False
        self.on_full = on_full


class Wire:
    """h2's connection, its link, and the lanes of its streams.

    Holds: `WINDOW_UPDATE` is sent for what was `taken` alone; data waits in its lane while the peer's window or the
    link is full; after `died` every call is empty.
    """

    def __init__(
        self,
        link: DroppableLink,
        loop: asyncio.AbstractEventLoop,
        limits: NetLimits,
        owner: Owner,
        *,
        server: bool,
    ) -> None:
        self.link = link
        self.loop = loop
        self.alive = True
        self.began_at: float | None = loop.time()
        """When the other end began something that must soon be whole: the preface, a header block."""
        self._owner = owner
        self._server = server
        self._cutter = FrameCutter(server=server, head_bytes=limits.head_bytes, clock=loop.time)
        self._lanes: dict[int, Lane] = {}
        self._busy = False
        self._due = False
        self._unread_bytes = 0
        self._paused = False
        self._said = -1
        self.h2 = open_connection(limits, server=server)
        link.on_data = self.feed
        link.on_eof = self._eof
        link.on_closed = self._closed
        link.on_room = self._room
        self.flush()

    def feed(self, data: bytes) -> None:
        """Take what came."""
        if not self.alive:
            return
        self._busy = True
        try:
            for piece in self._cutter.cut(data):
                if isinstance(piece, GoneAway):
                    self._owner.gone_away(piece.last)
                else:
                    for event in self.h2.receive_data(piece):
                        self._came(event)
                if not self.alive:
                    return
        except FrameError as error:
            self.shut(error.code, str(error))
        except (H2Error, HyperframeError) as error:
            code = int(getattr(error, "error_code", PROTOCOL_ERROR))
            if code == PROTOCOL_ERROR and isinstance(error.__cause__, HPACKError):
                code = COMPRESSION_ERROR  # RFC 9113 §4.3; h2 has made a GOAWAY that says another code
                self.h2.clear_outbound_data_buffer()
            elif isinstance(error, ProtocolError):
                self._said = code  # h2 has made the GOAWAY itself
            self.shut(code, type(error).__name__)
        finally:
            self._busy = False
        if not self._cutter.within:
            self.began_at = None
        elif self.began_at is None:
            self.began_at = self.loop.time()
        self.pump()

    def headers(self, stream: int, fields: list[tuple[bytes, bytes]], *, end: bool = False) -> None:
        """Send a head, or an interim one."""
        if not self.alive:
            return
        try:
            self.h2.send_headers(stream, fields, end_stream=end)
        except H2Error:
            return  # the stream was reset meanwhile; its owner is told by the event
        self.soon()

    def lane(self, stream: int, on_full: Callable[[bool], None]) -> Lane:
        """Open a stream's lane."""
        made = self._lanes[stream] = Lane(stream, on_full)
        return made

    def put(self, lane: Lane, chunk: bytes) -> None:
        """Send data of a stream, now or when there is room for it."""
        if not self.alive or not chunk or lane.stream not in self._lanes:
            return
        lane.chunks.append(memoryview(chunk))
        lane.size_bytes += len(chunk)
        if lane.size_bytes > _HIGH_BYTES and not self._busy:
            self.pump()
        else:
            self.soon()
        if lane.size_bytes > _HIGH_BYTES and not lane.full:
            lane.full = True
            lane.on_full(True)

    def finish(self, lane: Lane, trailers: RawHeaders) -> None:
        """End a stream's direction once its data is sent."""
        lane.ended = True
        lane.trailers = trailers
        self.soon()

    def sent(self, stream: int) -> bool:
        """Say whether all that a stream had to send is sent, its end included."""
        return stream not in self._lanes

    def drop(self, lane: Lane) -> None:
        """Send nothing more of a stream."""
        self._lanes.pop(lane.stream, None)

    def measure(self, stream: int) -> None:
        """Leave it to the caller to hold a body against its `content-length`: h2 would end the whole connection."""
        self.h2.streams[stream]._expected_content_length = None

    def reset(self, stream: int, code: int) -> None:
        """Reset a stream, if it is open."""
        self._lanes.pop(stream, None)
        if not self.alive:
            return
        try:
            self.h2.reset_stream(stream, code)
        except H2Error:
            return  # it has ended already
        self.soon()

    def taken(self, stream: int, size_bytes: int) -> None:
        """Give the window back for data that was passed on."""
        if self.alive and size_bytes:
            self.h2.acknowledge_received_data(size_bytes, stream)
            self.soon()

    def pump(self) -> None:
        """Send of each lane in turn what windows and link take."""
        going = self.alive
        while going and not self.link.full:
            going = False
            for lane in tuple(self._lanes.values()):
                if self._send(lane):
                    going = True
                    if self._lanes.pop(lane.stream, None) is not None:
                        self._lanes[lane.stream] = lane  # behind the others: no stream starves
                    self.flush()
                if not self.alive:
                    return
                if self.link.full:
                    break
        self.flush()

    def flush(self) -> None:
        """Write what h2 has made."""
        data = self.h2.data_to_send()
        if not data or not self.alive:
            return
        if self.link.full:
            self._unread_bytes += len(data)
            if self._unread_bytes > _UNREAD_BYTES and not self._paused:
                self._paused = True
                self.link.pause()
        self.link.write(data)

    def spend(self) -> bool:
        """Count something cheap that came; False for a flood."""
        return self._cutter.budget.spend()

    def farewell(self, code: int = NO_ERROR) -> None:
        """Send a GOAWAY and let the streams that were taken run to their end."""
        if not self.alive:
            return
        self.flush()
        if self._said != code:
            self._said = code
            frame = GoAwayFrame(0, last_stream_id=self._cutter.highest, error_code=code)
            self.link.write(frame.serialize())

    def shut(self, code: int, detail: str) -> None:
        """End the connection for a reason: GOAWAY, then close."""
        if not self.alive:
            return
        self.farewell(code)
        self._end(detail)
        self._let_go()

    def close(self) -> None:
        """Close a connection on which nothing runs."""
        self.shut(NO_ERROR, "closed")

    def _end(self, detail: str) -> None:
        if self.alive:
            self.alive = False
            self._lanes.clear()
            self._owner.died(detail)

    def _came(self, event: Event) -> None:
        if isinstance(event, RemoteSettingsChanged):
            # the other end may allow us a table of gigabytes: we take no more than the usual one
            self.h2.encoder.header_table_size = min(self.h2.encoder.header_table_size, TABLE_BYTES)
        elif isinstance(event, WindowUpdated):
            return  # the pump follows
        self._owner.came(event)

    def _send(self, lane: Lane) -> bool:
        try:
            if lane.chunks:
                window = self.h2.local_flow_control_window(lane.stream)
                size = min(len(lane.chunks[0]), window, self.h2.max_outbound_frame_size, _CHUNK_BYTES)
                if size <= 0:
                    return False
                chunk = lane.chunks[0]
                if size == len(chunk):
                    lane.chunks.popleft()
                else:
                    lane.chunks[0] = chunk[size:]
                    chunk = chunk[:size]
                lane.size_bytes -= size
                last = lane.ended and not lane.chunks and not lane.trailers
                self.h2.send_data(lane.stream, chunk, end_stream=last)
                self._cutter.budget.earn(4)
                if last:
                    del self._lanes[lane.stream]
            elif lane.ended:
                del self._lanes[lane.stream]
                if lane.trailers:
                    self.h2.send_headers(lane.stream, list(lane.trailers), end_stream=True)
                else:
                    self.h2.end_stream(lane.stream)
                last = True
            else:
                return False
        except H2Error:
            self._lanes.pop(
                lane.stream, None
            )  # the stream was reset meanwhile; its owner is told by the event
            return False
        if lane.full and lane.size_bytes <= _LOW_BYTES:
            lane.full = False
            lane.on_full(False)
        if last:
            self._owner.all_sent(lane.stream)
        return True

    def soon(self) -> None:
        """Send in the loop's next turn: one write for a head, its data and its end."""
        if not self._busy and not self._due:
            self._due = True
            self.loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._due = False
        self.pump()

    def _room(self) -> None:
        self._unread_bytes = 0
        if self._paused:
            self._paused = False
            self.link.resume()
        self.pump()

    def _eof(self) -> None:
        if self.alive:
            self._end("the connection was closed")
            self._let_go()

    def _let_go(self) -> None:
        if self._server:
            self.link.close()  # an answer may still be on its way
        else:
            self.link.drop()

    def _closed(self) -> None:
        self._end("the connection broke")
