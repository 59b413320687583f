"""HTTP/2 frames written and read by hand, so that wrong ones can be made and nobody mends them."""

from collections.abc import Iterable
from dataclasses import dataclass

from hpack import Decoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 0x1, 0x1, 0x4, 0x8, 0x20
(
    NO_ERROR,
    PROTOCOL,
    INTERNAL,
    FLOW,
    SETTINGS_TIMEOUT,
    CLOSED,
    SIZE,
    REFUSED,
    CANCEL,
    COMPRESSION,
    CONNECT,
    CALM,
) = range(12)

Fields = Iterable[tuple[str | bytes, str | bytes]]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"", length: int = -1) -> bytes:
    size = len(payload) if length < 0 else length
    return size.to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(
        SETTINGS, 0, 0, b"".join(key.to_bytes(2, "big") + value.to_bytes(4, "big") for key, value in pairs)
    )


def pack(fields: Fields) -> bytes:
    """Compress fields without any table, so that blocks can stand in any order."""
    out = bytearray()
    for name, value in fields:
        out.append(0)
        for text in (name, value):
            raw = text.encode("latin-1") if isinstance(text, str) else text
            assert len(raw) < 127 + 2**14
            if len(raw) < 127:
                out.append(len(raw))
            else:
                rest = len(raw) - 127
                out.append(127)
                while rest >= 128:
                    out.append(rest % 128 + 128)
                    rest //= 128
                out.append(rest)
            out += raw
    return bytes(out)


def get(
    path: str | bytes = "/",
    *more: tuple[str | bytes, str | bytes],
    method: str | bytes = "GET",
    scheme: str | bytes = "http",
    authority: str | bytes = "target.test",
) -> list[tuple[str | bytes, str | bytes]]:
    return [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path), *more]


def head(stream: int, fields: Fields, *, end: bool = True) -> bytes:
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, pack(fields))


def data(stream: int, body: bytes, *, end: bool = True) -> bytes:
    return frame(DATA, END_STREAM if end else 0, stream, body)


def opening(*frames: bytes) -> bytes:
    return PREFACE + settings() + b"".join(frames)


def reset(stream: int, code: int = CANCEL) -> bytes:
    return frame(RST, 0, stream, code.to_bytes(4, "big"))


def window(stream: int, more: int) -> bytes:
    return frame(WINDOW, 0, stream, more.to_bytes(4, "big"))


@dataclass
class Told:
    """What came back: statuses and bodies by stream, resets by stream, the codes of GOAWAYs, acknowledgements."""

    statuses: dict[int, int]
    bodies: dict[int, bytes]
    ended: set[int]
    resets: dict[int, int]
    goaway: int | None = None
    pongs: tuple[bytes, ...] = ()
    acks: int = 0
    largest: int = 0
    heads: int = 0


def read(raw: bytes) -> Told:
    """Read a server's frames. Raises: AssertionError, if they are not well-formed."""
    told = Told({}, {}, set(), {})
    decoder = Decoder()
    at = 0
    first = True
    while at < len(raw):
        if len(raw) - at < 9:
            break
        size = int.from_bytes(raw[at : at + 3], "big")
        kind, flags = raw[at + 3], raw[at + 4]
        stream = int.from_bytes(raw[at + 5 : at + 9], "big") & 0x7FFFFFFF
        payload = raw[at + 9 : at + 9 + size]
        at += 9 + size
        if len(payload) < size:
            break
        assert not first or (kind == SETTINGS and not flags & ACK) or kind == GOAWAY, "no settings first"
        first = False
        told.largest = max(told.largest, size)
        if kind == HEADERS:
            assert flags & END_HEADERS
            fields = dict(decoder.decode(payload, raw=True))
            if b":status" in fields:
                status = int(fields[b":status"])
                if status >= 200:
                    assert stream not in told.statuses, "two answers on a stream"
                    told.statuses[stream] = status
            told.heads += 1
            if flags & END_STREAM:
                told.ended.add(stream)
        elif kind == DATA:
            told.bodies[stream] = told.bodies.get(stream, b"") + payload
            if flags & END_STREAM:
                told.ended.add(stream)
        elif kind == RST:
            told.resets[stream] = int.from_bytes(payload, "big")
        elif kind == GOAWAY:
            told.goaway = int.from_bytes(payload[4:8], "big")
        elif kind == PING and flags & ACK:
            told.pongs += (payload,)
        elif kind == SETTINGS and flags & ACK:
            told.acks += 1
    return told
