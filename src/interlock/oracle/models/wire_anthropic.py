"""Messages, as Anthropic speaks them: a schema is the input of a tool that the model must use."""

import json

from interlock.oracle.models.client import Request, Schema
from interlock.oracle.models.wires import (
    SIZES,
    Endpoint,
    Heard,
    Reading,
    Sent,
    WireError,
    counted,
    usage_of,
    without,
)

SAMPLING_ENDED = "2026-10-21"
"""From this version of the API on a request with any sampling parameter is answered 400."""
DEFAULT_VERSION = "2023-06-01"
_FINISHES = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "stop", "max_tokens": "length"}


class AnthropicWire:
    """`POST /messages`."""

    def write(self, endpoint: Endpoint, request: Request, key: str) -> Sent:
        """Return the request on the wire."""
        version = endpoint.api_version or DEFAULT_VERSION
        document: dict[str, object] = {
            "model": endpoint.model,
            "max_tokens": request.max_tokens,
            "messages": [
                {"role": one.role, "content": one.text} for one in request.messages if one.role != "system"
            ],
        }
        if system := "\n\n".join(one.text for one in request.messages if one.role == "system"):
            document["system"] = system
        if endpoint.takes("temperature") and version < SAMPLING_ENDED:
            document["temperature"] = 0
        schema = request.answer_schema()
        if schema is not None and endpoint.takes("schema"):
            dropped = frozenset() if endpoint.takes("bounds") else SIZES
            given = without(_as_object(schema), dropped)
            document["tools"] = [
                {"name": request.schema_name, "description": "Give the answer.", "input_schema": given}
            ]
            document["tool_choice"] = {
                "type": "tool",
                "name": request.schema_name,
                "disable_parallel_tool_use": True,
            }
        headers = {"anthropic-version": version}
        if key:
            headers["x-api-key"] = key
        return Sent(path="/messages", headers=headers, document=document)

    def read(self, document: object, request: Request) -> Heard:
        """Read an answer."""
        answer = Reading(value=document)
        blocks = answer.at("content").items()
        stop = answer.at("stop_reason").text()
        if stop == "refusal":
            raise WireError("the model declined to answer")
        schema = request.answer_schema()
        calls = [one for one in blocks if one.get("type") == "tool_use"]
        if schema is not None and calls:
            text = _called(calls, request, schema)
        else:
            text = "".join(one.at("text").text() for one in blocks if one.get("type") == "text")
        usage = answer.get("usage")
        prompt = counted(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        return Heard(
            text=text,
            model=answer.at("model").text(),
            finish=_FINISHES.get(stop, stop),
            usage=usage_of(prompt, counted(usage, "output_tokens")),
        )


def _as_object(schema: Schema) -> Schema:
    """Return the schema of a tool's input, which must be an object's: any other value stands in `value`."""
    if schema.get("type") == "object":
        return schema
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer: dict[str, object] = {
        "type": "object",
        "properties": {"value": inner},
        "required": ["value"],
        "additionalProperties": False,
    }
    if "$defs" in schema:
        outer["$defs"] = schema["$defs"]
    return outer


def _called(calls: list[Reading], request: Request, schema: Schema) -> str:
    if len(calls) != 1 or calls[0].at("name").text() != request.schema_name:
        raise WireError("the model used another tool, or several")
    value = calls[0].at("input")
    if schema.get("type") != "object":
        value = value.at("value")
    return json.dumps(value.value, ensure_ascii=False)
