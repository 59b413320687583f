"""A provider that fails in any way gives no answer: a kind, a hint, and never the key or an answer made up."""

import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest
from tests.fakes.certificates import PrivateAuthority
from tests.fakes.far_model import Act, FarModel, answers, chat, hangs, pours, says, sends, trickles
from tests.fakes.http_service import Service

from interlock.model.errors import InputError
from interlock.oracle.models import Budget, Completion, Message, ModelError, Request, ToolSpec, recorded
from interlock.oracle.models.keys import KeySource
from interlock.oracle.models.remote import RemoteModel, Terms
from interlock.oracle.models.wire_openai import OpenAIWire
from interlock.oracle.models.wires import Endpoint

KEY = "sk-never-told-0123456789abcdef"
SCHEMA = {
    "type": "object",
    "properties": {"decision": {"type": "string", "enum": ["release", "refuse"]}},
    "required": ["decision"],
    "additionalProperties": False,
}
REQUEST = Request(messages=(Message(role="user", text="may it?"),), schema=SCHEMA)
YES = '{"decision":"release"}'
GENEROUS_S = 30.0

Stand = Callable[..., tuple[RemoteModel, FarModel]]


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    servers: list[FarModel] = []

    def make(*acts: Act, **terms: object) -> tuple[RemoteModel, FarModel]:
        servers.append(FarModel(*acts))
        model = RemoteModel(
            "judge",
            Endpoint(provider="openai", base_url=servers[-1].url, model="gpt-x"),
            OpenAIWire(),
            key=KeySource(env="JUDGE_KEY"),
            terms=Terms(**terms),  # type: ignore[arg-type]
            pause=lambda _s: None,
        )
        return model, servers[-1]

    yield make
    for server in servers:
        server.close()


def failure(model: RemoteModel, deadline_s: float = GENEROUS_S, request: Request = REQUEST) -> ModelError:
    outcome, inference = recorded(
        model, request, budget=Budget(), deadline_s=deadline_s, oracle="seeing:judge"
    )
    assert isinstance(outcome, ModelError), outcome
    assert inference.fault == outcome.kind
    assert inference.answer == ""
    assert inference.calls == outcome.attempts
    for told in (outcome.message, outcome.hint, str(outcome), repr(inference)):
        assert KEY[3:12] not in told
        assert "\n" not in told
        assert len(told) < 900
    assert "`judge`" in outcome.message
    return outcome


def test_a_good_answer_is_canonical_and_counted(stand: Stand) -> None:
    model, server = stand(says(chat('\n {"decision" : "release"} ')))
    completion = model.complete(REQUEST, deadline_s=GENEROUS_S)
    assert completion == Completion(
        text=YES, usage=completion.usage, model="gpt-x", finish="stop", attempts=1
    )
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (11, 3)
    assert server.requests[0].line == "POST /v1/chat/completions HTTP/1.1"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_provider_that_says_nothing_is_given_up_in_time(stand: Stand) -> None:
    began = time.monotonic()
    error = failure(stand(hangs)[0], deadline_s=0.3)
    assert error.kind == "timeout"
    assert 0.25 < time.monotonic() - began < 10


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 500,
        b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n" + b" " * 4000,
    ],
    ids=["head", "body"],
)
def test_bytes_that_trickle_do_not_stretch_the_deadline(stand: Stand, raw: bytes) -> None:
    began = time.monotonic()
    pieces = (raw[at : at + 1] for at in range(len(raw)))
    error = failure(stand(trickles(pieces, 0.05))[0], deadline_s=0.5)
    assert error.kind == "timeout"
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_what_may_pass_is_asked_again_and_then_given_up(stand: Stand, status: int) -> None:
    model, server = stand(answers(status, b'{"error":"busy"}'), retries=2)
    error = failure(model)
    assert (error.kind, error.attempts, len(server.requests)) == ("status", 3, 3)
    assert f"answered {status}" in error.message


def test_an_answer_after_failures_counts_with_its_repetitions(stand: Stand) -> None:
    model, _ = stand(answers(429, b""), sends(b""), says(chat(YES)), retries=2)
    budget = Budget()
    outcome, inference = recorded(model, REQUEST, budget=budget, deadline_s=GENEROUS_S)
    assert isinstance(outcome, Completion)
    assert (inference.calls, budget.calls, outcome.attempts) == (3, 3, 3)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418])
def test_what_will_not_pass_is_asked_once(stand: Stand, status: int) -> None:
    model, server = stand(answers(status, b"no"), retries=2)
    assert (failure(model).kind, len(server.requests)) == ("status", 1)


def test_a_provider_that_asks_to_wait_too_long_is_not_waited_for(stand: Stand) -> None:
    model, server = stand(answers(429, b"", "retry-after: 3600"), retries=2)
    began = time.monotonic()
    assert (failure(model).kind, len(server.requests)) == ("status", 1)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "told", ["retry-after: 2", "retry-after: Thu, 01 Jan 1970 00:00:00 GMT", "retry-after: soon"]
)
def test_how_long_to_wait_is_taken_from_the_answer(
    stand: Stand, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    model, _ = stand(answers(503, b"", told), says(chat(YES)))
    monkeypatch.setattr(model, "_pause", waits.append)
    assert model.complete(REQUEST, deadline_s=GENEROUS_S).text == YES
    assert waits == [2.0 if told.endswith("2") else 0.5]


@pytest.mark.parametrize(
    "act",
    [
        sends(b""),
        sends(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"),
        sends(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}"),
    ],
    ids=["nothing", "half", "half a chunk"],
)
def test_a_connection_that_breaks_off_is_no_answer(stand: Stand, act: Act) -> None:
    assert failure(stand(act, retries=1)[0]).kind == "unavailable"


def test_nobody_there_is_no_answer(stand: Stand) -> None:
    model, server = stand(hangs)
    server.close()
    error = failure(model)
    assert error.kind == "unavailable"
    assert error.hint


STREAM = b'data: {"choices":[{"delta":{"content":"{\\"decision\\""}}]}\n\ndata: \x00\xff\xfe garbage\n\n'


@pytest.mark.parametrize(
    "act",
    [
        sends(b"\x16\x03\x01garbage\r\n\r\n"),
        sends(b"SSH-2.0-OpenSSH\r\n\r\n"),
        answers(200, STREAM, "content-type: text/event-stream"),
        answers(200, b""),
        answers(200, b'{"model":"gpt-x","choices":[{"mess'),
        answers(200, json.dumps(chat(YES)).encode().replace(b"}", b"", 1)),
        answers(200, b"\xff\xfe" + json.dumps(chat(YES)).encode("utf-16-le")),
        answers(200, b"[" * 100_000),
        answers(200, b"<html>sign in</html>", "content-type: text/html"),
        answers(200, b"\x1f\x8b\x08\x00", "content-encoding: gzip"),
        answers(200, json.dumps(chat(YES)).encode(), "content-encoding: br"),
        says([chat(YES)]),
        says({**chat(YES), "choices": []}),
        says({**chat(YES), "choices": chat(YES)["choices"] * 2}),  # type: ignore[operator]
        says({**chat(YES), "choices": [{"message": {"content": None}, "finish_reason": "stop"}]}),
        says(chat(YES, finish="length")),
        says(chat(YES, finish="content_filter")),
        says(chat(YES, usage={"prompt_tokens": 1 << 52, "completion_tokens": 1})),
        says(chat(YES, usage={"prompt_tokens": -1, "completion_tokens": 1})),
        says(chat(YES, usage={"prompt_tokens": True, "completion_tokens": 1})),
        says(chat("release")),
        says(chat("")),
        says(chat(YES + YES)),
        says(chat('{"decision":"release","decision":"refuse"}')),
        says(chat('{"decision":"Release"}')),
        says(chat('{"decision":"release","also":1}')),
        says(chat('{"decision":["release"]}')),
        says(chat("{}")),
        says(chat("null")),
        says(chat(f"Sure! ```json\n{YES}\n```")),
        says(chat('{"decision":"release"')),
        says(chat("[" * 5000)),
    ],
)
def test_garbage_is_no_answer(stand: Stand, act: Act) -> None:
    error = failure(stand(act)[0])
    assert error.kind == "garbage"
    assert "release" not in error.message


def test_an_answer_of_100_mb_is_cut_off_where_it_is_too_large(stand: Stand) -> None:
    began = time.monotonic()
    assert failure(stand(pours(100 << 20))[0]).kind == "too-large"
    assert failure(stand(answers(200, b"", "content-length: 104857600"))[0]).kind in ("too-large", "garbage")
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("gpt-x", True),
        ("gpt-x-2026-01-01", True),
        ("gpt-x-20260101", True),
        ("gpt-x-0613", True),
        ("gpt-x-mini", False),
        ("gpt-y", False),
        ("gpt-x-2026-01-01-evil", False),
        ("gpt", False),
        ("", False),
        ("judge-alias", True),
    ],
)
def test_another_model_that_answers_is_told(stand: Stand, name: str, fits: bool) -> None:
    model, _ = stand(says(chat(YES, model=name)), answers_as="judge-alias")
    if fits:
        assert model.complete(REQUEST, deadline_s=GENEROUS_S).model == name
        return
    error = failure(model)
    assert error.kind == "wrong-model"
    assert error.usage.prompt_tokens == 11


def test_no_redirect_is_followed_and_the_key_goes_nowhere_else(stand: Stand) -> None:
    _, elsewhere = stand(says(chat(YES)))
    model, _ = stand(answers(307, b"", f"location: {elsewhere.url}/chat/completions"))
    assert failure(model).kind == "status"
    assert elsewhere.requests == []


def test_a_proxy_of_the_environment_is_not_used(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    _, proxy = stand(says(chat(YES)))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    model, _ = stand(says(chat(YES)))
    assert model.complete(REQUEST, deadline_s=GENEROUS_S).text == YES
    assert proxy.requests == []


def test_a_proxy_of_the_file_is_used(stand: Stand) -> None:
    _, proxy = stand(says(chat(YES)))
    model, server = stand(says(chat(YES)), proxy=proxy.url.removesuffix("/v1"))
    assert model.complete(REQUEST, deadline_s=GENEROUS_S).text == YES
    assert server.requests == []
    assert proxy.requests[0].line.startswith("POST http://127.0.0.1:")


@pytest.mark.parametrize(
    "said",
    [
        f"Incorrect key {KEY}: see the docs",
        f"Incorrect key {KEY[:14]}",
        f"{KEY[5:]} is\n\x1b[31mno\x00 key",
        "c2stbmV2ZXItdG9sZC0wMTIzNDU2Nzg5YWJjZGVm",
        KEY * 50,
    ],
)
def test_what_a_provider_says_is_one_bounded_line_without_the_key(stand: Stand, said: str) -> None:
    error = failure(stand(says({"error": {"message": said}}, status=401))[0])
    assert "[key]" in error.hint
    assert error.hint.isprintable()
    assert said not in error.message


def test_what_a_provider_says_cannot_move_the_cursor(stand: Stand) -> None:
    error = failure(stand(answers(418, b"\x1b[2Jall\r\nis \xe2\x80\xaewell" + b"." * 5000))[0])
    assert error.hint.isprintable()
    assert "all is" in error.hint
    assert len(error.hint) < 300


@pytest.mark.parametrize("said", ["context_length_exceeded", "prompt is too long: 9 tokens > 8 maximum"])
def test_a_prompt_that_does_not_fit_is_told_apart(stand: Stand, said: str) -> None:
    assert failure(stand(says({"error": {"message": said}}, status=400))[0]).kind == "context"


def test_a_prompt_that_cannot_fit_is_not_sent(stand: Stand) -> None:
    model, server = stand(says(chat(YES)), context_tokens=256)
    long = Request(messages=(Message(role="user", text="word " * 2000),), schema=SCHEMA)
    assert failure(model, request=long).kind == "context"
    assert server.requests == []


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_not_sent(
    stand: Stand, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, server = stand(says(chat(YES)))
    monkeypatch.setenv("JUDGE_KEY", key)
    outcome, inference = recorded(model, REQUEST, budget=Budget(), deadline_s=9)
    assert isinstance(outcome, ModelError)
    assert (outcome.kind, inference.calls, server.requests) == ("no-key", 0, [])
    assert not key or key not in outcome.message + outcome.hint


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strange"},
        {"not": {"type": "null"}},
        {"properties": {"a": 1}},
        {"type": "string", "pattern": "("},
        {"$ref": "#/$defs/none"},
        {"$ref": "https://else.where/schema"},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"required": [1]},
        {"minLength": -1},
        {"multipleOf": 3},
        {"enum": "yes"},
        {"type": "object", "description": b"bytes"},
        "no schema",
    ],
)
def test_a_tool_whose_schema_cannot_be_checked_is_not_offered(stand: Stand, schema: object) -> None:
    model, server = stand(says(chat("{}")))
    tool = ToolSpec(name="send", parameters={"properties": {"x": schema}})  # type: ignore[dict-item]
    if isinstance(schema, dict) and "$defs" in schema:
        request = Request(messages=REQUEST.messages, schema=schema)
    else:
        request = Request(messages=REQUEST.messages, tools=(tool,))
    with pytest.raises(InputError, match="JSON schema") as caught:
        model.complete(request, deadline_s=9)
    assert caught.value.hint
    assert server.requests == []


def test_half_a_character_in_a_prompt_is_sent_as_an_escape(stand: Stand) -> None:
    model, server = stand(says(chat(YES)))
    odd = Request(messages=(Message(role="user", text="a\ud800b"),), schema=SCHEMA)
    assert model.complete(odd, deadline_s=GENEROUS_S).text == YES
    messages = server.requests[0].document["messages"]
    assert messages == [{"role": "user", "content": "a\\ud800b"}]


def test_an_answer_that_tells_no_usage_is_counted_by_its_bytes(stand: Stand) -> None:
    model, _ = stand(says(chat(YES, usage={})))
    usage = model.complete(REQUEST, deadline_s=GENEROUS_S).usage
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0


def test_a_resolver_that_hangs_does_not_stretch_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    over = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: over.wait(60) and [])
    endpoint = Endpoint(provider="openai", base_url="http://slow.example/v1", model="gpt-x")
    began = time.monotonic()
    error = failure(RemoteModel("judge", endpoint, OpenAIWire()), deadline_s=0.3)
    over.set()
    assert error.kind == "timeout"
    assert time.monotonic() - began < 10


def test_a_certificate_must_be_trusted_and_another_authority_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    authority = PrivateAuthority(tmp_path)
    for host, ca, fits in (
        ("127.0.0.1", authority.trust_file, True),
        ("127.0.0.1", "", False),
        ("other.example", authority.trust_file, False),
        ("127.0.0.1", str(tmp_path / "none.pem"), False),
    ):
        with Service(lambda *_: (200, chat(YES)), certificate=authority.leaf(host)) as service:
            model = RemoteModel(
                "judge",
                Endpoint(provider="openai", base_url=service.url("/v1", scheme="https"), model="gpt-x"),
                OpenAIWire(),
                key=KeySource(env="JUDGE_KEY"),
                terms=Terms(ca=ca, retries=0),
            )
            if fits:
                assert model.complete(REQUEST, deadline_s=GENEROUS_S).text == YES
                continue
            error = failure(model)
            assert error.kind == "unavailable"
            assert service.requests == []
            assert "trusted" in error.message or "No such file" in error.message


def test_nothing_is_written_to_a_log_but_what_any_exchange_is(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model, _ = stand(answers(401, KEY.encode()), says(chat(YES)))
    failure(model)
    model.complete(REQUEST, deadline_s=GENEROUS_S)
    assert KEY not in caplog.text
    assert "may it?" not in caplog.text
