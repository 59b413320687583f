"""What a hostile HTTP/2 origin sends instead of an answer: frames without end, each allowed by itself."""

import struct
from collections.abc import Iterator

from hpack import Encoder

_HEADERS, _RESET, _SETTINGS, _PUSH, _PING, _GOAWAY, _CONTINUATION = 1, 3, 4, 5, 6, 7, 9
_MANY = 100_000


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """Return one frame."""
    return struct.pack("!I", len(body))[1:] + struct.pack("!BBI", kind, flags, stream) + body


def flood(name: str, stream: int) -> Iterator[bytes]:
    """Return the bytes of a flood by name, in pieces."""
    status = Encoder().encode([(":status", "200")])
    match name:
        case "continuation":  # a head that never ends
            yield frame(_HEADERS, 0, stream, status)
            field = b"\0\x01x\x7f\x81\x7e" + b"y" * 16_256
            for _ in range(6_400):
                yield frame(_CONTINUATION, 0, stream, field)
        case "empty":  # the same, of frames that hold nothing
            yield frame(_HEADERS, 0, stream, status)
            for _ in range(_MANY // 100):
                yield frame(_CONTINUATION, 0, stream, b"") * 100
        case "bomb":  # a small head that is a large one once it is read
            entry = b"\x40\x01x\x7f\xa1\x1e" + b"z" * 4_000
            again = b"\xbe" * 16_000
            yield frame(_HEADERS, 0, stream, status + entry)
            for _ in range(200):
                yield frame(_CONTINUATION, 0, stream, again)
            yield frame(_CONTINUATION, 4, stream, b"\xbe")
        case "ping":
            for _ in range(_MANY // 100):
                yield frame(_PING, 0, 0, bytes(8)) * 100
        case "settings":
            for _ in range(_MANY // 100):
                yield frame(_SETTINGS, 0, 0, b"") * 100
        case "push":  # nobody agreed to it
            yield frame(_PUSH, 4, stream, struct.pack("!I", 2) + status)
        case "stranger":  # an answer to what was never asked
            yield frame(_HEADERS, 5, stream + 200, status)
        case "goodbye":
            yield frame(_GOAWAY, 0, 0, struct.pack("!II", 0, 0))
        case _:
            yield frame(_RESET, 0, stream, struct.pack("!I", 7))
