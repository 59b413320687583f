"""HTTP/2 frames as they are cut from the byte stream, with a budget for those that cost us and carry nothing.

`h2` reads each frame's meaning; what it does not bound (floods of cheap frames, header blocks that never end, a
GOAWAY that leaves streams running) is caught here, before it.
"""

from collections.abc import Callable, Iterator

from interlock.model.records import dataclass

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_BYTES = 16 * 1024
"""The largest frame that we take (the protocol's own lower bound of that)."""

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = 0x0, 0x1, 0x2, 0x3
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR = 0x5, 0x6, 0x7, 0x8, 0x9
ENHANCE_YOUR_CALM = 0xB

_DATA, _HEADERS, _PRIORITY, _RST_STREAM, _SETTINGS, _PUSH_PROMISE = 0x0, 0x1, 0x2, 0x3, 0x4, 0x5
_PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = 0x6, 0x7, 0x8, 0x9
_END_STREAM, _ACK, _END_HEADERS, _PADDED = 0x1, 0x1, 0x4, 0x8
_HEAD_BYTES = 9
_CONTINUATIONS = 60
"""Fewer than h2 joins."""


class FrameError(Exception):
    """The connection cannot go on. Takes: `code`, for the GOAWAY."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneAway:
    """The other end's GOAWAY: streams of ours above `last` were not taken."""

    last: int
    code: int


class Budget:
    """A bucket of tokens, refilled by time and by useful work; an empty one means a flood."""

    __slots__ = ("_at", "_capacity", "_clock", "_left", "_rate")

    def __init__(self, capacity: int, per_second: float, clock: Callable[[], float]) -> None:
        self._capacity = float(capacity)
        self._rate = per_second
        self._clock = clock
        self._left = float(capacity)
        self._at = clock()

    def earn(self, tokens: int) -> None:
        """Put back for work that was useful."""
        self._left = min(self._capacity, self._left + tokens)

    def spend(self, tokens: int = 1) -> bool:
        """Take out; False once there is none left."""
        self._left -= tokens
        if self._left < 0:  # the clock is read only when it matters
            now = self._clock()
            self._left = min(self._capacity, self._left + (now - self._at) * self._rate)
            self._at = now
        return self._left >= 0


class FrameCutter:
    """Cuts whole frames from what arrives, and refuses what no honest peer sends.

    Holds: the same bytes give the same frames however they were split; what is buffered is less than one frame.
    """

    __slots__ = (
        "_block_bytes",
        "_block_frames",
        "_buffer",
        "_first",
        "_head_bytes",
        "_preface",
        "_server",
        "budget",
        "highest",
    )

    def __init__(self, *, server: bool, head_bytes: int, clock: Callable[[], float]) -> None:
        self._buffer = bytearray()
        self._preface = PREFACE if server else b""
        self._first = True
        self._server = server
        self._head_bytes = head_bytes
        self._block_bytes = -1
        self._block_frames = 0
        self.budget = Budget(1000, 200.0, clock)
        self.highest = 0
        """The highest stream that the other end has opened."""

    @property
    def within(self) -> bool:
        """Say whether the preface, a header block or a frame that is not of data has begun and is not whole."""
        if self._preface or self._block_bytes >= 0:
            return True
        return len(self._buffer) > 3 and self._buffer[3] != _DATA

    def cut(self, data: bytes) -> Iterator[bytes | GoneAway]:
        """Yield each whole frame as bytes for h2, the preface with the first, and each GOAWAY as what it says.

        Raises: FrameError.
        """
        buffer = self._buffer
        buffer += data
        if self._preface:
            first = bytes(buffer[: len(PREFACE)])
            if not PREFACE.startswith(first):
                raise FrameError(PROTOCOL_ERROR, "the preface is not one of HTTP/2")
            if len(first) < len(PREFACE):
                return
            self._preface = b""
            yield first
            del buffer[: len(first)]
        while len(buffer) >= _HEAD_BYTES:
            length = int.from_bytes(buffer[:3], "big")
            if length > FRAME_BYTES:
                raise FrameError(FRAME_SIZE_ERROR, "a frame is larger than allowed")
            end = _HEAD_BYTES + length
            if len(buffer) < end:
                return
            frame = bytes(buffer[:end])
            del buffer[:end]
            kept = self._admit(frame)
            if kept is not None:
                yield kept

    def _admit(self, frame: bytes) -> bytes | GoneAway | None:
        kind, flags = frame[3], frame[4]
        stream = int.from_bytes(frame[5:9], "big") & 0x7FFFFFFF
        length = len(frame) - _HEAD_BYTES
        if self._first:
            self._first = False
            if kind != _SETTINGS or flags & _ACK:
                raise FrameError(PROTOCOL_ERROR, "the first frame is not one of settings")
        if self._block_bytes >= 0 and kind != _CONTINUATION:
            raise FrameError(PROTOCOL_ERROR, "a header block is not finished")
        if kind == _DATA:
            padding = 1 + frame[9] if flags & _PADDED and length else 0
            if length <= padding and not flags & _END_STREAM:
                self._spend(1)
            self._not_idle(stream)
        elif kind == _HEADERS:
            self._block(flags, length, 0)
            if self._server:
                self.highest = max(self.highest, stream)
        elif kind == _CONTINUATION:
            if self._block_bytes < 0:
                raise FrameError(PROTOCOL_ERROR, "a CONTINUATION follows no HEADERS")
            self._block(flags, length, self._block_bytes)
        elif kind == _GOAWAY:
            self._spend(1)
            if stream or length < 8:
                raise FrameError(PROTOCOL_ERROR if stream else FRAME_SIZE_ERROR, "the GOAWAY is malformed")
            return GoneAway(
                last=int.from_bytes(frame[9:13], "big") & 0x7FFFFFFF, code=int.from_bytes(frame[13:17], "big")
            )
        elif kind == _PUSH_PROMISE:
            raise FrameError(PROTOCOL_ERROR, "a push was not allowed")
        elif kind == _SETTINGS:
            if flags & _ACK and length:
                raise FrameError(FRAME_SIZE_ERROR, "an acknowledgement of settings holds some")
            self._spend(1 + length // 60)
        elif kind in (_RST_STREAM, _WINDOW_UPDATE):
            self._spend(1)
            if stream:
                self._not_idle(stream)
        elif kind in (_PRIORITY, _PING):
            self._spend(1)
        else:  # an unknown kind is to be ignored; h2 never sees it
            self._spend(1)
            return None
        return frame

    def _block(self, flags: int, length: int, before: int) -> None:
        self._block_frames = self._block_frames + 1 if before or self._block_bytes >= 0 else 0
        self._block_bytes = before + length
        if self._block_bytes > self._head_bytes or self._block_frames > _CONTINUATIONS:
            raise FrameError(ENHANCE_YOUR_CALM, "a header block is larger than allowed")
        if flags & _END_HEADERS:
            self._block_bytes = -1

    def _not_idle(self, stream: int) -> None:
        # streams that the client opens are odd; an even one would be a push, which nobody may make
        if self._server and (stream > self.highest or stream % 2 == 0):
            raise FrameError(PROTOCOL_ERROR, "a frame is for a stream that was never opened")

    def _spend(self, tokens: int) -> None:
        if not self.budget.spend(tokens):
            raise FrameError(ENHANCE_YOUR_CALM, "too many frames that carry nothing")
