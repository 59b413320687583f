"""The model server over a real connection: each wire, streamed and whole, and an answer that breaks off."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.agents.model_server import ModelServer
from tests.agents.script import Script
from tests.agents.test_wires import CHAT_REQUEST, GEMINI_REQUEST, MESSAGES_REQUEST, RESPONSES_REQUEST

_STEPS = ({"say": "first"}, {"shell": "echo second"}, {"say": "third"})
_WIRES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", CHAT_REQUEST),
    "responses": ("/v1/responses", RESPONSES_REQUEST),
    "messages": ("/v1/messages", MESSAGES_REQUEST),
    "gemini": ("/v1beta/models/m:streamGenerateContent?alt=sse", GEMINI_REQUEST),
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    made = ModelServer(Script(_STEPS))
    yield made
    made.close()


def _post(
    server: ModelServer, path: str, body: bytes, headers: Mapping[str, str] = {}
) -> tuple[int, str, bytes]:
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    link.request("POST", path, body, {"content-type": "application/json", **headers})
    answer = link.getresponse()
    try:
        return answer.status, answer.headers["content-type"], answer.read()
    except http.client.IncompleteRead as broken:
        return answer.status, "broken", broken.partial
    finally:
        answer.close()
        link.close()


@pytest.mark.parametrize("wire", _WIRES)
def test_a_streamed_answer_comes_as_events_and_a_whole_one_as_json(server: ModelServer, wire: str) -> None:
    path, request = _WIRES[wire]
    status, kind, body = _post(server, path, json.dumps(request).encode())
    assert (status, kind) == (200, "text/event-stream")
    assert b"second" in body
    whole = path.replace("streamGenerateContent?alt=sse", "generateContent")
    status, kind, body = _post(server, whole, json.dumps({**request, "stream": False}).encode())
    assert (status, kind) == (200, "application/json")
    assert b"echo second" in body
    assert [at for at, _body in server.requests] == [path.partition("?")[0], whole]


@pytest.mark.parametrize("wire", _WIRES)
def test_it_dies_in_the_middle_of_the_answer_that_it_is_told_to(server: ModelServer, wire: str) -> None:
    path, request = _WIRES[wire]
    server.dies_at = 1
    _status, _kind, cut = _post(server, path, json.dumps(request).encode())
    server.dies_at = None
    _status, _kind, full = _post(server, path, json.dumps(request).encode())
    assert len(cut) < len(full)
    whole = path.replace("streamGenerateContent?alt=sse", "generateContent")
    server.dies_at = 1
    assert _post(server, whole, json.dumps({**request, "stream": False}).encode())[1] == "broken"


def test_bodies_may_be_chunked_or_packed(server: ModelServer) -> None:
    path, request = _WIRES["messages"]
    raw = json.dumps(request).encode()
    assert _post(server, path, gzip.compress(raw), {"content-encoding": "gzip"})[0] == 200
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    link.request(
        "POST",
        path,
        iter([raw[:20], raw[20:]]),
        encode_chunked=True,
        headers={"transfer-encoding": "chunked"},
    )
    assert link.getresponse().read()
    link.close()
    assert [body for _path, body in server.requests] == [request, request]


def test_what_agents_ask_besides_is_answered(server: ModelServer) -> None:
    for method, path, status in (
        ("HEAD", "/api/hello", 200),
        ("GET", "/v1/models?limit=9", 200),
        ("GET", "/nothing", 404),
        ("POST", "/v1/messages/count_tokens", 200),
        ("POST", "/v1beta/models/m:countTokens", 200),
        ("POST", "/telemetry", 404),
    ):
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        link.request(method, path, b"{}" if method == "POST" else None)
        answer = link.getresponse()
        answer.read()
        assert (method, path, answer.status) == (method, path, status)
        link.close()
