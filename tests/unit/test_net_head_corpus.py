"""Heads: one meaning or a refusal. The corpus is of messages that two parsers are known to read in two ways."""

import pytest

from interlock.boundary.net.framing import WireError, read_answer_head, read_request_head
from interlock.boundary.net.heads import (
    HeadRefusal,
    persists,
    read_answer,
    read_request,
    read_request2,
    read_trailers,
)
from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, RequestHead

LIMITS = NetLimits()
PLACE = Place(host="far.test", port=80, tls=False)
SECURE = Place(host="far.test", port=443, tls=True)
BARE = Place(host="192.0.2.7", port=80, tls=False, address="192.0.2.7")
SHOWN = Place(host="127.0.0.1", port=5432, tls=False, published=True)


def read(block: bytes, place: Place = PLACE) -> RequestHead | HeadRefusal | str:
    try:
        raw = read_request_head(block)
    except WireError as error:
        return error.reason
    return read_request(raw.method, raw.target, raw.minor, raw.fields, place, LIMITS)


def head(block: bytes, place: Place = PLACE) -> RequestHead:
    found = read(block, place)
    assert isinstance(found, RequestHead), found
    return found


def get(target: str = "/", *fields: str, host: str = "far.test", place: Place = PLACE) -> RequestHead:
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", *fields]
    return head("\r\n".join(lines).encode() + b"\r\n\r\n", place)


SMUGGLED = {
    "cl and te": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
    "te and cl": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n",
    "two cl": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
    "same cl twice": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n",
    "cl list": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 4, 4\r\n\r\n",
    "cl plus": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: +4\r\n\r\n",
    "cl minus": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: -4\r\n\r\n",
    "cl hex": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 0x4\r\n\r\n",
    "cl underscore": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 1_0\r\n\r\n",
    "cl empty": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: \r\n\r\n",
    "cl huge": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 18446744073709551620\r\n\r\n",
    "cl space": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 1 0\r\n\r\n",
    "cl in name space": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length : 4\r\n\r\n",
    "cl leading space": b"POST / HTTP/1.1\r\nHost: far.test\r\n Content-Length: 4\r\n\r\n",
    "cl nul": b"POST / HTTP/1.1\r\nHost: far.test\r\nContent-Length: 4\x00\r\n\r\n",
    "te twice": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "te list": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
    "te identity": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: identity\r\n\r\n",
    "te gzip": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "te not last": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
    "te odd": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: xchunked\r\n\r\n",
    "te quoted": b'POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: "chunked"\r\n\r\n',
    "te parameter": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: chunked;a=b\r\n\r\n",
    "te vertical tab": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
    "te name space": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding : chunked\r\n\r\n",
    "te name tab": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding\t: chunked\r\n\r\n",
    "te folded": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
    "te empty": b"POST / HTTP/1.1\r\nHost: far.test\r\nTransfer-Encoding: \r\n\r\n",
    "te in 1.0": b"POST / HTTP/1.0\r\nHost: far.test\r\nTransfer-Encoding: chunked\r\n\r\n",
    "connection drops cl": b"POST / HTTP/1.1\r\nHost: far.test\r\nConnection: content-length\r\nContent-Length: 4\r\n\r\n",
    "connection drops te": b"POST / HTTP/1.1\r\nHost: far.test\r\nConnection: x, Transfer-Encoding\r\n\r\n",
    "connection drops host": b"GET / HTTP/1.1\r\nHost: far.test\r\nConnection: host\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: far.test\r\nHost: far.test\r\n\r\n",
    "two hosts, one odd": b"GET / HTTP/1.1\r\nHost: far.test\r\nhost: evil.test\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\nX: y\r\n\r\n",
    "other host": b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "other port": b"GET / HTTP/1.1\r\nHost: far.test:8080\r\n\r\n",
    "host list": b"GET / HTTP/1.1\r\nHost: far.test, evil.test\r\n\r\n",
    "host user": b"GET / HTTP/1.1\r\nHost: far.test@evil.test\r\n\r\n",
    "host path": b"GET / HTTP/1.1\r\nHost: far.test/evil\r\n\r\n",
    "host nul": b"GET / HTTP/1.1\r\nHost: far.test\x00.evil\r\n\r\n",
    "host percent": b"GET / HTTP/1.1\r\nHost: far%2etest\r\n\r\n",
    "host unicode": "GET / HTTP/1.1\r\nHost: fär.test\r\n\r\n".encode(),
    "host empty": b"GET / HTTP/1.1\r\nHost:\r\n\r\n",
    "host folded": b"GET / HTTP/1.1\r\nHost: far.test\r\n .evil.test\r\n\r\n",
    "fold": b"GET / HTTP/1.1\r\nHost: far.test\r\nX: a\r\n b\r\n\r\n",
    "bare lf": b"GET / HTTP/1.1\r\nHost: far.test\nX: y\r\n\r\n",
    "bare lf in line": b"GET / HTTP/1.1\nHost: far.test\r\n\r\n",
    "bare cr": b"GET / HTTP/1.1\r\nHost: far.test\rX: y\r\n\r\n",
    "bare cr in value": b"GET / HTTP/1.1\r\nHost: far.test\r\nX: a\rb\r\n\r\n",
    "nul in value": b"GET / HTTP/1.1\r\nHost: far.test\r\nX: a\x00b\r\n\r\n",
    "nul in name": b"GET / HTTP/1.1\r\nHost: far.test\r\nX\x00: a\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost: far.test\r\nX\r\n\r\n",
    "empty name": b"GET / HTTP/1.1\r\nHost: far.test\r\n: a\r\n\r\n",
    "odd name": b"GET / HTTP/1.1\r\nHost: far.test\r\nX(: a\r\n\r\n",
    "first line spaces": b"GET  / HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "first line tab": b"GET\t/ HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "target space": b"GET /a b HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "target nul": b"GET /a\x00 HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "target bytes": b"GET /\xc3\xa4 HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "fragment": b"GET /a#b HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "backslash": b"GET /a\\..\\b HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "broken escape": b"GET /%zz HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "escaped nul": b"GET /a%00b HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "no slash": b"GET a HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "star with get": b"GET * HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "http/1.2": b"GET / HTTP/1.2\r\nHost: far.test\r\n\r\n",
    "http/2 in line": b"GET / HTTP/2.0\r\nHost: far.test\r\n\r\n",
    "http/0.9": b"GET /\r\n\r\n",
    "lower http": b"GET / http/1.1\r\nHost: far.test\r\n\r\n",
    "method bytes": b"G\xc4T / HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "absolute with user": b"GET http://a@far.test/ HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "absolute https": b"GET https://far.test/ HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "absolute ftp": b"GET ftp://far.test/ HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "connect path": b"CONNECT / HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "connect no port": b"CONNECT far.test HTTP/1.1\r\nHost: far.test\r\n\r\n",
    "connect host differs": b"CONNECT far.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
    "connect body": b"CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\nContent-Length: 3\r\n\r\n",
    "expect odd": b"POST / HTTP/1.1\r\nHost: far.test\r\nExpect: 200-ok\r\nContent-Length: 3\r\n\r\n",
    "expect twice": b"POST / HTTP/1.1\r\nHost: far.test\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n\r\n",
    "websocket with body": b"GET / HTTP/1.1\r\nHost: far.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\n",
    "websocket and another": b"GET / HTTP/1.1\r\nHost: far.test\r\nConnection: upgrade\r\nUpgrade: websocket, h2c\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_message_with_two_meanings_is_refused(name: str) -> None:
    assert not isinstance(read(SMUGGLED[name]), RequestHead)


def test_the_corpus_is_large_enough() -> None:
    assert len(SMUGGLED) >= 50


@pytest.mark.parametrize(
    "host",
    [
        "0x7f.1",
        "017700000001",
        "2130706433",
        "127.1",
        "127.0.0.01",
        "0x7f000001",
        "[::1%25lo]",
        "[::1%lo]",
        "[::ffff:1.2.3.4",
        "::1",
        "a..b",
        ".a",
        "a b",
        "a:0",
        "a:65536",
        "a:+80",
        "a:8 0",
        "a:",
        "xn--a b",
        "a.1",
        "*",
    ],
)
def test_an_odd_host_is_refused(host: str) -> None:
    assert isinstance(read(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), BARE), HeadRefusal)


@pytest.mark.parametrize(
    ("target", "sent"),
    [
        ("/", "/"),
        ("/a/../b", "/b"),
        ("/a/./b/.", "/a/b/"),
        ("/../../etc/passwd", "/etc/passwd"),
        ("/a/%2e%2e/b", "/b"),
        ("/a/%2E./b", "/b"),
        ("/a/.%2e/%2e/b/..", "/"),
        ("/a%2fb", "/a%2fb"),
        ("/a//b", "/a//b"),
        ("/a?x=/../y", "/a?x=/../y"),
        ("/...", "/..."),
        ("/a?%zz={1}|\"", "/a?%zz={1}|\""),
        ("//evil.test/", "//evil.test/"),
    ],
)  # fmt: skip
def test_dot_segments_are_removed(target: str, sent: str) -> None:
    assert get(target).target == sent


def test_fields_for_one_hop_are_taken_out() -> None:
    found = get(
        "/",
        "Connection: keep-alive, X-Own",
        "X-Own: 1",
        "X-Kept: 2",
        "Proxy-Authorization: Basic xyz",
        "Proxy-Connection: keep-alive",
        "Keep-Alive: 5",
        "TE: trailers",
        "Max-Forwards: 3",
        "HTTP2-Settings: AAAA",
        "Upgrade: h2c",
    )
    assert found.headers == ((b"x-kept", b"2"),)
    assert found.upgrade == ""


def test_the_host_is_canonical() -> None:
    assert get(host="FAR.Test.").authority_host == "far.test"
    assert get(host="far.test:80").port == 80
    v6 = Place(host="2001:db8::1", port=8080, tls=False, address="2001:db8::1")
    assert get(host="[2001:0DB8::0001]:8080", place=v6).authority_host == "2001:db8::1"


def test_a_name_for_an_address_is_left_to_the_dial() -> None:
    assert get(host="some.test", place=BARE).authority_host == "some.test"
    assert isinstance(read(b"GET / HTTP/1.1\r\nHost: some.test:81\r\n\r\n", BARE), HeadRefusal)


def test_under_tls_the_host_is_the_server_name() -> None:
    found = read(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", SECURE)
    assert isinstance(found, HeadRefusal)
    assert found.status == 421
    assert get(place=SECURE).scheme == "https"


def test_a_published_port_takes_any_host_and_no_url() -> None:
    found = get(host="localhost:11434", place=SHOWN)
    assert (found.authority_host, found.port) == ("127.0.0.1", 5432)
    assert isinstance(read(b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", SHOWN), HeadRefusal)


def test_absolute_form_and_connect_name_their_own_destination() -> None:
    found = get("http://other.test:8080/a/../b?c", host="far.test")
    assert (found.authority_host, found.port, found.target) == ("other.test", 8080, "/b?c")
    assert get("http://other.test?c").target == "/?c"
    tunnel = head(b"CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n")
    assert (tunnel.method, tunnel.authority_host, tunnel.port, tunnel.target) == (
        "CONNECT",
        "other.test",
        443,
        "",
    )
    assert isinstance(
        read(b"GET https://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", SECURE), HeadRefusal
    )


def test_options_star_and_old_versions() -> None:
    assert head(b"OPTIONS * HTTP/1.1\r\nHost: far.test\r\n\r\n").target == "*"
    old = head(b"GET / HTTP/1.0\r\n\r\n")
    assert old.authority_host == "far.test"
    assert persists(1, ())
    assert not persists(0, ())
    assert persists(0, ((b"Connection", b"Keep-Alive"),))
    assert not persists(1, ((b"connection", b"x, Close"),))


def test_a_websocket_is_seen() -> None:
    assert get("/", "Connection: keep-alive, Upgrade", "Upgrade: WebSocket").upgrade == "websocket"
    assert get("/", "Upgrade: websocket").upgrade == ""


def test_continue_is_expected_for_a_body_alone() -> None:
    line = b"POST / HTTP/1.1\r\nHost: far.test\r\nExpect: 100-Continue\r\n"
    assert head(line + b"Content-Length: 3\r\n\r\n").expects_continue
    assert head(line + b"Transfer-Encoding: Chunked\r\n\r\n").length is None
    assert not head(line + b"\r\n").expects_continue


def test_too_many_fields_are_refused() -> None:
    found = read(
        b"GET / HTTP/1.1\r\nHost: far.test\r\n" + b"".join(b"x%d: 1\r\n" % n for n in range(501)) + b"\r\n"
    )
    assert isinstance(found, HeadRefusal)
    assert found.status == 431


def h2(*fields: tuple[bytes, bytes], place: Place = SECURE) -> RequestHead | HeadRefusal:
    return read_request2(fields, place, LIMITS)


PSEUDO = (
    (b":method", b"POST"),
    (b":scheme", b"https"),
    (b":authority", b"far.test"),
    (b":path", b"/a/../b"),
)


def test_an_http2_head_has_the_same_meaning() -> None:
    found = h2(*PSEUDO, (b"te", b"trailers"), (b"content-length", b"4"), (b"cookie", b"a"))
    assert isinstance(found, RequestHead)
    assert (found.target, found.length, found.protocol) == ("/b", 4, "h2")
    assert found.headers == ((b"cookie", b"a"), (b"te", b"trailers"))


@pytest.mark.parametrize(
    "extra",
    [
        (b"connection", b"close"),
        (b"transfer-encoding", b"chunked"),
        (b"te", b"gzip"),
        (b"host", b"evil.test"),
        (b":path", b"/c"),
        (b":odd", b"c"),
        (b"x y", b"c"),
        (b"x", b"a\r\nb: c"),
        (b"x", b"a\x00"),
        (b"Upper", b"a"),
        (b"content-length", b"1,2"),
        (b"content_length", b"1"),
        (b"transfer_encoding", b"chunked"),
    ],
)
def test_an_http2_head_with_two_meanings_is_refused(extra: tuple[bytes, bytes]) -> None:
    assert isinstance(h2(*PSEUDO, extra), HeadRefusal)


@pytest.mark.parametrize(
    "fields",
    [
        PSEUDO[1:],
        PSEUDO[:3],
        (PSEUDO[0], PSEUDO[1], PSEUDO[3]),
        ((b":method", b"CONNECT"), (b":authority", b"far.test:443")),
        (PSEUDO[0], (b":scheme", b"http"), *PSEUDO[2:]),
        (*PSEUDO[:2], (b":authority", b"evil.test"), PSEUDO[3]),
        (*PSEUDO[:3], (b":path", b"https://far.test/")),
        (*PSEUDO[:3], (b":path", b"")),
        ((b"x", b"1"), *PSEUDO),
    ],
)
def test_an_http2_head_without_its_parts_is_refused(fields: tuple[tuple[bytes, bytes], ...]) -> None:
    assert isinstance(h2(*fields), HeadRefusal)


def answer(block: bytes, method: str = "GET", limits: NetLimits = LIMITS) -> AnswerHead | HeadRefusal | str:
    try:
        raw = read_answer_head(block)
    except WireError as error:
        return f"{error.status} {error.reason}"
    return read_answer(method, raw.status, raw.minor, raw.fields, limits)


@pytest.mark.parametrize(
    "block",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 999 OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
    ],
)
def test_an_answer_with_two_meanings_is_refused(block: bytes) -> None:
    assert not isinstance(answer(block), AnswerHead)


def test_what_an_answer_says_of_its_body() -> None:
    sized = b"HTTP/1.1 %d X\r\nContent-Length: 7\r\nAlt-Svc: h3\r\nConnection: close, x-a\r\nX-A: 1\r\nX-B: 2\r\n\r\n"
    assert answer(sized % 200) == AnswerHead(status=200, headers=((b"x-b", b"2"),), length=7)
    told = ((b"x-b", b"2"), (b"content-length", b"7"))
    assert answer(sized % 200, "HEAD") == AnswerHead(status=200, headers=told, length=0)
    assert answer(sized % 304) == AnswerHead(status=304, headers=told, length=0)
    assert answer(sized % 204) == AnswerHead(status=204, headers=((b"x-b", b"2"),), length=0)
    assert answer(b"HTTP/1.1 200 \r\n\r\n") == AnswerHead(status=200, headers=(), length=None)
    assert answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") == AnswerHead(
        status=200, headers=(), length=None
    )


def test_trailers_do_not_frame_route_or_authorise() -> None:
    fields = ((b"X-Sum", b"1"), (b"Content-Length", b"9"), (b"Host", b"x"), (b"Authorization", b"x"))
    assert read_trailers(fields, LIMITS) == ((b"x-sum", b"1"),)
    assert read_trailers(((b"x", b"a\r\nb"),), LIMITS) is None


def test_a_twin_is_refused_though_an_answer_had_it_first() -> None:
    assert read_trailers(((b"Content_Length", b"9"), (b"x-sum", b"1")), LIMITS) == ((b"x-sum", b"1"),)
    fields = b"HTTP/1.1 200 OK\r\nConnection_: close\r\nX_Own: 1\r\n\r\n"
    assert answer(fields) == AnswerHead(status=200, headers=((b"x_own", b"1"),))
    assert isinstance(read(b"GET / HTTP/1.1\r\nHost: far.test\r\nConnection_: close\r\n\r\n"), HeadRefusal)
