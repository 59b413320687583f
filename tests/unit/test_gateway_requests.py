"""Which session and which upstream a request to the gateway is for, and what is not taken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.boundary.net.sides import RequestHead
from interlock.gateway.requests import LOOPBACK, Door, Taken, Turned, read
from interlock.gateway.upstreams import Upstreams, read_upstream
from interlock.model.errors import InputError

UPSTREAMS = Upstreams(
    tuple(
        read_upstream(text)
        for text in (
            "openai=https://api.openai.com",
            "claude=https://api.anthropic.com/",
            "gemini=https://generativelanguage.googleapis.com",
            "local=http://127.0.0.1:8911/models",
        )
    )
)
DOOR = Door(hosts=LOOPBACK, token="", placeholders={})
HEAD = RequestHead(
    method="POST",
    scheme="http",
    authority_host="127.0.0.1",
    port=8787,
    target="/v1/messages",
    headers=((b"content-type", b"application/json"),),
    length=2,
)


def asked(
    target: str = "/v1/messages", door: Door = DOOR, host: str = "127.0.0.1", **fields: str
) -> Taken | Turned:
    extra = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in fields.items())
    head = replace(HEAD, target=target, authority_host=host, headers=HEAD.headers + extra)
    return read(head, UPSTREAMS, door)


def taken(target: str = "/v1/messages", door: Door = DOOR, **fields: str) -> Taken:
    found = asked(target, door, **fields)
    assert isinstance(found, Taken), found
    return found


def turned(target: str = "/v1/messages", door: Door = DOOR, host: str = "127.0.0.1", **fields: str) -> int:
    found = asked(target, door, host, **fields)
    assert isinstance(found, Turned), found
    return found.status


@pytest.mark.parametrize(
    ("target", "host", "sent"),
    [
        ("/v1/messages?beta=true", "api.anthropic.com", "/v1/messages?beta=true"),
        ("/v1/messages/count_tokens", "api.anthropic.com", "/v1/messages/count_tokens"),
        ("/api/hello", "api.anthropic.com", "/api/hello"),
        ("/v1/responses", "api.openai.com", "/v1/responses"),
        ("/v1/models", "api.openai.com", "/v1/models"),
        (
            "/v1beta/models/m:generateContent",
            "generativelanguage.googleapis.com",
            "/v1beta/models/m:generateContent",
        ),
        ("/v1beta/models", "generativelanguage.googleapis.com", "/v1beta/models"),
        ("/local/v1/chat/completions", "127.0.0.1", "/models/v1/chat/completions"),
        ("/session/s1/local/v1/models", "127.0.0.1", "/models/v1/models"),
        ("/local", "127.0.0.1", "/models/"),
    ],
)
def test_a_path_begins_with_an_upstreams_name_or_its_wire_decides(target: str, host: str, sent: str) -> None:
    found = taken(target)
    assert (found.head.authority_host, found.head.target) == (host, sent)
    assert (found.place.host, found.place.port) == (host, found.head.port)
    assert found.place.published is (host == "127.0.0.1")  # without TLS: the operator's own word for it


def test_header_fields_tell_the_wire_where_the_path_does_not() -> None:
    assert taken("/v1/models", anthropic_version="2023-06-01").upstream.name == "claude"
    assert taken("/v1/models", x_goog_api_key="k").upstream.name == "gemini"


def test_a_single_upstream_gets_everything() -> None:
    only = Upstreams((read_upstream("mine=https://llm.example.com/api"),))
    found = read(replace(HEAD, target="/v1/anything"), only, DOOR)
    assert isinstance(found, Taken)
    assert found.head.target == "/api/v1/anything"


def test_a_session_is_named_by_field_or_path_or_told_by_the_key() -> None:
    assert taken(x_interlock_session="mine").session == "mine"
    assert taken("/session/mine/v1/messages").session == "mine"
    first, second = taken(x_api_key="a" * 40), taken(authorization="Bearer " + "b" * 40)
    assert first.session.startswith("key-")
    assert first.session != second.session
    assert first.session == taken(authorization="bearer " + "a" * 40).session
    assert taken().session == "default"
    assert turned(x_interlock_session="../../x") == 400
    assert turned("/session//v1/messages", x_interlock_session="mine") == 400


def test_what_is_meant_for_the_gateway_alone_goes_no_further() -> None:
    found = taken(x_interlock_session="mine", x_interlock_token="t", origin="http://localhost:3000")
    assert found.head.headers == HEAD.headers


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1.evil.test", "api.openai.com"])
def test_a_host_of_another_name_is_turned_away(host: str) -> None:
    assert turned(host=host) == 421


def test_a_target_that_names_another_place_is_turned_away() -> None:
    found = read(replace(HEAD, elsewhere=True), UPSTREAMS, DOOR)
    assert isinstance(found, Turned)
    assert found.status == 421


@pytest.mark.parametrize("origin", ["http://evil.test", "null", "https://localhost.evil.test", "http://["])
def test_a_page_of_another_origin_is_turned_away(origin: str) -> None:
    assert turned(origin=origin) == 403


def test_a_token_is_shown_as_a_key_or_in_a_field_of_its_own() -> None:
    door = Door(hosts=LOOPBACK, token="letmein", placeholders={"claude": "interlock-claude-1"})
    assert turned(door=door) == 401
    assert turned(door=door, x_api_key="other") == 401
    shown = taken(door=door, x_api_key="letmein")
    assert shown.head.headers[-1] == (b"x-api-key", b"interlock-claude-1")
    assert b"letmein" not in b"".join(value for _, value in shown.head.headers)
    own = taken("/v1/responses", door, x_interlock_token="letmein", authorization="Bearer own")
    assert (b"authorization", b"Bearer own") in own.head.headers
    # The token itself must not leave as the key for an upstream of which the gateway has none.
    assert turned("/v1/responses", door, authorization="Bearer letmein") == 401


def test_the_gateways_own_key_takes_the_place_of_the_agents() -> None:
    door = Door(hosts=LOOPBACK, token="", placeholders={"openai": "P", "gemini": "Q"})
    chat = taken("/v1/chat/completions?key=own&a=b", door, authorization="Bearer own", x_api_key="own")
    assert chat.head.headers[1:] == ((b"authorization", b"Bearer P"),)
    assert chat.head.target == "/v1/chat/completions?a=b"
    model = taken("/v1beta/models/m:generateContent?key=own", door)
    assert model.head.headers[1:] == ((b"x-goog-api-key", b"Q"),)
    assert model.head.target == "/v1beta/models/m:generateContent"


@pytest.mark.parametrize(
    "text",
    [
        "https://api.openai.com",
        "openai=api.openai.com",
        "openai=ftp://api.openai.com",
        "openai=https://",
        "openai=https://key@api.openai.com",
        "openai=https://api.openai.com?key=1",
        "session=https://api.openai.com",
        "Open AI=https://api.openai.com",
        "openai=https://api.openai.com:99999",
    ],
)
def test_an_upstream_without_a_name_or_a_url_is_told(text: str) -> None:
    with pytest.raises(InputError):
        read_upstream(text)


def test_upstreams_of_one_name_are_told() -> None:
    one = read_upstream("a=https://a.test")
    with pytest.raises(InputError):
        Upstreams((one, one))
    with pytest.raises(InputError):
        Upstreams(())
