"""What a client's HTTP request must be before anything of it is read, and where `--upstream` and `--listen` may lead."""

import json

import pytest

from interlock.boundary.mcp.messages import read
from interlock.boundary.net.mcp_requests import check_message, headers_of
from interlock.boundary.net.sides import RequestHead
from interlock.mcp.http_door import check_head, door, read_listen
from interlock.mcp.http_far import endpoint_of, header_values
from interlock.model.errors import InputError

DOOR = door(8931, "/api/mcp", ["box.test"], ["https://app.test"])
GOOD = {
    b"content-type": b"application/json; charset=utf-8",
    b"accept": b"application/json, text/event-stream",
}


def turned(
    method: str = "POST", host: str = "127.0.0.1", port: int = 8931, target: str = "/mcp", **more: bytes
) -> int:
    headers = {**GOOD, **{name.replace("_", "-").encode(): value for name, value in more.items()}}
    head = RequestHead(
        method=method,
        scheme="http",
        authority_host=host,
        port=port,
        target=target,
        headers=tuple(headers.items()),
        length=0,
    )
    found = check_head(head, headers, DOOR)
    return 0 if found is None else found.status


def test_who_may_come_in() -> None:
    assert turned() == 0
    assert turned(host="localhost") == 0
    assert turned(host="::1", target="/api/mcp?x=1") == 0
    assert turned(host="box.test") == 0
    assert turned(host="evil.test") == 421, "DNS rebinding: the page's own name leads to this machine"
    assert turned(port=80) == 421
    assert turned(origin=b"http://localhost:8931") == 0
    assert turned(origin=b"https://app.test") == 0
    assert turned(origin=b"http://evil.test") == 403
    assert turned(origin=b"null") == 403
    assert turned(origin=b"http://localhost:9999") == 403
    assert turned("OPTIONS", origin=b"https://app.test") == 0
    assert turned("OPTIONS") == 405
    assert turned("PUT") == 405
    assert turned(target="/.well-known/oauth-protected-resource") == 404


def test_what_it_may_be() -> None:
    assert turned(content_type=b"text/plain") == 415, "a page may send this one without being asked"
    assert turned(content_encoding=b"gzip") == 415
    assert turned(accept=b"application/json") == 406
    assert turned(accept=b"*/*") == 0
    assert turned(mcp_protocol_version=b"2025-06-18") == 0
    assert turned(mcp_protocol_version=b"2031-01-01") == 400


def call(name: str = "send", **meta: object) -> bytes:
    params = {"name": name, "arguments": {"to": "a", "n": 3}, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def test_headers_say_what_the_message_says() -> None:
    modern = read(call(**{"io.modelcontextprotocol/protocolVersion": "2026-07-28"}))
    own = headers_of(modern)
    assert own == {
        b"mcp-protocol-version": b"2026-07-28",
        b"mcp-method": b"tools/call",
        b"mcp-name": b"send",
    }
    assert not check_message(own, modern)
    assert "Mcp-Name" in check_message({**own, b"mcp-name": b"search"}, modern)
    assert "Mcp-Method" in check_message({**own, b"mcp-method": b"tools/list"}, modern)
    assert "revision" in check_message({**own, b"mcp-protocol-version": b"2025-11-25"}, modern)
    assert not check_message({**own, b"mcp-param-n": b"3"}, modern)
    assert "mcp-param-to" in check_message({**own, b"mcp-param-to": b"b"}, modern)
    assert headers_of(read(call())) == {}
    named = read(call("sénd", **{"io.modelcontextprotocol/protocolVersion": "2026-07-28"}))
    assert headers_of(named)[b"mcp-name"].startswith(b"=?base64?")
    assert not check_message(headers_of(named), named)


@pytest.mark.parametrize("word", ["0.0.0.0:80", "8931", "example.test:80", "127.0.0.1:x", "127.0.0.1:70000"])
def test_listening_for_others_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="no place on this machine alone"):
        read_listen(word)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x.test/",
        "https:///mcp",
        "http://u:p@x.test/",
        "http://x.test:x/",
        "x.test",
        "http://x.test/a b",
    ],
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(InputError, match="no URL of a server"):
        endpoint_of(url)


def test_where_a_url_leads() -> None:
    found = endpoint_of("https://Example.test/mcp?key=1")
    assert (found.host, found.port, found.target, found.path) == ("example.test", 443, "/mcp?key=1", "/mcp")


def test_headers_from_the_environment() -> None:
    found = header_values({"Authorization": "Bearer TOKEN", "X-Key": "KEY"}, {"TOKEN": "t", "KEY": "k"})
    assert found == ((b"authorization", b"Bearer t"), (b"x-key", b"k"))
    with pytest.raises(InputError, match="is not set"):
        header_values({"X-Key": "KEY"}, {})
    with pytest.raises(InputError, match="no header may hold"):
        header_values({"X-Key": "KEY"}, {"KEY": "a\r\nb: c"})
    with pytest.raises(InputError, match="names no header"):
        header_values({"X Key": "KEY"}, {"KEY": "a"})
