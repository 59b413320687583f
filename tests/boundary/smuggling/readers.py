"""Readers that share no code with the proxy: what a far side makes of the bytes that it was sent.

A message has one meaning if the grammar of RFC 9112 holds to the letter, and three independent readers (h11, the
standard library, and our own plain one here) find the same request in it with nothing left over.
"""

import hashlib
import io
import re
from dataclasses import dataclass
from http.client import parse_headers

import h11

from interlock.model.requests import NetRequest

_HEAD = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (/[\x21-\x7e]*|\*) HTTP/1\.1\r\n"
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: ?(?:[\t\x20-\x7e\x80-\xff]*)\r\n)*)\r\n"
)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")
_FIELD = re.compile(rb"([^:]+): ?([^\r]*)\r\n")
_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade", b"http2-settings", b"trailer",
     b"proxy-authorization", b"expect")
) - {b"trailer"}  # fmt: skip


@dataclass(frozen=True)
class Read:
    """A request as a far side reads it. `fields` are in lower case; `size` is how many bytes it took."""

    method: bytes
    target: bytes
    host: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    body: bytes
    size: int


def read_all(raw: bytes) -> list[Read]:
    """Read every request of a connection. Raises: AssertionError, if anything has not exactly one meaning."""
    found: list[Read] = []
    at = 0
    while at < len(raw):
        mine = _strictly(raw, at)
        _agree(mine, raw[at : at + mine.size])
        found.append(mine)
        at += mine.size
    return found


def _strictly(raw: bytes, at: int) -> Read:
    head = _HEAD.match(raw, at)
    assert head is not None, f"no well-formed head at {at}: {raw[at : at + 200]!r}"
    fields = tuple((name.lower(), value.strip(b" \t")) for name, value in _FIELD.findall(head[3]))
    named = [name for name, _ in fields]
    values = dict(fields)
    for single in (b"host", b"content-length", b"transfer-encoding"):
        assert named.count(single) <= 1, f"{single!r} stands twice"
    assert b"host" in values, "no host"
    assert not (b"content-length" in values and b"transfer-encoding" in values), "framed twice"
    hop = {name for name in named if name in _HOP}
    assert not hop or (hop <= {b"connection", b"upgrade"} and values.get(b"upgrade") == b"websocket"), hop
    start = head.end()
    if b"transfer-encoding" in values:
        assert values[b"transfer-encoding"] == b"chunked"
        body, end = _dechunk(raw, start)
    else:
        text = values.get(b"content-length", b"0")
        assert re.fullmatch(rb"0|[1-9][0-9]*", text), f"content-length {text!r}"
        end = start + int(text)
        assert end <= len(raw), "the body is cut off"
        body = raw[start:end]
    return Read(method=head[1], target=head[2], host=values[b"host"], fields=fields, body=body, size=end - at)


def _dechunk(raw: bytes, at: int) -> tuple[bytes, int]:
    body = b""
    while True:
        line = _CHUNK.match(raw, at)
        assert line is not None, "a chunk's size line is odd"
        size = int(line[1], 16)
        at = line.end()
        if size == 0:
            break
        assert raw[at + size : at + size + 2] == b"\r\n", "a chunk does not end in CRLF"
        body += raw[at : at + size]
        at += size + 2
    while raw[at : at + 2] != b"\r\n":
        field = _FIELD.match(raw, at)
        assert field is not None, "trailers are odd"
        assert field[1].lower() not in (b"content-length", b"transfer-encoding", b"host"), "a trailer frames"
        at = field.end()
    return body, at + 2


def _agree(mine: Read, raw: bytes) -> None:
    """Hold h11 and the standard library against what was read."""
    side = h11.Connection(h11.SERVER)
    side.receive_data(raw)
    body = b""
    request: h11.Request | None = None
    while True:
        event = side.next_event()
        if isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            break
        else:
            raise AssertionError(f"h11 waits for more: {event!r}")
    assert request is not None
    assert not side.trailing_data[0], "h11 has bytes left"
    assert (request.method, request.target, body) == (mine.method, mine.target, mine.body)
    assert tuple((bytes(name), bytes(value)) for name, value in request.headers) == mine.fields
    stream = io.BytesIO(raw)
    assert stream.readline().split() == [mine.method, mine.target, b"HTTP/1.1"]
    theirs = parse_headers(stream)
    assert not theirs.defects
    assert [name.lower().encode() for name in theirs] == [name for name, _ in mine.fields]
    assert theirs.get_all("host") == [mine.host.decode("ascii")]


def agrees(read: Read, asked: NetRequest, place: str) -> None:
    """Hold what a far side read against what the gate was asked, and where the connection led."""
    target = asked.path + (f"?{asked.query}" if asked.query else "")
    assert read.method.decode() == asked.method
    assert read.target.decode() in (target, asked.path + "?")
    host = f"[{asked.host}]" if ":" in asked.host else asked.host
    default = {"http": 80, "ws": 80, "https": 443, "wss": 443}[asked.scheme]
    assert read.host.decode() == (host if asked.port == default else f"{host}:{asked.port}")
    assert place == f"{host}:{asked.port}"
    size = asked.body_size_bytes
    assert len(read.body) == size
    assert asked.body_digest == (hashlib.sha256(read.body).hexdigest() if size else "")
    told = {(name, value) for name, value in asked.headers}
    cookies = "; ".join(value for name, value in asked.headers if name == "cookie")
    for name, value in read.fields:
        if name in (b"host", b"content-length", b"transfer-encoding"):
            continue
        if read.fields and asked.scheme in ("ws", "wss") and name in (b"connection", b"upgrade"):
            continue
        if name.startswith(b"sec-websocket-"):
            continue  # the boundary's own offer stands in for the agent's
        text = (name.decode(), value.decode("latin-1"))
        assert text in told or (name == b"cookie" and text[1] == cookies) or _hidden(text, told), text


def _hidden(field: tuple[str, str], told: set[tuple[str, str]]) -> bool:
    digest = "sha256:" + hashlib.sha256(field[1].encode("latin-1")).hexdigest()[:16]
    return any(name == field[0] and digest in value for name, value in told)


def read_answers(raw: bytes, methods: tuple[bytes, ...], *, ended: bool) -> list[tuple[int, bytes]]:
    """Read what an agent was answered with h11, in order: each final status and its body.

    Takes: `ended`, whether the connection was closed cleanly after it.
    Raises: AssertionError, h11.RemoteProtocolError, if they are not whole, well-formed answers.
    """
    found = []
    left = raw
    for method in methods:
        if not left:
            break
        answer, left = read_one(left, method, ended=ended)
        found.append(answer)
    assert not left, f"bytes after the last answer: {left[:100]!r}"
    return found


def read_one(raw: bytes, method: bytes = b"GET", *, ended: bool = True) -> tuple[tuple[int, bytes], bytes]:
    """Read one final answer. Returns: its status and body, and what is left."""
    side = h11.Connection(h11.CLIENT)
    side.send(h11.Request(method=method, target="/", headers=[("host", "x"), ("content-length", "0")]))
    side.send(h11.EndOfMessage())
    side.receive_data(raw)
    if ended:
        side.receive_data(b"")
    status, body = 0, b""
    while True:
        event = side.next_event()
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            return (status, body), side.trailing_data[0]
        elif not isinstance(event, h11.InformationalResponse):
            raise AssertionError(f"an answer is not whole: {event!r}")
