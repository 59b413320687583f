"""The HTTP/2 part of the corpus: sequences of frames that could mean two things behind a proxy that writes HTTP/1."""

from dataclasses import dataclass

from tests.boundary.smuggling.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PADDED,
    PRIORITIZED,
    data,
    frame,
    get,
    head,
    opening,
    pack,
    reset,
)


@dataclass(frozen=True)
class Sequence:
    """Frames and what must hold of them.

    Takes: `passes`, method, target, host and body of each request that the far side may see, in any order; `optional`, whether
    a refusal is as good; `without`, fields that must not go on.
    """

    name: str
    idea: str
    raw: bytes
    passes: tuple[tuple[str, str, str, bytes], ...] = ()
    optional: bool = False
    without: tuple[str, ...] = ()


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: target.test\r\n\r\n"
PLAIN = ("GET", "/", "target.test", b"")
ABC = ("POST", "/", "target.test", b"abc")
POST = get(method="POST")


def one(name: str, idea: str, *fields: tuple[str | bytes, str | bytes], **changes: str | bytes) -> Sequence:
    """A GET with more fields, or with other pseudo fields, that must be refused."""
    path = changes.pop("path", "/")
    return Sequence(name, idea, opening(head(1, get(path, *fields, **changes))))


def body(name: str, idea: str, *fields: tuple[str | bytes, str | bytes], sent: bytes = b"abc") -> Sequence:
    """A POST with more fields and a body, that must be refused."""
    return Sequence(name, idea, opening(head(1, [*POST, *fields], end=False), data(1, sent)))


SEQUENCES = (
    Sequence("plain", "a request as it should be", opening(head(1, get())), (PLAIN,)),
    Sequence("plain-body", "a body in DATA", opening(head(1, POST, end=False), data(1, b"abc")), (ABC,)),
    # length
    body("length-short", "content-length says less than DATA has", ("content-length", "1"), sent=b"a" + SMUGGLED),
    body("length-long", "content-length says more than DATA has", ("content-length", "30")),
    body("length-zero", "content-length of nothing with DATA", ("content-length", "0"), sent=SMUGGLED),
    body("length-twice", "two lengths", ("content-length", "3"), ("content-length", "30")),
    body("length-list", "a list of lengths", ("content-length", "3, 3")),
    body("length-sign", "a length with a sign", ("content-length", "+3")),
    body("length-overflow", "a length beyond 64 bits", ("content-length", "18446744073709551619")),
    Sequence("length-without-data", "a length and no DATA", opening(head(1, [*POST, ("content-length", "3")]))),
    Sequence("length-right", "a length that fits", opening(head(1, [*POST, ("content-length", "3")], end=False), data(1, b"abc")), (ABC,)),
    Sequence("body-is-request", "a request as the body is data", opening(head(1, POST, end=False), data(1, SMUGGLED)),
             (("POST", "/", "target.test", SMUGGLED),)),
    # fields of HTTP/1
    body("transfer-encoding", "a coding of HTTP/1", ("transfer-encoding", "chunked"), sent=b"0\r\n\r\n" + SMUGGLED),
    one("connection", "a connection field", ("connection", "close")),
    one("keep-alive", "a keep-alive field", ("keep-alive", "timeout=5")),
    one("proxy-connection", "a proxy-connection field", ("proxy-connection", "keep-alive")),
    one("upgrade", "an upgrade", ("upgrade", "h2c")),
    one("te-chunked", "TE with more than trailers", ("te", "trailers, chunked")),
    Sequence("te-trailers", "TE with trailers alone stays at this hop", opening(head(1, get("/", ("te", "trailers")))), (PLAIN,), without=("te",)),
    # what cannot stand in a field
    one("value-crlf", "line ends in a value", ("x", "a\r\nTransfer-Encoding: chunked")),
    one("value-crlf-request", "a whole request in a value", ("x", b"a\r\n\r\n" + SMUGGLED)),
    one("value-lf", "a bare LF in a value", ("x", "a\nb: c")),
    one("value-cr", "a bare CR in a value", ("x", "a\rb")),
    one("value-nul", "NUL in a value", ("x", "a\0b")),
    one("value-control", "a control character in a value", ("x", "a\x1bb")),
    Sequence("value-spaces", "white space around a value", opening(head(1, get("/", ("x", " a ")))), (PLAIN,), optional=True),
    one("name-upper", "a name in upper case", ("X-Upper", "a")),
    one("name-crlf", "line ends in a name", ("x: y\r\nz", "a")),
    one("name-colon", "a colon in a name", ("transfer-encoding: chunked\r\nx", "a")),
    one("name-colon-plain", "a colon within a name", ("host:x", "evil.test")),
    one("name-space", "a space in a name", ("x y", "a")),
    one("name-empty", "an empty name", ("", "a")),
    one("name-nul", "NUL in a name", ("x\0", "a")),
    one("name-not-ascii", "a name above 127", (b"x\xe9", "a")),
    # pseudo fields
    one("pseudo-twice-path", "two paths", (":path", "/smuggled")),
    Sequence("pseudo-twice-method", "two methods", opening(head(1, [(":method", "POST"), *get()]))),
    Sequence("pseudo-twice-authority", "two authorities", opening(head(1, [(":authority", "evil.test"), *get()]))),
    Sequence("pseudo-late", "a pseudo field behind a plain one", opening(head(1, [*get()[:3], ("x", "y"), (":path", "/")]))),
    one("pseudo-unknown", "a pseudo field that nobody knows", (":protocol", "websocket")),
    one("pseudo-status", "a pseudo field of answers", (":status", "200")),
    Sequence("pseudo-in-trailer", "a pseudo field in trailers", opening(
        head(1, POST, end=False), data(1, b"abc", end=False), head(1, [(":path", "/smuggled")]))),
    Sequence("no-method", "no method", opening(head(1, get()[1:]))),
    Sequence("no-scheme", "no scheme", opening(head(1, [*get()[:1], *get()[2:]]))),
    Sequence("no-path", "no path", opening(head(1, get()[:3]))),
    Sequence("no-authority", "no authority and no host", opening(head(1, [*get()[:2], get()[3]]))),
    Sequence("host-for-authority", "a host field in place of the authority", opening(
        head(1, [*get()[:2], get()[3], ("host", "target.test")])), (PLAIN,), optional=True),
    one("path-empty", "an empty path", path=""),
    one("path-relative", "a path without its slash", path="smuggled"),
    one("path-absolute-url", "a URL as the path", path="http://evil.test/"),
    one("path-space", "a first line in the path", path="/smuggled HTTP/1.1"),
    one("path-crlf", "line ends in the path", path="/ HTTP/1.1\r\nHost: evil.test\r\n\r\nGET /smuggled"),
    one("path-tab", "a tab in the path", path="/a\tb"),
    one("path-nul", "NUL in the path", path="/a\0b"),
    one("path-fragment", "a fragment in the path", path="/a#b"),
    one("path-not-ascii", "a path above 127", path=b"/caf\xc3\xa9"),
    one("path-star-get", "the star with GET", path="*"),
    Sequence("path-star-options", "the star with OPTIONS", opening(head(1, get("*", method="OPTIONS"))), (("OPTIONS", "*", "target.test", b""),)),
    Sequence("path-dots", "dot segments are gone before anyone is asked", opening(head(1, get("/a/%2e./b"))), (("GET", "/b", "target.test", b""),)),
    Sequence("path-two-slashes", "a path that looks like a host", opening(head(1, get("//evil.test/"))), (("GET", "//evil.test/", "target.test", b""),), optional=True),
    one("method-space", "a first line in the method", method="GET /smuggled HTTP/1.1\r\nX: y\r\n\r\nGET"),
    one("method-space-plain", "a space in the method", method="GET /smuggled"),
    one("method-empty", "an empty method", method=""),
    one("method-nul", "NUL in the method", method="GE\0T"),
    one("scheme-other", "another scheme than the connection's", scheme="https"),
    one("scheme-url", "a URL in the scheme", scheme="http://evil.test/?"),
    one("scheme-empty", "an empty scheme", scheme=""),
    one("scheme-crlf", "line ends in the scheme", scheme="http\r\nx: y"),
    one("authority-other", "another host than the one dialled", authority="evil.test"),
    one("authority-host-differs", "a host field that differs", ("host", "evil.test")),
    Sequence("authority-host-same", "a host field that agrees", opening(head(1, get("/", ("host", "target.test")))), (PLAIN,), optional=True),
    one("host-twice", "two host fields", ("host", "target.test"), ("host", "evil.test")),
    one("authority-userinfo", "user information", authority="target.test@evil.test"),
    one("authority-path", "a path in the authority", authority="target.test/smuggled"),
    one("authority-crlf", "line ends in the authority", authority="target.test\r\nX: y"),
    one("authority-space", "two words", authority="target.test evil.test"),
    one("authority-empty", "an empty authority", authority=""),
    one("authority-port", "another port", authority="target.test:81"),
    Sequence("authority-case", "case and the last dot change nothing", opening(head(1, get(authority="Target.TEST."))), (PLAIN,)),
    Sequence("connect", "a tunnel", opening(head(1, [(":method", "CONNECT"), (":authority", "other.test:80")]))),
    Sequence("connect-full", "a tunnel with scheme and path", opening(head(1, get(method="CONNECT")))),
    Sequence("connect-extended", "a tunnel for websocket, not offered", opening(head(1, get("/", (":protocol", "websocket"), method="CONNECT")))),
    one("upgrade-websocket", "an upgrade of HTTP/1", ("connection", "upgrade"), ("upgrade", "websocket")),
    Sequence("cookies-in-pieces", "cookies in pieces become one", opening(head(1, get("/", ("cookie", "a=b"), ("cookie", "c=d")))), (PLAIN,)),
    one("expect-odd", "an expectation that nobody knows", ("expect", "200-maybe")),
    # trailers
    Sequence("trailers", "trailers go on or not, framing never", opening(head(1, POST, end=False), data(1, b"abc", end=False),
             head(1, [("x", "y")])), (ABC,), optional=True),
    Sequence("trailers-framing", "framing in trailers", opening(head(1, POST, end=False), data(1, b"abc", end=False),
             head(1, [("content-length", "30"), ("transfer-encoding", "chunked")])), (ABC,), optional=True,
             without=("transfer-encoding",)),
    Sequence("trailers-crlf", "line ends in trailers", opening(head(1, POST, end=False), data(1, b"abc", end=False),
             head(1, [("x", b"y\r\n\r\n" + SMUGGLED)]))),
    Sequence("trailers-not-last", "trailers that do not end the stream", opening(head(1, POST, end=False), data(1, b"abc", end=False),
             head(1, [("x", "y")], end=False), data(1, SMUGGLED))),
    # frames
    Sequence("continuation", "a head in two frames", opening(
        frame(HEADERS, END_STREAM, 1, pack(get())[:20]), frame(CONTINUATION, END_HEADERS, 1, pack(get())[20:])), (PLAIN,)),
    Sequence("continuation-interleaved", "another stream within a head", opening(
        frame(HEADERS, END_STREAM, 1, pack(get())[:20]), head(3, get("/smuggled")), frame(CONTINUATION, END_HEADERS, 1, pack(get())[20:]))),
    Sequence("continuation-data", "DATA within a head", opening(
        frame(HEADERS, 0, 1, pack(POST)[:20]), data(1, b"abc"), frame(CONTINUATION, END_HEADERS, 1, pack(POST)[20:]))),
    Sequence("continuation-other-stream", "a head that goes on on another stream", opening(
        frame(HEADERS, END_STREAM, 1, pack(get())[:20]), frame(CONTINUATION, END_HEADERS, 3, pack(get())[20:]))),
    Sequence("continuation-alone", "a CONTINUATION that continues nothing", opening(frame(CONTINUATION, END_HEADERS, 1, pack(get())))),
    Sequence("continuation-never", "a head that never ends", opening(frame(HEADERS, END_STREAM, 1, pack(get())))),
    Sequence("padding-data", "padding is no data", opening(head(1, POST, end=False), frame(DATA, END_STREAM | PADDED, 1, b"\x05abc\0\0\0\0\0")), (ABC,)),
    Sequence("padding-too-long-data", "padding longer than its frame", opening(head(1, POST, end=False), frame(DATA, END_STREAM | PADDED, 1, b"\xffabc"))),
    Sequence("padding-too-long-head", "padding longer than the head", opening(frame(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, b"\xff" + pack(get())))),
    Sequence("padding-head", "a head with padding", opening(frame(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, b"\x03" + pack(get()) + bytes(3))), (PLAIN,)),
    Sequence("priority-on-itself", "a stream that depends on itself", opening(
        frame(HEADERS, END_STREAM | END_HEADERS | PRIORITIZED, 1, b"\0\0\0\1\x10" + pack(get()))), (PLAIN,), optional=True),
    Sequence("data-stream-0", "DATA on no stream", opening(data(0, b"abc"))),
    Sequence("head-stream-0", "a head on no stream", opening(head(0, get()))),
    Sequence("even-stream", "a stream that only a server may open", opening(head(2, get()))),
    Sequence("stream-backwards", "a stream below one that was opened", opening(head(5, get()), head(3, get("/smuggled"))), (PLAIN,), optional=True),
    Sequence("stream-reused", "a second head on a stream that ended", opening(head(1, get()), head(1, get("/smuggled"))), (PLAIN,), optional=True),
    Sequence("data-after-end", "DATA behind the end", opening(head(1, POST, end=False), data(1, b"abc"), data(1, SMUGGLED)), (ABC,), optional=True),
    Sequence("data-after-reset", "DATA behind a reset", opening(head(1, POST, end=False), reset(1), data(1, SMUGGLED))),
    Sequence("data-before-head", "DATA on a stream that nobody opened", opening(data(1, SMUGGLED))),
    Sequence("cut-body", "a body that never ends: nothing leaves", opening(head(1, POST, end=False), data(1, b"abc", end=False))),
    Sequence("reset-body", "a body that is reset: nothing leaves", opening(head(1, POST, end=False), data(1, b"abc", end=False), reset(1))),
    Sequence("two-streams", "two requests at once, each asked about", opening(
        head(1, POST, end=False), head(3, get("/second")), data(1, b"abc")), (ABC, ("GET", "/second", "target.test", b""))),
    Sequence("preface-h1", "HTTP/1 behind the preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SMUGGLED),
    Sequence("frame-too-large", "a frame larger than allowed", opening(head(1, POST, end=False), frame(DATA, END_STREAM, 1, bytes(16385)))),
    Sequence("table-index-zero", "an index of nothing", opening(frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x80" + pack(get())))),
    Sequence("table-index-beyond", "an index beyond the table", opening(frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\xff\xff\xff\x7f" + pack(get())))),
    Sequence("string-beyond", "a string longer than its block", opening(frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\0\x7fabc"))),
    Sequence("huffman-bad", "a Huffman string with wrong padding", opening(frame(HEADERS, END_STREAM | END_HEADERS, 1, pack(get()) + b"\0\x01x\x81\x00"))),
)  # fmt: skip
