"""What was compressed before it was encoded: gzip, zlib and Brotli, each within a bound."""

import heapq
import re
import zlib
from collections.abc import Iterator

_STEP = 65_536
_NESTED = 3
_LEAST = 4
_FEW = 4_096
_GZIP = b"\x1f\x8b\x08"
_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_OPAQUE = (b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07")
"""Of formats that are not read: they may hold anything."""


class Inflating:
    """Reads compressed streams of one text, within a budget for all of them.

    Takes: `limit_bytes`.
    Holds: `whole` is False as soon as there is more than was read.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._left = limit_bytes
        self.whole = True

    def streams_in(self, data: bytes, depth: int = _NESTED) -> Iterator[bytes]:
        """Yield what each gzip or zlib stream in these bytes holds, wherever it begins, and the streams in that."""
        end = 0
        for at in heapq.merge(_places(data, _GZIP), (match.start() for match in _ZLIB.finditer(data))):
            if at < end:
                continue
            content, end = self._inflate(data, at)
            if len(content) < _LEAST:
                continue
            yield content
            if depth:
                yield from self.streams_in(content, depth - 1)
            elif content.startswith(_GZIP) or _ZLIB.match(content):
                self.whole = False

    def _inflate(self, data: bytes, at: int) -> tuple[bytes, int]:
        """Return what a stream holds up to where it breaks, and where it ends if it ends by itself."""
        engine = zlib.decompressobj(zlib.MAX_WBITS | 32)
        out = bytearray()
        fed = at
        left = b""
        try:
            while not engine.eof and (left or fed < len(data)):
                if len(out) > self._left:
                    self.whole = False
                    break
                if not left:
                    left = data[fed : fed + _STEP]
                    fed += len(left)
                out += engine.decompress(left, _STEP)
                left = engine.unconsumed_tail
        except zlib.error:
            pass
        self._left -= len(out)
        return bytes(out), fed - len(engine.unused_data) if engine.eof else at + 1

    def unmarked(self, data: bytes) -> Iterator[bytes]:
        """Yield what these bytes hold if they are a Brotli stream: nothing marks one, so most are none."""
        if data.startswith(_OPAQUE):
            self.whole = False
            return
        content = self._unbrotlied(data, len(data)) or self._unbrotlied(data[:_FEW], 1)
        if len(content) >= _LEAST:
            yield content
            yield from self.streams_in(content, 1)

    def _unbrotlied(self, data: bytes, step: int) -> bytes:
        """Return what a stream holds; one that other bytes follow is no stream where it is given at once."""
        import brotli  # type: ignore[import-untyped]

        engine = brotli.Decompressor()
        out = bytearray()
        at = 0
        try:
            while not engine.is_finished() and len(out) <= self._left:
                given = b""
                if engine.can_accept_more_data():
                    given = data[at : at + step]
                    at += step
                piece = engine.process(given, output_buffer_limit=_STEP)
                if not piece and at >= len(data) and engine.can_accept_more_data():
                    break
                out += piece
        except brotli.error:
            return b""
        if len(out) > self._left:
            self.whole = False
        self._left -= len(out)
        return bytes(out) if engine.is_finished() or step > 1 else b""


def _places(data: bytes, mark: bytes) -> Iterator[int]:
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)
