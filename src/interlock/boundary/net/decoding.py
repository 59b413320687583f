"""A compressed answer undone as it streams, where it has to be read before it may pass."""

import sys
import zlib
from collections.abc import Iterator
from typing import Any, Protocol

from interlock.boundary.net.inflating import ZSTD_WINDOW_LOG

_STEP_BYTES = 64 * 1024
_CHUNK_BYTES = 16 * 1024 * 1024
"""What one chunk of an answer may grow to: no text grows so much, and all of it stands in memory at once."""
_LAYERS = 3
_GZIP = ("gzip", "x-gzip")


class Undecodable(Exception):
    """The answer cannot be decompressed. Takes: `reason`, one line without payload."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Layer(Protocol):
    def feed(self, chunk: bytes) -> Iterator[bytes]: ...

    def finish(self) -> None: ...


class Decoding:
    """Undoes every layer of a content encoding.

    Takes: `content_encoding`, the field's value.
    Raises: Undecodable, also for an encoding that is not known.
    Holds: no chunk grows beyond a bound; what `feed` has yielded is the answer's own text, in order.
    """

    def __init__(self, content_encoding: str) -> None:
        names = [name.strip().lower() for name in content_encoding.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > _LAYERS:
            raise Undecodable("it is compressed in more layers than are undone")
        self._layers = [_layer(name) for name in reversed(names)]

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take a part; yield what it comes to. Raises: Undecodable."""
        size_bytes = 0
        for piece in _through(self._layers, chunk):
            size_bytes += len(piece)
            if size_bytes > _CHUNK_BYTES:
                raise Undecodable("it grows larger than any text does")
            yield piece

    def finish(self) -> None:
        """Check that it is whole. Raises: Undecodable."""
        for layer in self._layers:
            layer.finish()


def _through(layers: list[_Layer], chunk: bytes) -> Iterator[bytes]:
    if not layers:
        yield chunk
        return
    for piece in layers[0].feed(chunk):
        yield from _through(layers[1:], piece)


def _layer(name: str) -> _Layer:
    if name in _GZIP:
        return _Zlib(zlib.MAX_WBITS | 16)
    if name == "deflate":
        return _Zlib(0)
    if name == "br":
        return _Brotli()
    if name == "zstd":
        return _Zstd()
    raise Undecodable("it is compressed in a way that is not known here")


class _Zlib:
    """Takes: `bits`, as zlib has them; 0 for `deflate`, whose first bytes tell which of two formats it is."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._start = b""
        self._engine = zlib.decompressobj(bits) if bits else None
        self._any = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if self._engine is None:
            self._start += chunk
            if len(self._start) < 2:
                return
            chunk, self._start = self._start, b""
            self._bits = zlib.MAX_WBITS if _is_zlib(chunk) else -zlib.MAX_WBITS
            self._engine = zlib.decompressobj(self._bits)
        self._any = self._any or bool(chunk)
        try:
            while chunk:
                if self._engine.eof:
                    if not self._bits & 16:
                        raise Undecodable("something follows its end")
                    self._engine = zlib.decompressobj(self._bits)  # gzip may have several members
                piece = self._engine.decompress(chunk, _STEP_BYTES)
                chunk = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail
                if piece:
                    yield piece
            # What fits no step is kept within the engine.
            while not self._engine.eof and (piece := self._engine.decompress(b"", _STEP_BYTES)):
                yield piece
        except zlib.error:
            raise Undecodable("it is broken") from None

    def finish(self) -> None:
        if self._start or (self._any and self._engine is not None and not self._engine.eof):
            raise Undecodable("it was cut off")


def _is_zlib(start: bytes) -> bool:
    return start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0


class _Brotli:
    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]  # late: most runs never see br

        self._error = brotli.error
        self._engine: Any = brotli.Decompressor()
        self._any = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if not chunk:
            return
        self._any = True
        if self._engine.is_finished():
            raise Undecodable("something follows its end")
        try:
            piece = self._engine.process(chunk, output_buffer_limit=_STEP_BYTES)
            while piece:
                yield piece
                piece = self._engine.process(b"", output_buffer_limit=_STEP_BYTES)
        except self._error:
            raise Undecodable("it is broken") from None

    def finish(self) -> None:
        if self._any and not self._engine.is_finished():
            raise Undecodable("it was cut off")


class _Zstd:
    def __init__(self) -> None:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd  # late: 20 ms, and most runs never see zstd

        self._error = zstd.ZstdError
        bounds = {int(zstd.DecompressionParameter.window_log_max): ZSTD_WINDOW_LOG}
        self._make: Any = lambda: zstd.ZstdDecompressor(options=bounds)
        self._engine: Any = self._make()
        self._any = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._any = self._any or bool(chunk)
        try:
            while chunk:
                if self._engine.eof:
                    self._engine = self._make()
                piece = self._engine.decompress(chunk, _STEP_BYTES)
                while True:
                    if piece:
                        yield piece
                    if self._engine.eof or self._engine.needs_input:
                        break
                    piece = self._engine.decompress(b"", _STEP_BYTES)
                chunk = self._engine.unused_data if self._engine.eof else b""
        except self._error:
            raise Undecodable("it is broken") from None

    def finish(self) -> None:
        if self._any and not self._engine.eof:
            raise Undecodable("it was cut off")
