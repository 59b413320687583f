"""Compressed bodies are read within bounds, and what has two readings is not read at all."""

import sys
import zlib
from collections.abc import Iterable

_LAYERS = 3
_MEMBERS = 100
"""Of one gzip or zstd body: each costs a copy of all after it."""
_STEP_BYTES = 64 * 1024
_GZIP = ("gzip", "x-gzip")
_NAMED = 0b11100
"""The flags of a gzip head that says more than how to unpack: extra bytes, a name, a comment."""
_ZSTD = b"\x28\xb5\x2f\xfd"
ZSTD_WINDOW_LOG = 23
"""RFC 9659: what HTTP calls zstd needs no larger window, and a reader must not give one."""


def inflate(data: bytes, content_encoding: str, limit_bytes: int) -> bytes | None:
    """Undo every layer of a content encoding.

    Takes: `content_encoding`, the field's value; `limit_bytes`, what any layer may grow to.
    Returns: None for an encoding that is unknown, a body that is broken, cut off, followed by other bytes, readable in
    two ways, or larger than the limit.
    """
    return _inflate(data, content_encoding, limit_bytes, room=True)


def inflate_sent(data: bytes, content_encoding: str, limit_bytes: int) -> bytes | None:
    """Undo a content encoding as `inflate` does, of a body that the command sends.

    Returns: None also where a layer has room for bytes that unpacking drops, for they would leave unseen: the name and
    the comment in a gzip head, and every br body, whose blocks may be metadata.
    """
    return _inflate(data, content_encoding, limit_bytes, room=False)


def _inflate(data: bytes, content_encoding: str, limit_bytes: int, *, room: bool) -> bytes | None:
    layers = [layer for layer in (part.strip().lower() for part in content_encoding.split(",")) if layer]
    layers = [layer for layer in layers if layer != "identity"]
    if len(layers) > _LAYERS:
        return None
    found: bytes | None = data
    for layer in reversed(layers):
        if found is None:
            return None
        if layer in _GZIP:
            found = _gunzip(found, limit_bytes, room=room)
        elif layer == "deflate":
            found = _undeflate(found, limit_bytes)
        elif layer == "zstd":
            found = _unzstd(found, limit_bytes)
        elif layer == "br" and room:
            found = _unbrotli(found, limit_bytes)
        else:
            return None
    return found if found is not None and len(found) <= limit_bytes else None


def _gunzip(data: bytes, limit_bytes: int, *, room: bool) -> bytes | None:
    out = bytearray()
    members = 0
    while data:
        members += 1
        if members > _MEMBERS or (not room and len(data) > 3 and data[3] & _NAMED):
            return None
        member = _one(data, zlib.MAX_WBITS | 16, limit_bytes - len(out))
        if member is None:
            return None
        out += member[0]
        data = member[1]
    return bytes(out)


def _unbrotli(data: bytes, limit_bytes: int) -> bytes | None:
    if not data:
        return b""
    import brotli  # type: ignore[import-untyped]  # late: most runs never see br

    # Its window is 16 MB at most: the larger ones of "large window brotli" are an error here.
    engine = brotli.Decompressor()
    out = bytearray()
    try:
        piece = engine.process(data, output_buffer_limit=_STEP_BYTES)
        while True:
            out += piece
            if len(out) > limit_bytes:
                return None
            if engine.is_finished():
                return bytes(out)
            piece = engine.process(b"", output_buffer_limit=_STEP_BYTES)
            if not piece and not engine.is_finished():
                return None
    except brotli.error:
        return None


def _unzstd(data: bytes, limit_bytes: int) -> bytes | None:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd  # late: 20 ms, and most runs never see zstd

    bounds = {int(zstd.DecompressionParameter.window_log_max): ZSTD_WINDOW_LOG}
    out = bytearray()
    frames = 0
    try:
        while data:
            frames += 1
            # A frame of another kind is skipped by readers, whatever it holds.
            if frames > _MEMBERS or data[:4] != _ZSTD:
                return None
            engine = zstd.ZstdDecompressor(options=bounds)
            left = data
            while not engine.eof:
                piece = engine.decompress(left, _STEP_BYTES)
                left = b""
                out += piece
                if len(out) > limit_bytes or (engine.needs_input and not engine.eof):
                    return None
            data = engine.unused_data
    except zstd.ZstdError:
        return None
    return bytes(out)


def _undeflate(data: bytes, limit_bytes: int) -> bytes | None:
    # the name means the zlib format, and many senders mean raw deflate: what can be read as both is read as neither
    readings = [
        found[0]
        for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS)
        if (found := _one(data, bits, limit_bytes)) is not None and not found[1]
    ]
    return readings[0] if len(readings) == 1 else None


def _one(data: bytes, bits: int, limit_bytes: int) -> tuple[bytes, bytes] | None:
    """Return one whole compressed stream's content and the bytes after it."""
    engine = zlib.decompressobj(bits)
    out = bytearray()
    left = data
    try:
        while not engine.eof:
            piece = engine.decompress(left, min(_STEP_BYTES, max(1, limit_bytes - len(out) + 1)))
            out += piece
            if len(out) > limit_bytes:
                return None
            left = engine.unconsumed_tail
            if not piece and not left and not engine.eof:
                return None
    except zlib.error:
        return None
    return bytes(out), engine.unused_data


_TEXT_TYPES = ("application/json", "application/xml", "application/x-www-form-urlencoded", "application/javascript",
    "application/graphql", "application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson",
    "application/sql", "image/svg+xml", "multipart/form-data", "multipart/mixed")  # fmt: skip
_NUL_WIDE = frozenset(("utf-16", "utf-16le", "utf-16be", "utf-32", "utf-32le", "utf-32be"))
_CHARSETS = _NUL_WIDE | frozenset(
    ("iso-8859-1", "latin1", "iso-8859-2", "iso-8859-5", "iso-8859-7", "iso-8859-9", "iso-8859-15", "windows-1250",
     "windows-1251", "windows-1252", "windows-1253", "windows-1254", "koi8-r", "gbk", "gb18030", "big5",
     "shift_jis", "euc-jp", "euc-kr")
)  # fmt: skip


def decode(data: bytes, content_type: str) -> str | None:
    """Read bytes as text: strict UTF-8 without NUL, or the charset named where the type is of text.

    Returns: None where they are not text, or have two readings (valid UTF-8 that calls itself UTF-16).
    """
    kind, _, rest = content_type.partition(";")
    kind = kind.strip().lower()
    charset = _charset(rest.split(";"))
    if 0 not in data:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            return None if charset in _NUL_WIDE and data else text
    if charset not in _CHARSETS or not _is_text(kind):
        return None
    try:
        text = data.decode(charset)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+json", "+xml", "+yaml"))


def _charset(parameters: Iterable[str]) -> str:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return ""
