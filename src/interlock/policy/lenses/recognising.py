"""A request is recognised as an action, or it is not: whatever could be read in two ways is not.

Source: RFC 3986 (paths), RFC 8259 (JSON), WHATWG URL (forms), JSON-RPC 2.0, GraphQL (October 2021), S3 and the
services' own descriptions as the shipped lenses name them.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.policy.lenses.graphql import only_field
from interlock.policy.lenses.lens import Body, LensAction, RequestLens

_OVERRIDES = frozenset(
    {"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"}
)
"""Fields by which some servers take a request for another than it is."""
_OVERRIDE_PARAMETERS = frozenset({"_method", "x-http-method-override"})
_ODD_PATH = re.compile(r"//|[\\;]|%(?:00|2e|5c|3b)|/\.{1,2}(?:/|$)", re.IGNORECASE)
_SLASH = re.compile(r"%2f", re.IGNORECASE)
_REFS = "/info/refs"
"""Where a push begins: Git's servers take a repository's name with or without `.git`."""
MAX_TEXT = 1_000_000
"""A body beyond is not read for an action."""
_MAX_PAIRS = 1000


def recognise(lenses: tuple[RequestLens, ...], request: NetRequest) -> tuple[ToolCall, LensAction] | None:
    """Return the action that a request is, as a call of the tool that has its roles; None for none, or for several."""
    if not lenses or request.protocol == "opaque" or request.scheme not in ("http", "https"):
        return None
    return _recognised(lenses, request)


def _recognised(lenses: tuple[RequestLens, ...], request: NetRequest) -> tuple[ToolCall, LensAction] | None:
    fields = [name for name, _ in request.headers]
    if _ODD_PATH.search(request.path) or not request.path.startswith("/") or _OVERRIDES.intersection(fields):
        return None
    query = _pairs(request.query)
    if query is None or _OVERRIDE_PARAMETERS.intersection(query):
        return None
    found: list[tuple[ToolCall, LensAction]] = []
    for lens in lenses:
        for action in lens.actions:
            arguments = _arguments(lens, action, request, query)
            if arguments is not None:
                text = json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
                found.append((ToolCall(call="", tool=action.name, arguments=text), action))
                if len(found) > 1:
                    return None
    return found[0] if found else None


def _arguments(
    lens: RequestLens, action: LensAction, request: NetRequest, query: dict[str, str]
) -> dict[str, Any] | None:
    if request.method != action.method:
        return None
    hosts = lens.hosts if action.host is None else (action.host,)
    at_host = next((found for one in hosts if (found := one.match(request.host)) is not None), None)
    at_path = _path(action, request.path) if at_host is not None else None
    if at_host is None or at_path is None:
        return None
    body = _body(action, request)
    if body is None:
        return None
    if action.body is Body.GIT or action.path.text.endswith(_REFS):
        at_path = {name: text.removesuffix(".git") for name, text in at_path.items()}
    made: dict[str, Any] = {**at_host, **at_path, **body}
    if query:
        made["query"] = query
    named = {name: value for name, value in request.headers if name in action.headers}
    if len(named) != sum(name in action.headers for name, _ in request.headers):
        return None
    if named:
        made["header"] = named
    leaves = dict(_leaves(made, ""))
    if any(leaves.get(name) != value for name, value in action.when):
        return None
    if any(leaves.get(one) is None or leaves.get(one) != leaves.get(other) for one, other in action.same):
        return None
    return _joined(action, made)


def _joined(action: LensAction, made: dict[str, Any]) -> dict[str, Any] | None:
    taken: set[str] = set()
    for name, text in action.joins:
        holes = re.findall(r"\{([^{}]+)\}", text)
        if any(not isinstance(made.get(hole), str) for hole in holes):
            return None
        made[name] = re.sub(r"\{([^{}]+)\}", lambda hole: str(made[hole[1]]), text)
        taken |= set(holes) - {name}
    return {name: value for name, value in made.items() if name not in taken}


def _path(action: LensAction, path: str) -> dict[str, str] | None:
    if _SLASH.search(path) and not action.slashes:
        return None
    found = action.path.match(path)
    if found is None:
        return None
    read: dict[str, str] = {}
    for name, text in found.items():
        whole = name in action.slashes or action.path.text.endswith(f"{{{name}+}}")
        if _SLASH.search(text) and name not in action.slashes:
            return None
        plain = _percent(text)
        if plain is None or (not whole and "/" in plain) or plain in (".", ".."):
            return None
        read[name] = plain
    return read


def _body(action: LensAction, request: NetRequest) -> dict[str, Any] | None:
    match action.body:
        case Body.NONE:
            return {} if request.body_size_bytes == 0 else None
        case Body.ANY:
            return {} if request.body_size_bytes >= 0 else None
        case Body.GIT:
            if not request.pushes or any(not one.ref for one in request.pushes):
                return None
            return {"updates": [{**_ref(one.ref), "kind": one.kind.value} for one in request.pushes]}
        case Body.FORM:
            pairs = (
                _pairs(request.body_text) if _kind(request) == "application/x-www-form-urlencoded" else None
            )
            if pairs is None or _OVERRIDE_PARAMETERS.intersection(pairs):
                return None
            return {"body": pairs}
    value = _json(request)
    if value is None:
        return None
    match action.body:
        case Body.GRAPHQL:
            return _graphql(action, value)
        case Body.JSON_RPC:
            if value.get("jsonrpc") != "2.0" or value.get("method") != action.call:
                return None
            if not value.keys() <= {"jsonrpc", "method", "params", "id"}:
                return None
            return {"params": value.get("params", {})}
        case _:
            return None if _OVERRIDE_PARAMETERS.intersection(value) else {"body": value}


def _ref(ref: str) -> dict[str, str]:
    """Return a reference by the name that people use of it; any other but a branch or a tag whole."""
    for prefix, role in (("refs/heads/", "branch"), ("refs/tags/", "tag")):
        if ref.startswith(prefix) and ref != prefix:
            return {role: ref.removeprefix(prefix)}
    return {"ref": ref}


def _graphql(action: LensAction, value: dict[str, Any]) -> dict[str, Any] | None:
    document, variables = value.get("query"), value.get("variables") or {}
    if not isinstance(document, str) or not isinstance(variables, dict):
        return None
    if not value.keys() <= {"query", "variables", "operationName"}:
        return None
    field = only_field(document, str(value.get("operationName") or ""))
    if field is None or (field.name, field.is_mutation) != (action.field, action.is_mutation):
        return None
    if not field.variables <= variables.keys():
        return None  # what a default would say stands in the document, and is not read
    return {"variables": variables}


def _json(request: NetRequest) -> dict[str, Any] | None:
    kind = _kind(request)
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        return None
    text = request.body_text
    if text is None or len(text) > MAX_TEXT:
        return None
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_none)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _kind(request: NetRequest) -> str:
    kinds = [value for name, value in request.headers if name == "content-type"]
    kind, _, rest = kinds[0].partition(";") if len(kinds) == 1 else ("", "", "")
    parameters = rest.strip().lower()
    return kind.strip().lower() if parameters in ("", "charset=utf-8", 'charset="utf-8"') else ""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    # Some servers do not mind how a key is written: then two of them are one.
    if len({key.lower() for key in read}) != len(pairs):
        raise ValueError("a key stands there twice")
    return read


def _none(word: str) -> Any:
    raise ValueError(word)


def _pairs(text: str | None) -> dict[str, str] | None:
    """Read what is written as `a=b&c=d`, each key once; None where it is not."""
    if text is None or len(text) > MAX_TEXT:
        return None
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=_MAX_PAIRS
        )
    except (ValueError, UnicodeDecodeError):
        # `?uploads` has no value: S3 writes so.
        return {text: ""} if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", text) else None
    read = dict(pairs)
    bare = {key.lower().removesuffix("[]") for key in read}
    return read if len(bare) == len(pairs) else None


def _percent(text: str) -> str | None:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        return None
    try:
        plain = unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return plain if plain.isprintable() and "%" not in plain else None


def _leaves(value: object, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{at}.{key}" if at else key)
    elif isinstance(value, bool | int | float):
        yield at, json.dumps(value)
    elif isinstance(value, str):
        yield at, value
