"""Content generation, as Gemini speaks it; its schemas are a part of OpenAPI's."""

from collections.abc import Mapping
from urllib.parse import quote

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
)

_FINISHES = {"STOP": "stop", "MAX_TOKENS": "length"}
_NOT_KNOWN = frozenset(("additionalProperties", "$defs", "title"))


class GeminiWire:
    """`POST /models/NAME:generateContent`."""

    def write(self, endpoint: Endpoint, request: Request, key: str) -> Sent:
        """Return the request on the wire."""
        config: dict[str, object] = {"maxOutputTokens": request.max_tokens, "candidateCount": 1}
        if endpoint.takes("temperature"):
            config["temperature"] = 0
        if endpoint.takes("seed") and request.seed is not None:
            config["seed"] = request.seed
        schema = request.answer_schema()
        if schema is not None and endpoint.takes("schema"):
            dropped = _NOT_KNOWN if endpoint.takes("bounds") else _NOT_KNOWN | SIZES
            config["responseMimeType"] = "application/json"
            config["responseSchema"] = _as_openapi(schema, schema, dropped)
        document: dict[str, object] = {
            "contents": [
                {"role": "model" if one.role == "assistant" else "user", "parts": [{"text": one.text}]}
                for one in request.messages
                if one.role != "system"
            ],
            "generationConfig": config,
        }
        system = [{"text": one.text} for one in request.messages if one.role == "system"]
        if system:
            document["systemInstruction"] = {"parts": system}
        model = quote(endpoint.model.removeprefix("models/"), safe="")
        headers = {"x-goog-api-key": key} if key else {}
        return Sent(path=f"/models/{model}:generateContent", headers=headers, document=document)

    def read(self, document: object, request: Request) -> Heard:
        """Read an answer."""
        answer = Reading(value=document)
        feedback = answer.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            raise WireError("the provider blocked the prompt")
        candidate = answer.at("candidates").only()
        parts = candidate.at("content").at("parts").items()
        finish = candidate.at("finishReason").text()
        usage = answer.get("usageMetadata")
        return Heard(
            text="".join(one.at("text").text() for one in parts if not one.get("thought")),
            model=answer.at("modelVersion").text(),
            finish=_FINISHES.get(finish, finish.lower()),
            usage=usage_of(
                counted(usage, "promptTokenCount"),
                counted(usage, "candidatesTokenCount", "thoughtsTokenCount"),
            ),
        )


def _as_openapi(schema: object, root: Schema, dropped: frozenset[str], depth: int = 0) -> object:
    """Return a schema as Gemini takes it: references in place, `const` as an `enum` of one, no unknown keyword.

    A schema that refers back to itself is cut where it is deep; the answer is checked here against the whole of it.
    """
    if not isinstance(schema, Mapping) or depth > 12:
        return {}
    definitions = root.get("$defs", {})
    reference = schema.get("$ref")
    if isinstance(reference, str) and isinstance(definitions, Mapping):
        return _as_openapi(definitions.get(reference.rpartition("/")[2]), root, dropped, depth + 1)
    made: dict[str, object] = {}
    for key, value in schema.items():
        if key in dropped:
            continue
        if key == "const":
            made["enum"] = [value]
        elif key == "properties" and isinstance(value, Mapping):
            made[key] = {name: _as_openapi(one, root, dropped, depth + 1) for name, one in value.items()}
            made["propertyOrdering"] = list(value)
        elif key == "items":
            made[key] = _as_openapi(value, root, dropped, depth + 1)
        elif key == "anyOf" and isinstance(value, list | tuple):
            made[key] = [_as_openapi(one, root, dropped, depth + 1) for one in value]
        else:
            made[key] = list(value) if isinstance(value, tuple) else value
    return made
