"""What an agent's request to its model says: which model, which tools, which results of calls, which texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from interlock.boundary.lens.calls import items, loads, record, text
from interlock.boundary.lens.responses_items import input_items
from interlock.boundary.lens.suspicion import strict
from interlock.model.records import dataclass
from interlock.model.tools import ToolDefinition

_NAME_CHARS = 200
_CACHE_MARKERS = ("cache_control", "defer_loading")
"""Fields of a tool's definition that say how it is kept and when it is loaded, and move from request to request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtResult:
    """The result of a call, as a request brings it; a history brings it again each time.

    Takes: `call_id`, `""` where the wire has none (Gemini without ids, legacy functions); `tool`, its name where the
    request says it or holds the call, else `""`; `text`, all of it; `structured`, whether that is JSON; `failed`,
    whether the agent says that the call failed; `size_bytes` and `digest` of the text as UTF-8 (SHA-256 in hex).
    """

    call_id: str
    tool: str
    text: str
    structured: bool = False
    failed: bool = False
    size_bytes: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model.

    Takes: `model`, as asked for; `streamed`, whether the answer shall stream; `tools`, in order, those that the
    provider runs included, their cache markers left out of the digest; `results`, in order, the whole history's;
    `system` and `user`, the texts of either; `note`, why not all of it is read, `""` where it is.
    """

    model: str = ""
    streamed: bool = False
    tools: tuple[ToolDefinition, ...] = ()
    results: tuple[BroughtResult, ...] = ()
    system: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    note: str = ""


def read_request(wire: str, body: bytes, path: str = "") -> ModelRequest:
    """Read a request's body; no bytes raise.

    Takes: `wire`, as `wire_of` names it; `path`, which names the model of Gemini, and whether it streams.
    """
    value = _read(body)
    if not isinstance(value, dict):
        return ModelRequest(note="a request that is no JSON object")
    match wire:
        case "openai-chat":
            parts = _chat(value)
        case "openai-responses":
            parts = _responses(value)
        case "anthropic":
            parts = _messages(value)
        case _:
            parts = _gemini(value)
    model, method = text(value.get("model")), ""
    if wire == "gemini" or not model:  # Vertex names the model in the path, of any wire
        named, _, method = path.partition("?")[0].rpartition("/")[2].partition(":")
        model = (named if method else "") or model
    return ModelRequest(
        model=_cut(model),
        streamed=value.get("stream") is True or method.startswith("stream"),
        tools=tuple(_definition(name, one) for name, one in parts.tools if name),
        results=tuple(parts.results),
        system=tuple(filter(None, parts.system)),
        user=tuple(filter(None, parts.user)),
    )


def gone_on_from(wire: str, body: bytes, renamed: Mapping[str, str]) -> bytes:
    """Return a request that goes on from a stored answer by the id that the provider knows it by.

    Takes: `renamed`, as audits of the run's answers told it; the body comes back as it is where it names none of them.
    """
    if wire != "openai-responses" or not renamed or b"previous_response_id" not in body:
        return body
    value, fault = strict(body)
    known = record(value).get("previous_response_id")
    if fault or not isinstance(known, str) or known not in renamed:
        return body
    return json.dumps({**value, "previous_response_id": renamed[known]}, separators=(",", ":")).encode(
        "ascii"
    )


class _Parts:
    def __init__(self) -> None:
        self.tools: list[tuple[str, Any]] = []
        self.results: list[BroughtResult] = []
        self.system: list[str] = []
        self.user: list[str] = []
        self.names: dict[str, str] = {}  # of the calls that the history holds, by id

    def said(self, role: Any, told: str) -> None:
        if role in ("system", "developer"):
            self.system.append(told)
        elif role == "user":
            self.user.append(told)

    def result(self, call_id: Any, content: Any, *, tool: str = "", failed: bool = False) -> None:
        call_id = _cut(text(call_id))
        told, structured = _content(content)
        data = told.encode("utf-8", "replace")
        self.results.append(
            BroughtResult(
                call_id=call_id,
                tool=_cut(tool) or self.names.get(call_id, ""),
                text=data.decode(),
                structured=structured,
                failed=failed,
                size_bytes=len(data),
                digest=hashlib.sha256(data).hexdigest(),
            )
        )


def _chat(body: dict[str, Any]) -> _Parts:
    parts = _Parts()
    for tool in map(record, items(body.get("tools"))):
        kind = text(tool.get("type"))
        parts.tools.append((text(record(tool.get(kind)).get("name")) or text(tool.get("name")) or kind, tool))
    parts.tools += [(text(one.get("name")), one) for one in map(record, items(body.get("functions")))]
    for message in map(record, items(body.get("messages"))):
        role = message.get("role")
        for call in map(record, items(message.get("tool_calls"))):
            named = record(call.get("function")) or record(call.get("custom"))
            parts.names[_cut(text(call.get("id")))] = _cut(text(named.get("name")))
        if role == "tool":
            parts.result(message.get("tool_call_id"), message.get("content"), tool=text(message.get("name")))
        elif role == "function":
            parts.result("", message.get("content"), tool=text(message.get("name")))
        else:
            parts.said(role, _texts(message.get("content")))
    return parts


def _responses(body: dict[str, Any]) -> _Parts:
    parts = _Parts()
    parts.tools += _listed(body.get("tools"), "")
    parts.said("system", text(body.get("instructions")))
    for item in map(record, input_items(body)):
        kind = text(item.get("type"))
        if kind == "additional_tools":
            parts.tools += _listed(item.get("tools"), "")
        elif kind.endswith("_output"):
            failed = item.get("status") in ("failed", "incomplete")
            content = item.get("output") if "output" in item else item.get("tools")
            parts.result(item.get("call_id") or item.get("id"), content, failed=failed)
        elif kind.endswith("_call"):
            space, name = text(item.get("namespace")), text(item.get("name")) or kind.removesuffix("_call")
            call_id = _cut(text(item.get("call_id")) or text(item.get("id")))
            parts.names[call_id] = _cut(f"{space}.{name}" if space else name)
        else:
            parts.said(item.get("role"), _texts(item.get("content")))
    return parts


def _messages(body: dict[str, Any]) -> _Parts:
    parts = _Parts()
    for tool in map(record, items(body.get("tools"))):
        parts.tools.append((text(tool.get("name")) or text(tool.get("type")), tool))
    parts.said("system", _texts(body.get("system")))
    for message in map(record, items(body.get("messages"))):
        content = message.get("content")
        for block in map(record, items(content)):
            if block.get("type") == "tool_use":
                parts.names[_cut(text(block.get("id")))] = _cut(text(block.get("name")))
            elif block.get("type") == "tool_result":
                failed = block.get("is_error") is True
                parts.result(block.get("tool_use_id"), block.get("content"), failed=failed)
        parts.said(message.get("role"), _texts(content))
    return parts


def _gemini(body: dict[str, Any]) -> _Parts:
    parts = _Parts()
    inner = body if "contents" in body else record(body.get("request"))
    for tool in map(record, items(inner.get("tools"))):
        for key, value in tool.items():
            declared = items(value) if key in ("functionDeclarations", "function_declarations") else []
            parts.tools += [(text(one.get("name")), one) for one in map(record, declared)]
            if not isinstance(value, list):
                parts.tools.append((key, {key: value}))
    system = inner.get("systemInstruction") or inner.get("system_instruction")
    parts.said("system", _texts(record(system).get("parts")))
    for content in map(record, items(inner.get("contents"))):
        told = items(content.get("parts"))
        for part in map(record, told):
            answer = record(part.get("functionResponse")) or record(part.get("function_response"))
            if answer:
                given = answer.get("response")
                failed = isinstance(given, dict) and set(given) == {"error"}
                parts.result(answer.get("id"), given, tool=text(answer.get("name")), failed=failed)
        parts.said(content.get("role") or "user", _texts(told))
    return parts


def _listed(tools: Any, space: str) -> Iterator[tuple[str, Any]]:
    for tool in map(record, items(tools)):
        name = text(tool.get("name")) or text(tool.get("type"))
        if tool.get("type") == "namespace" and not space:
            yield from _listed(tool.get("tools"), name)
        else:
            yield f"{space}.{name}" if space and name else name, tool


def _definition(name: str, definition: Any) -> ToolDefinition:
    told = {key: value for key, value in definition.items() if key not in _CACHE_MARKERS}
    written = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return ToolDefinition(name=_cut(name), digest=hashlib.sha256(written.encode("ascii")).hexdigest())


def _content(value: Any) -> tuple[str, bool]:
    """Return a result as text, and whether that is JSON."""
    if isinstance(value, str):
        return value, False
    if value is None:
        return "", False
    if isinstance(value, list) and all(isinstance(_text_of(one), str) for one in value):
        return _texts(value), False
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")), True


def _text_of(part: Any) -> str | None:
    """Return the text of a part of a message, `""` for a picture or a file, None for what is no part."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return None
    if isinstance(part.get("text"), str):
        return str(part["text"])
    kind = text(part.get("type"))
    return "" if kind.endswith(("image", "image_url", "file", "audio", "document", "reference")) else None


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, map(_text_of, items(content))))


def _cut(value: str) -> str:
    return value[:_NAME_CHARS].encode("utf-8", "replace").decode("utf-8")


def _read(body: bytes) -> Any:
    import orjson

    try:
        return orjson.loads(body)
    except ValueError:
        return loads(body)
