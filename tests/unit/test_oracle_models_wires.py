"""The wires of providers: what each is sent, and how what it answers is read."""

import json
from collections.abc import Callable, Iterator

import pytest
from tests.fakes.far_model import FarModel, chat, says

from interlock.oracle.models import Completion, Message, ModelError, Request, ToolSpec
from interlock.oracle.models.keys import KeySource
from interlock.oracle.models.remote import RemoteModel
from interlock.oracle.models.wire_anthropic import AnthropicWire
from interlock.oracle.models.wire_gemini import GeminiWire
from interlock.oracle.models.wire_openai import OpenAIWire
from interlock.oracle.models.wires import Endpoint, Wire

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"$ref": "#/$defs/word"}, "kind": {"const": "x", "type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
    "$defs": {"word": {"type": "string", "maxLength": 9}},
}
MESSAGES = (
    Message(role="system", text="be brief"),
    Message(role="user", text="one"),
    Message(role="assistant", text="1"),
    Message(role="user", text="two"),
)
REQUEST = Request(messages=MESSAGES, schema=SCHEMA, schema_name="verdict", seed=3, max_tokens=50)
TOOLS = (
    ToolSpec(name="stop", parameters={"properties": {}, "additionalProperties": False}),
    ToolSpec(name="send", parameters={"properties": {"to": {"type": "string"}}, "required": ["to"]}),
)
GENEROUS_S = 30.0
Asking = Callable[..., tuple[Completion, dict[str, object], dict[str, str], str]]


def messages_answer(content: object, stop: str = "tool_use") -> dict[str, object]:
    return {
        "type": "message",
        "model": "claude-y-20260101",
        "content": content,
        "stop_reason": stop,
        "usage": {"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 2},
    }


def used(name: str, value: object) -> dict[str, object]:
    return {"type": "tool_use", "id": "t1", "name": name, "input": value}


def gemini_answer(*texts: str, finish: str = "STOP") -> dict[str, object]:
    return {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "hm", "thought": True}, *({"text": text} for text in texts)],
                },
                "finishReason": finish,
            }
        ],
        "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 2, "thoughtsTokenCount": 4},
        "modelVersion": "gemini-z-001",
    }


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    monkeypatch.setenv("JUDGE_KEY", "the-key-12345")
    servers: list[FarModel] = []

    def ask(
        wire: Wire, model: str, answer: object, request: Request = REQUEST, **endpoint: object
    ) -> tuple[Completion, dict[str, object], dict[str, str], str]:
        server = FarModel(says(answer))
        servers.append(server)
        client = RemoteModel(
            "judge",
            Endpoint(provider="p", base_url=server.url, model=model, **endpoint),  # type: ignore[arg-type]
            wire,
            key=KeySource(env="JUDGE_KEY"),
        )
        completion = client.complete(request, deadline_s=GENEROUS_S)
        sent = server.requests[0]
        return completion, sent.document, sent.headers, sent.line.split()[1]

    yield ask
    for server in servers:
        server.close()


def test_chat_completions_are_asked_for_a_schema_at_temperature_0(asking: Asking) -> None:
    completion, sent, headers, path = asking(OpenAIWire(), "gpt-x", chat('{"answer":"yes"}'))
    assert completion.text == '{"answer":"yes"}'
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer the-key-12345"
    assert sent == {
        "model": "gpt-x",
        "messages": [{"role": one.role, "content": one.text} for one in MESSAGES],
        "max_tokens": 50,
        "temperature": 0,
        "seed": 3,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True},
        },
    }


def test_what_an_endpoint_lacks_is_not_sent(asking: Asking) -> None:
    lacks = frozenset(("temperature", "seed", "max_tokens", "bounds"))
    _, sent, _, _ = asking(OpenAIWire(), "gpt-x", chat('{"answer":"yes"}'), lacks=lacks)
    assert sent.keys() == {"model", "messages", "max_completion_tokens", "response_format"}
    assert "maxLength" not in json.dumps(sent)
    _, sent, _, _ = asking(OpenAIWire(), "gpt-x", chat('{"answer":"yes"}'), lacks=frozenset(("schema",)))
    assert "response_format" not in sent


def test_an_endpoint_that_drops_bounds_is_held_to_them_all_the_same(asking: Asking) -> None:
    with pytest.raises(ModelError) as caught:
        asking(OpenAIWire(), "gpt-x", chat('{"answer":"ten letters"}'), lacks=frozenset(("bounds",)))
    assert caught.value.kind == "garbage"


def test_a_model_that_declines_gives_no_answer(asking: Asking) -> None:
    declined = chat("")
    choices = declined["choices"]
    assert isinstance(choices, list)
    choices[0]["message"] = {"role": "assistant", "content": None, "refusal": "I cannot"}
    for wire, model, answer in (
        (OpenAIWire(), "gpt-x", declined),
        (AnthropicWire(), "claude-y", messages_answer([], stop="refusal")),
        (GeminiWire(), "gemini-z", {"promptFeedback": {"blockReason": "SAFETY"}}),
        (GeminiWire(), "gemini-z", gemini_answer(finish="SAFETY")),
    ):
        with pytest.raises(ModelError) as caught:
            asking(wire, model, answer)
        assert caught.value.kind == "garbage"


def test_messages_force_a_tool_whose_input_is_the_answer(asking: Asking) -> None:
    answer = messages_answer([{"type": "text", "text": "well"}, used("verdict", {"answer": "yes"})])
    completion, sent, headers, path = asking(AnthropicWire(), "claude-y", answer)
    assert completion.text == '{"answer":"yes"}'
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (12, 2)
    assert (completion.model, completion.finish, path) == ("claude-y-20260101", "stop", "/v1/messages")
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("the-key-12345", "2023-06-01")
    assert "authorization" not in headers
    assert sent["system"] == "be brief"
    assert sent["messages"] == [{"role": one.role, "content": one.text} for one in MESSAGES[1:]]
    assert sent["temperature"] == 0
    assert "seed" not in sent
    assert sent["tools"] == [{"name": "verdict", "description": "Give the answer.", "input_schema": SCHEMA}]
    assert sent["tool_choice"] == {"type": "tool", "name": "verdict", "disable_parallel_tool_use": True}


def test_a_version_that_takes_no_sampling_parameter_is_sent_none(asking: Asking) -> None:
    answer = messages_answer([used("verdict", {"answer": "yes"})])
    _, sent, headers, _ = asking(AnthropicWire(), "claude-y", answer, api_version="2026-10-21")
    assert headers["anthropic-version"] == "2026-10-21"
    assert not {"temperature", "top_p", "top_k", "seed"} & sent.keys()


@pytest.mark.parametrize(
    "content",
    [
        [used("other", {"answer": "yes"})],
        [used("verdict", {"answer": "yes"}), used("verdict", {"answer": "no"})],
        [used("verdict", '{"answer":"yes"}')],
        [{"type": "text", "text": "yes"}],
        [],
        "yes",
    ],
)
def test_messages_that_use_no_tool_or_another_are_garbage(asking: Asking, content: object) -> None:
    with pytest.raises(ModelError) as caught:
        asking(AnthropicWire(), "claude-y", messages_answer(content))
    assert caught.value.kind == "garbage"


def test_gemini_is_given_its_own_part_of_a_schema(asking: Asking) -> None:
    completion, sent, headers, path = asking(GeminiWire(), "gemini-z", gemini_answer('{"answer":', '"yes"}'))
    assert completion.text == '{"answer":"yes"}'
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (8, 6)
    assert path == "/v1/models/gemini-z:generateContent"
    assert headers["x-goog-api-key"] == "the-key-12345"
    assert sent["systemInstruction"] == {"parts": [{"text": "be brief"}]}
    contents = sent["contents"]
    assert isinstance(contents, list)
    assert [one["role"] for one in contents] == ["user", "model", "user"]
    assert sent["generationConfig"] == {
        "maxOutputTokens": 50,
        "candidateCount": 1,
        "temperature": 0,
        "seed": 3,
        "responseMimeType": "application/json",
        "responseSchema": {
            "type": "object",
            "properties": {
                "answer": {"type": "string", "maxLength": 9},
                "kind": {"enum": ["x"], "type": "string"},
            },
            "propertyOrdering": ["answer", "kind"],
            "required": ["answer"],
        },
    }


@pytest.mark.parametrize(
    ("wire", "model", "answer"),
    [
        (OpenAIWire(), "gpt-x", chat('{"tool":"send","arguments":{"to":"ann"}}')),
        (
            AnthropicWire(),
            "claude-y",
            messages_answer([used("call", {"value": {"tool": "send", "arguments": {"to": "ann"}}})]),
        ),
        (GeminiWire(), "gemini-z", gemini_answer('{"tool":"send","arguments":{"to":"ann"}}')),
    ],
    ids=["openai", "anthropic", "gemini"],
)
def test_tools_are_one_schema_on_every_wire(asking: Asking, wire: Wire, model: str, answer: object) -> None:
    request = Request(messages=MESSAGES, tools=TOOLS, schema_name="call")
    completion, sent, _, _ = asking(wire, model, answer, request=request)
    assert completion.text == '{"arguments":{"to":"ann"},"tool":"send"}'
    assert '"send"' in json.dumps(sent)


@pytest.mark.parametrize(
    "called",
    [
        '{"tool":"burn","arguments":{}}',
        '{"tool":"send","arguments":{}}',
        '{"tool":"stop","arguments":{"to":"ann"}}',
        '{"tool":"send"}',
    ],
)
def test_a_call_that_no_tool_takes_is_garbage(asking: Asking, called: str) -> None:
    with pytest.raises(ModelError) as caught:
        asking(OpenAIWire(), "gpt-x", chat(called), request=Request(messages=MESSAGES, tools=TOOLS))
    assert caught.value.kind == "garbage"


@pytest.mark.parametrize(
    ("wire", "model", "answer"),
    [
        (OpenAIWire(), "gpt-x", chat("free words", finish="length")),
        (
            AnthropicWire(),
            "claude-y",
            messages_answer([{"type": "text", "text": "free words"}], "max_tokens"),
        ),
        (GeminiWire(), "gemini-z", gemini_answer("free words", finish="MAX_TOKENS")),
    ],
    ids=["openai", "anthropic", "gemini"],
)
def test_free_text_comes_as_it_is_and_says_how_it_ended(
    asking: Asking, wire: Wire, model: str, answer: object
) -> None:
    completion, sent, _, _ = asking(wire, model, answer, request=Request(messages=MESSAGES))
    assert (completion.text, completion.finish) == ("free words", "length")
    assert "schema" not in json.dumps(sent).lower()


def test_what_can_be_asked_of_sampling_is_said_in_the_identity() -> None:
    def sampling(*lacks: str) -> str:
        endpoint = Endpoint(provider="p", base_url="http://h", model="m", lacks=frozenset(lacks))
        return RemoteModel("judge", endpoint, OpenAIWire()).identity.sampling

    assert sampling() == "temperature 0, the request's seed: asked for, not promised"
    assert sampling("seed") == "temperature 0: asked for, not promised"
    assert sampling("seed", "temperature") == "the provider's own"
