"""Whatever comes: a head that is taken can be written so that another parser reads the same, and bodies keep their frame."""

import h11
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.boundary.net.framing import Chunked, Measured, WireError, read_request_head
from interlock.boundary.net.heads import HeadRefusal, read_answer, read_request, read_request2
from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, RequestHead
from interlock.boundary.net.targets import read_authority, read_origin

LIMITS = NetLimits()
PLACE = Place(host="far.test", port=80, tls=False)
ODD = st.sampled_from(
    [b"\r", b"\n", b"\r\n", b"\x00", b" ", b"\t", b":", b",", b"chunked", b"Host", b"Transfer-Encoding",
     b"Content-Length", b"Connection", b"4", b"close", b"far.test", b"/", b"%2e", b"..", b"\xff", b"GET", b"HTTP/1.1"]
)  # fmt: skip
SOUP = st.lists(ODD | st.binary(max_size=3), max_size=20).map(b"".join)


@few_and_many(80, 400, SOUP, SOUP, SOUP)
def test_what_is_taken_reads_the_same_elsewhere(target: bytes, fields: bytes, value: bytes) -> None:
    block = b"GET /" + target + b" HTTP/1.1\r\nHost: far.test\r\n" + fields + b"\r\nX: " + value + b"\r\n\r\n"
    try:
        raw = read_request_head(block)
    except WireError:
        return
    head = read_request(raw.method, raw.target, raw.minor, raw.fields, PLACE, LIMITS)
    if isinstance(head, HeadRefusal):
        return
    lines = [f"{head.method} {head.target} HTTP/1.1\r\nhost: {head.authority_host}\r\n".encode()]
    lines += [b"%b: %b\r\n" % field for field in head.headers]
    reader = h11.Connection(h11.SERVER)
    reader.receive_data(b"".join(lines) + b"\r\n")
    event = reader.next_event()
    assert isinstance(event, h11.Request)
    assert event.target == head.target.encode()
    assert tuple((bytes(n), bytes(v)) for n, v in event.headers) == ((b"host", b"far.test"), *head.headers)
    assert reader.trailing_data == (b"", False)


NAMES = st.sampled_from([b"host", b"content-length", b"transfer-encoding", b"connection", b"te", b"x", b":path",
    b":method", b":scheme", b":authority", b"upgrade", b"expect"]) | SOUP  # fmt: skip
FIELDS = st.lists(st.tuples(NAMES, SOUP), max_size=8).map(tuple)


@few_and_many(80, 400, SOUP, SOUP, st.integers(-1, 3), FIELDS)
def test_any_fields_give_a_clean_head_or_a_refusal(
    method: bytes, target: bytes, minor: int, fields: tuple[tuple[bytes, bytes], ...]
) -> None:
    found = [
        read_request(method, target, minor, fields, PLACE, LIMITS),
        read_request2(fields, PLACE, LIMITS),
        read_answer("GET", 200, minor, fields, LIMITS),
    ]
    for head in found:
        if isinstance(head, RequestHead | AnswerHead):
            for name, value in head.headers:
                assert name == name.lower()
                assert not set(name + value) & set(b"\r\n\x00")
                assert name not in (b"host", b"transfer-encoding", b"connection")
        if isinstance(head, RequestHead):
            assert head.target in {"*", ""} or read_origin(head.target) == head.target


@given(st.text(max_size=30))
def test_an_authority_is_its_own_canonical_form(text: str) -> None:
    found = read_authority(text, 80)
    if found is not None:
        host, port = found
        assert read_authority(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", 0) == found


@given(st.lists(st.sampled_from(["/", ".", "..", "%2e", "a", "%2F", "?", "b"]), max_size=12).map("".join))
def test_removing_dots_leaves_none(target: str) -> None:
    found = read_origin("/" + target)
    assert found is not None
    assert read_origin(found) == found
    segments = found.partition("?")[0].lower().replace("%2e", ".").split("/")
    assert "." not in segments
    assert ".." not in segments


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.data(), st.binary(max_size=20))
def test_chunks_come_back_however_they_are_cut(parts: list[bytes], data: st.DataObject, after: bytes) -> None:
    raw = b"".join(b"%X;e=1\r\n%b\r\n" % (len(p), p) for p in parts) + b"0\r\nX-T: 1\r\n\r\n" + after
    frame = Chunked(1000)
    found: list[bytes] = []
    buffer, rest = b"", raw
    while not frame.whole:
        size = data.draw(st.integers(1, 7))
        buffer, rest = buffer + rest[:size], rest[size:]
        pieces, taken = frame.take(buffer)
        found += pieces
        buffer = buffer[taken:]
    assert b"".join(found) == b"".join(parts)
    assert buffer + rest == after
    assert frame.trailers == ((b"X-T", b"1"),)


@settings(max_examples=300, deadline=None)
@given(SOUP)
def test_broken_chunks_never_pass_for_whole(soup: bytes) -> None:
    frame = Chunked(1000)
    try:
        parts, taken = frame.take(soup)
    except WireError:
        return
    reader = h11.Connection(h11.SERVER)
    reader.receive_data(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + soup[:taken])
    if frame.whole:
        read = b""
        event = reader.next_event()
        while not isinstance(event, h11.EndOfMessage):
            assert not isinstance(event, type(h11.NEED_DATA)), soup
            if isinstance(event, h11.Data):
                read += bytes(event.data)
            event = reader.next_event()
        assert read == b"".join(parts)


@given(st.binary(max_size=50), st.integers(0, 60))
def test_a_measured_body_takes_no_more_than_its_own(raw: bytes, size: int) -> None:
    frame = Measured(size)
    parts, taken = frame.take(raw)
    assert taken == min(size, len(raw))
    assert b"".join(parts) == raw[:taken]
    assert frame.whole == (len(raw) >= size)
