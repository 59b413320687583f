"""HTTP/1 messages on the wire: heads read by httptools, bodies framed here.

httptools reads a head in a fraction of the time that h11 takes, and refuses bare line feeds, folded lines and control
characters. It says nothing of where a message ends in what it was fed; what comes after one must stay unread until
the answer before it is out, so the body's frame is ours.
"""

import re
from typing import Protocol

import httptools

from interlock.boundary.net.sides import RawHeaders
from interlock.model.records import dataclass

_MARK = b"\r\n\r\n"
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\Z")
_SPOKEN = re.compile(rb"[^\r\n]* HTTP/[0-9]\.[0-9]\r?\n")
_LINE_BYTES = 4096


class WireError(Exception):
    """The bytes are not HTTP/1 as it must be.

    Takes: a reason without payload; `status`, to answer with; `spoken`, whether it seems to be HTTP/1 at all.
    """

    def __init__(self, reason: str, status: int = 400, *, spoken: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.spoken = spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRequest:
    """A request's head as it was read, its meaning not checked."""

    method: bytes
    target: bytes
    minor: int
    fields: RawHeaders


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """An answer's head as it was read."""

    status: int
    minor: int
    fields: RawHeaders


class _Sink:
    def __init__(self) -> None:
        self.target = b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.whole = False

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value))

    def on_headers_complete(self) -> None:
        self.whole = True


def take_head(buffer: bytearray, limit_bytes: int, searched: int) -> bytes | None:
    """Cut a whole head off the buffer's start.

    Takes: `searched`, how much was looked through before. Returns: None where it is not whole yet.
    Raises: WireError, beyond the limit.
    """
    at = buffer.find(_MARK, max(0, searched - 3))
    if at < 0:
        if len(buffer) > limit_bytes:
            raise WireError("the head is too large", 431)
        return None
    if at + 4 > limit_bytes:
        raise WireError("the head is too large", 431)
    block = bytes(buffer[: at + 4])
    del buffer[: at + 4]
    return block


def check_start(buffer: bytearray) -> None:
    """Refuse early what can become no head. Raises: WireError."""
    end = buffer.find(b"\n")
    if end < 0:
        return
    if not _SPOKEN.match(buffer):
        raise WireError("not HTTP/1", spoken=False)
    if buffer[end - 1 : end] != b"\r" or b"\n\n" in buffer:
        raise WireError("a line ends in a bare line feed")


def read_request_head(block: bytes) -> RawRequest:
    """Read a request's head. Takes: all of it, the empty line included. Raises: WireError."""
    sink = _Sink()
    parser = httptools.HttpRequestParser(sink)
    if not _SPOKEN.match(block):
        raise WireError("not HTTP/1", spoken=False)
    _feed(parser, block, sink, 400)
    method = parser.get_method()
    if not block.startswith(method + b" " + sink.target + b" HTTP/1."):
        raise WireError("the request line has more than single spaces between its parts")
    return RawRequest(
        method=method, target=sink.target, minor=_minor(parser.get_http_version()), fields=tuple(sink.fields)
    )


def read_answer_head(block: bytes, status: int = 502) -> RawAnswer:
    """Read an answer's head. Raises: WireError, with `status`."""
    sink = _Sink()
    parser = httptools.HttpResponseParser(sink)
    _feed(parser, block, sink, status)
    return RawAnswer(
        status=parser.get_status_code(), minor=_minor(parser.get_http_version()), fields=tuple(sink.fields)
    )


def _feed(
    parser: "httptools.HttpRequestParser | httptools.HttpResponseParser",
    block: bytes,
    sink: _Sink,
    status: int,
) -> None:
    try:
        parser.feed_data(block)
    except httptools.HttpParserUpgrade:
        pass  # CONNECT and websocket: the head is whole
    except httptools.HttpParserInvalidMethodError:
        raise WireError("the method is not known", 501) from None
    except httptools.HttpParserError as error:
        raise WireError(f"not HTTP/1: {_words(error)}", status) from None
    if not sink.whole:
        raise WireError("the head does not end where it says", status)


def _words(error: Exception) -> str:
    return "".join(letter for letter in str(error)[:80] if letter.isprintable())


def _minor(version: str) -> int:
    return {"1.0": 0, "1.1": 1}.get(version, 9)


class Frame(Protocol):
    """Where a body ends."""

    whole: bool
    trailers: RawHeaders

    def take(self, buffer: bytearray | bytes) -> tuple[list[bytes], int]:
        """Read on. Returns: the body's parts, and how many bytes were taken. Raises: WireError."""
        ...


class Measured:
    """A body of a known length."""

    __slots__ = ("_left", "trailers", "whole")

    def __init__(self, size_bytes: int) -> None:
        self._left = size_bytes
        self.whole = size_bytes == 0
        self.trailers: RawHeaders = ()

    def take(self, buffer: bytearray | bytes) -> tuple[list[bytes], int]:
        """Read on."""
        size = len(buffer)
        if size <= self._left:
            self._left -= size
            self.whole = self._left == 0
            return ([bytes(buffer)] if size else []), size
        taken = self._left
        self._left = 0
        self.whole = True
        return ([bytes(buffer[:taken])] if taken else []), taken


class UntilClose:
    """A body that ends with its connection."""

    __slots__ = ("trailers", "whole")

    def __init__(self) -> None:
        self.whole = False
        self.trailers: RawHeaders = ()

    def take(self, buffer: bytearray | bytes) -> tuple[list[bytes], int]:
        """Read on."""
        return ([bytes(buffer)] if buffer else []), len(buffer)


class Chunked:
    """A body in chunks: every line ends in CRLF, extensions are dropped, trailers are fields."""

    __slots__ = ("_ended", "_left", "_limit_bytes", "_status", "trailers", "whole")

    def __init__(self, trailer_bytes: int, status: int = 400) -> None:
        self._left = -1  # -1: a size line comes; -2: the CRLF after a chunk
        self._ended = False
        self._limit_bytes = trailer_bytes
        self._status = status
        self.whole = False
        self.trailers: RawHeaders = ()

    def take(self, buffer: bytearray | bytes) -> tuple[list[bytes], int]:
        """Read on."""
        parts: list[bytes] = []
        at, size = 0, len(buffer)
        while not self.whole:
            if self._left > 0:
                if at == size:
                    break
                part = bytes(buffer[at : at + self._left])
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                if self._left:
                    break
                self._left = -2
            elif self._left == -2:
                if size - at < 2:
                    self._check(buffer[at:] in (b"", b"\r"), "a chunk does not end in CRLF")
                    break
                self._check(buffer[at : at + 2] == b"\r\n", "a chunk does not end in CRLF")
                at += 2
                self._left = -1
            elif self._ended:
                taken = self._end(buffer, at)
                if not taken:
                    break
                at += taken
            else:
                taken = self._size(buffer, at)
                if not taken:
                    break
                at += taken
        return parts, at

    def _check(self, holds: bool, reason: str) -> None:
        if not holds:
            raise WireError(reason, self._status)

    def _size(self, buffer: bytearray | bytes, at: int) -> int:
        end = buffer.find(b"\n", at, at + _LINE_BYTES)
        if end < 0:
            self._check(len(buffer) - at < _LINE_BYTES, "a chunk's size line is too long")
            return 0
        found = (
            _CHUNK.match(bytes(buffer[at : end - 1])) if buffer[end - 1 : end] == b"\r" and end > at else None
        )
        if found is None:
            raise WireError("a chunk's size line is broken", self._status)
        self._left = int(found[1], 16)
        if self._left == 0:
            self._left, self._ended = -1, True
        return end + 1 - at

    def _end(self, buffer: bytearray | bytes, at: int) -> int:
        """Read the trailers and the empty line after them."""
        if buffer[at : at + 2] == b"\r\n":
            self.whole = True
            return 2
        end = buffer.find(_MARK, at)
        if end < 0:
            self._check(len(buffer) - at < self._limit_bytes, "the trailers are too large")
            return 0
        self._check(end - at < self._limit_bytes, "the trailers are too large")
        block = bytes(buffer[at : end + 4])
        # the same reader as for heads: an answer's line before them makes them one
        self.trailers = read_answer_head(b"HTTP/1.1 204 \r\n" + block, self._status).fields
        self.whole = True
        return len(block)
