"""HTTP/2 by the sections of RFC 9113 and RFC 7541: what a client sends, and what a server must say to it.

The order and the choice follow h2spec, which cannot be had here; words and bytes are ours.
"""

from dataclasses import dataclass

from tests.boundary.smuggling.frames import (
    ACK,
    CALM,
    CLOSED,
    COMPRESSION,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FLOW,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITIZED,
    PRIORITY,
    PROTOCOL,
    PUSH,
    REFUSED,
    RST,
    SETTINGS,
    SIZE,
    WINDOW,
    data,
    frame,
    get,
    head,
    opening,
    pack,
    reset,
    settings,
    window,
)


@dataclass(frozen=True)
class Rule:
    """One rule.

    Takes: `section`, of RFC 9113, or `HPACK` and one of RFC 7541; `answers`, streams that must be answered with 200;
    `connection`, codes of a GOAWAY, one of which must come (None: the connection is closed without one); `stream`, codes of a reset of stream `number`, where one of
    `connection` or an answer of the class 4xx will do as well.
    """

    section: str
    says: str
    raw: bytes
    answers: tuple[int, ...] = ()
    connection: tuple[int | None, ...] = ()
    stream: tuple[int, ...] = ()
    number: int = 1
    pongs: tuple[bytes, ...] = ()


def ok(section: str, says: str, *frames: bytes, streams: tuple[int, ...] = (1,)) -> Rule:
    return Rule(section, says, opening(*frames), answers=streams)


def dies(section: str, says: str, *frames: bytes, codes: tuple[int, ...] = (PROTOCOL,)) -> Rule:
    return Rule(section, says, opening(*frames), connection=codes)


def fails(
    section: str, says: str, *frames: bytes, codes: tuple[int, ...] = (PROTOCOL,), number: int = 1
) -> Rule:
    return Rule(section, says, opening(*frames), connection=codes, stream=codes, number=number)


def lives(section: str, says: str, *frames: bytes) -> Rule:
    """A frame that changes nothing: a PING behind it is answered, and so is a request."""
    ping = frame(PING, 0, 0, b"12345678")
    return Rule(section, says, opening(*frames, ping, head(1, get())), answers=(1,), pongs=(b"12345678",))


POST = get(method="POST")
OPEN = head(1, POST, end=False)
GET = head(1, get())
BLOCK = pack(get())
PING8 = b"12345678"

RULES = (
    Rule("3.4", "a preface that is none ends the connection", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + settings(), connection=(None, PROTOCOL)),
    ok("3.4", "settings may hold values", settings((1, 4096), (3, 100), (4, 65535)), GET),
    lives("4.1", "a frame of an unknown kind is ignored", frame(0x16, 0, 0, bytes(8))),
    lives("4.1", "undefined flags are ignored", frame(PING, 0x16, 0, PING8)),
    ok("4.1", "the reserved bit of a stream id is ignored", frame(HEADERS, END_HEADERS | END_STREAM, 1 | 1 << 31, BLOCK)),
    ok("4.2", "DATA of 2^14 bytes is taken", OPEN, data(1, bytes(16384))),
    dies("4.2", "DATA larger than that is a frame size error", OPEN, data(1, bytes(16385)), codes=(SIZE,)),
    dies("4.2", "HEADERS larger than that is a frame size error", frame(HEADERS, END_HEADERS | END_STREAM, 1, bytes(16385)), codes=(SIZE,)),
    dies("4.3", "a block that cannot be decompressed ends the connection", frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xff\xff\xff\xff\xff\xff"), codes=(COMPRESSION,)),
    dies("4.3", "PRIORITY within a block ends the connection", frame(HEADERS, END_STREAM, 1, BLOCK[:9]), frame(PRIORITY, 0, 1, bytes(4) + b"\1")),
    dies("4.3", "HEADERS of another stream within a block ends the connection", frame(HEADERS, END_STREAM, 1, BLOCK[:9]), head(3, get())),
    dies("5.1", "DATA on an idle stream", data(1, b"abc")),
    dies("5.1", "RST_STREAM on an idle stream", reset(1)),
    dies("5.1", "WINDOW_UPDATE on an idle stream", window(1, 100)),
    dies("5.1", "CONTINUATION on an idle stream", frame(CONTINUATION, END_HEADERS, 1, BLOCK)),
    fails("5.1", "DATA on a stream whose request ended", OPEN, data(1, b"a"), data(1, b"b"), codes=(CLOSED,)),
    fails("5.1", "HEADERS on a stream whose request ended", GET, GET, codes=(CLOSED, PROTOCOL)),
    dies("5.1", "CONTINUATION on a stream whose request ended", GET, frame(CONTINUATION, END_HEADERS, 1, BLOCK), codes=(CLOSED, PROTOCOL)),
    fails("5.1", "DATA on a stream that was reset", OPEN, reset(1), data(1, b"abc"), codes=(CLOSED,)),
    fails("5.1", "HEADERS on a stream that was reset", OPEN, reset(1), GET, codes=(CLOSED, PROTOCOL)),
    dies("5.1", "CONTINUATION on a stream that was reset", OPEN, reset(1), frame(CONTINUATION, END_HEADERS, 1, BLOCK), codes=(CLOSED, PROTOCOL)),
    lives("5.1", "PRIORITY on an idle stream", frame(PRIORITY, 0, 3, b"\0\0\0\0\x10")),
    ok("5.1", "WINDOW_UPDATE on a stream whose request ended", GET, window(1, 100)),
    dies("5.1.1", "a stream with an even number", head(2, get())),
    dies("5.1.1", "a stream with a smaller number than one before", head(5, get()), head(3, get()), codes=(PROTOCOL, CLOSED)),
    fails("5.1.2", "more streams than allowed", *[head(2 * at + 1, POST, end=False) for at in range(140)], codes=(REFUSED, PROTOCOL), number=279),
    lives("5.5", "an unknown frame on a stream that is idle", frame(0xFB, 0xFF, 5, b"abc")),
    dies("5.5", "an unknown frame within a block", frame(HEADERS, END_STREAM, 1, BLOCK[:9]), frame(0xFB, 0, 1, b"abc"), frame(CONTINUATION, END_HEADERS, 1, BLOCK[9:])),
    dies("6.1", "DATA on stream 0", data(0, b"abc")),
    dies("6.1", "DATA with more padding than it has", OPEN, frame(DATA, END_STREAM | PADDED, 1, b"\x09abc")),
    ok("6.1", "DATA with padding", OPEN, frame(DATA, END_STREAM | PADDED, 1, b"\x02abc\0\0")),
    ok("6.1", "DATA of nothing", OPEN, data(1, b"", end=False), data(1, b"")),
    ok("6.2", "HEADERS with padding", frame(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, b"\2" + BLOCK + bytes(2))),
    ok("6.2", "HEADERS with a priority", frame(HEADERS, END_STREAM | END_HEADERS | PRIORITIZED, 1, b"\0\0\0\0\x10" + BLOCK)),
    dies("6.2", "HEADERS on stream 0", head(0, get())),
    dies("6.2", "HEADERS with more padding than it has", frame(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, b"\xff" + BLOCK)),
    dies("6.3", "PRIORITY on stream 0", frame(PRIORITY, 0, 0, b"\0\0\0\0\x10")),
    fails("6.3", "PRIORITY of a wrong size", OPEN, frame(PRIORITY, 0, 1, b"\0\0\0\0"), codes=(SIZE,)),
    dies("6.4", "RST_STREAM on stream 0", reset(0)),
    dies("6.4", "RST_STREAM of a wrong size", OPEN, frame(RST, 0, 1, b"\0\0\0"), codes=(SIZE,)),
    dies("6.5", "an acknowledgement of settings with a payload", frame(SETTINGS, ACK, 0, bytes(6)), codes=(SIZE,)),
    dies("6.5", "settings on a stream", frame(SETTINGS, 0, 1, bytes(6))),
    dies("6.5", "settings of a wrong size", frame(SETTINGS, 0, 0, bytes(5)), codes=(SIZE,)),
    dies("6.5.2", "ENABLE_PUSH other than 0 and 1", settings((2, 2))),
    dies("6.5.2", "an initial window above 2^31-1", settings((4, 2**31)), codes=(FLOW,)),
    dies("6.5.2", "a frame size below 2^14", settings((5, 16383))),
    dies("6.5.2", "a frame size above 2^24-1", settings((5, 2**24))),
    lives("6.5.2", "a setting that nobody knows is ignored", settings((0xFF, 1))),
    dies("6.6", "a push by a client", GET, frame(PUSH, END_HEADERS, 1, b"\0\0\0\2" + BLOCK)),
    lives("6.7", "an acknowledgement of a PING is not answered", frame(PING, ACK, 0, b"abcdefgh")),
    dies("6.7", "PING on a stream", frame(PING, 0, 1, PING8)),
    dies("6.7", "PING of a wrong size", frame(PING, 0, 0, PING8[:6]), codes=(SIZE,)),
    dies("6.8", "GOAWAY on a stream", frame(GOAWAY, 0, 1, bytes(8))),
    dies("6.9", "WINDOW_UPDATE of nothing on the connection", window(0, 0)),
    fails("6.9", "WINDOW_UPDATE of nothing on a stream", OPEN, window(1, 0)),
    dies("6.9", "WINDOW_UPDATE of a wrong size", frame(WINDOW, 0, 0, b"\0\0\1"), codes=(SIZE,)),
    dies("6.9.1", "a connection's window above 2^31-1", window(0, 2**31 - 1), window(0, 2**31 - 1), codes=(FLOW,)),
    fails("6.9.1", "a stream's window above 2^31-1", OPEN, window(1, 2**31 - 1), window(1, 2**31 - 1), codes=(FLOW,)),
    ok("6.10", "several CONTINUATIONs", frame(HEADERS, END_STREAM, 1, BLOCK[:9]), frame(CONTINUATION, 0, 1, BLOCK[9:12]), frame(CONTINUATION, END_HEADERS, 1, BLOCK[12:])),
    dies("6.10", "CONTINUATION behind a whole head", OPEN, frame(CONTINUATION, END_HEADERS, 1, BLOCK)),
    dies("6.10", "CONTINUATION on stream 0", frame(HEADERS, END_STREAM, 1, BLOCK[:9]), frame(CONTINUATION, END_HEADERS, 0, BLOCK[9:])),
    dies("6.10", "CONTINUATION behind DATA", OPEN, data(1, b"a", end=False), frame(CONTINUATION, END_HEADERS, 1, BLOCK)),
    dies("6.10", "CONTINUATIONs without end", frame(HEADERS, END_STREAM, 1, BLOCK), *[frame(CONTINUATION, 0, 1)] * 2000, codes=(CALM, PROTOCOL)),
    lives("7", "a GOAWAY with a code that nobody knows is no error", frame(WINDOW, 0, 0, b"\0\0\1\0")),
    fails("8.1", "a second HEADERS that does not end the stream", OPEN, data(1, b"a", end=False), head(1, [("x", "y")], end=False), codes=(PROTOCOL,)),
    fails("8.1.1", "content-length unlike DATA", head(1, [*POST, ("content-length", "1")], end=False), data(1, b"ab")),
    fails("8.1.1", "content-length unlike several DATA", head(1, [*POST, ("content-length", "1")], end=False), data(1, b"a", end=False), data(1, b"b")),
    fails("8.2.1", "a name in upper case", head(1, get("/", ("X-TEST", "ok")))),
    fails("8.2.2", "a connection field", head(1, get("/", ("connection", "keep-alive")))),
    fails("8.2.2", "TE other than trailers", head(1, get("/", ("te", "trailers, deflate")))),
    fails("8.3", "a pseudo field that nobody knows", head(1, get("/", (":test", "ok")))),
    fails("8.3", "a pseudo field of answers", head(1, get("/", (":status", "200")))),
    fails("8.3", "a pseudo field in trailers", OPEN, data(1, b"a", end=False), head(1, [(":method", "GET")])),
    fails("8.3", "a pseudo field behind others", head(1, [*get()[:3], ("x", "y"), (":path", "/")])),
    fails("8.3.1", "an empty path", head(1, get(""))),
    fails("8.3.1", "no method", head(1, get()[1:])),
    fails("8.3.1", "no scheme", head(1, [*get()[:1], *get()[2:]])),
    fails("8.3.1", "no path", head(1, get()[:3])),
    fails("8.3.1", "the method twice", head(1, [(":method", "GET"), *get()])),
    fails("8.3.1", "the scheme twice", head(1, [(":scheme", "http"), *get()])),
    fails("8.3.1", "the path twice", head(1, [(":path", "/"), *get()])),
    dies("HPACK 2.3.3", "an index beyond the tables", frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xc6" + BLOCK), codes=(COMPRESSION,)),
    dies("HPACK 4.2", "a change of the table's size at the end of a block", frame(HEADERS, END_HEADERS | END_STREAM, 1, BLOCK + b"\x20"), codes=(COMPRESSION,)),
    dies("HPACK 5.2", "Huffman padding longer than 7 bits", frame(HEADERS, END_HEADERS | END_STREAM, 1, BLOCK + b"\0\1x\x84\x49\x50\x9f\xff"), codes=(COMPRESSION,)),
    dies("HPACK 5.2", "Huffman padding with zeros", frame(HEADERS, END_HEADERS | END_STREAM, 1, BLOCK + b"\0\1x\x83\x49\x50\x90"), codes=(COMPRESSION,)),
    dies("HPACK 6.1", "the index 0", frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x80" + BLOCK), codes=(COMPRESSION,)),
    dies("HPACK 6.3", "a table larger than allowed", frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x3f\xe1\xff\x03" + BLOCK), codes=(COMPRESSION,)),
)  # fmt: skip
