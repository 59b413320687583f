"""One JSON-RPC message, read so strictly that no other reader can find another message in the same bytes.

What is let through goes on as the bytes that came, so they must not mean something else to whoever reads them next:
no name twice, none that differs from a known one in case alone (some readers do not see case), no half characters. A
message with an end of line inside is written anew, since some readers would find another message there.
Source: JSON-RPC 2.0; RFC 8259; ours.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from interlock.model.records import dataclass

MAX_BYTES = 32 * 1024 * 1024
"""A longer message is none that is read: pictures in an answer stay below."""
MAX_DEPTH = 64
_ENVELOPE = frozenset(("jsonrpc", "id", "method", "params", "result", "error"))
_PARAMS = frozenset(
    (
        "name",
        "arguments",
        "_meta",
        "task",
        "uri",
        "ref",
        "argument",
        "context",
        "inputresponses",
        "requeststate",
    )
)
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, BAD_PARAMETERS, INTERNAL = -32700, -32600, -32601, -32602, -32603
Id = int | str
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, of either side. Takes: `raw`, the bytes that came, without the end of the line."""

    id: Id
    method: str
    params: Mapping[str, Any]
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message that nobody answers."""

    method: str
    params: Mapping[str, Any]
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer. Takes: `id`, None of an error whose request could not be told; `result`, None where `error` is set."""

    id: Id | None
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Bytes that are no message, or more than one. Takes: `code`, that of JSON-RPC; `id`, where it could be told."""

    why: str
    code: int = INVALID_REQUEST
    id: Id | None = None


Message = Request | Notification | Response | Unreadable


class _TwoReadings(ValueError):
    """Two readers may read it differently."""


def read(raw: bytes | None) -> Message:
    """Read one message, None for one that was too long to be kept.

    Holds: never raises; what is not exactly one message is `Unreadable`.
    """
    if raw is None or len(raw) > MAX_BYTES:
        return Unreadable(why=f"the message is longer than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        text = raw.decode()
        found = _decoder.decode(text)
        if text.count("{") + text.count("[") > MAX_DEPTH and _is_deep(found):
            return Unreadable(why=f"it is nested deeper than {MAX_DEPTH} levels")
        if _HALF.search(text):
            _check_whole(found)
    except _TwoReadings as error:
        return Unreadable(why=str(error))
    except (ValueError, RecursionError):
        return Unreadable(why="it is not JSON", code=PARSE_ERROR)
    if isinstance(found, list):
        return Unreadable(why="several messages at once (a batch), which the protocol no longer has")
    if not isinstance(found, dict):
        return Unreadable(why="it is no JSON object")
    if b"\r" in raw or b"\n" in raw:
        # Some readers end a line there, and would find another message inside of this one.
        raw = written(found)
    return _message(found, raw)


def written(message: Mapping[str, Any]) -> bytes:
    """Write a message, without the end of a line."""
    return json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode()


def answer(number: Id | None, result: Mapping[str, Any]) -> bytes:
    """Write the answer to a request."""
    return written({"jsonrpc": "2.0", "id": number, "result": result})


def failure(number: Id | None, code: int, why: str, data: object = None) -> bytes:
    """Write that a request failed."""
    error: Tree = {"code": code, "message": f"interlock: {why}"}
    if data is not None:
        error["data"] = data
    return written({"jsonrpc": "2.0", "id": number, "error": error})


def value_in(text: str) -> Any:
    """Return the object or list that a text is, None where it is none, or could be read in two ways."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = _decoder.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and not _is_deep(value) else None


def is_id(value: object) -> bool:
    """Say whether a value may be a request's id."""
    return type(value) in (int, str)


def _message(found: Tree, raw: bytes) -> Message:
    number = found.get("id") if is_id(found.get("id")) else None
    if alike := _alike(found, _ENVELOPE):
        return Unreadable(why=f"a name of the message could be read as `{alike}`", id=number)
    if found.get("jsonrpc") != "2.0":
        return Unreadable(why="it is not JSON-RPC 2.0", id=number)
    if "method" not in found:
        return _response(found, number, raw)
    method, params = found["method"], found.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict) or "result" in found or "error" in found:
        return Unreadable(why="it is neither a request nor an answer", id=number)
    if alike := _alike(params, _PARAMS):
        return Unreadable(why=f"a parameter could be read as `{alike}`", id=number)
    if "id" not in found:
        return Notification(method=method, params=params, raw=raw)
    if number is None:
        return Unreadable(why="the request's `id` is neither text nor a whole number")
    return Request(id=number, method=method, params=params, raw=raw)


def _response(found: Tree, number: Id | None, raw: bytes) -> Message:
    result, error = found.get("result"), found.get("error")
    if ("result" in found) == ("error" in found) or "params" in found:
        return Unreadable(why="it is neither a request nor an answer", id=number)
    if "error" in found:
        if not isinstance(error, dict) or type(error.get("code")) is not int:
            return Unreadable(why="its `error` has no code", id=number)
        return Response(id=number, result=None, error=error, raw=raw)
    if number is None or not isinstance(result, dict):
        return Unreadable(why="an answer without an id, or whose result is no object", id=number)
    return Response(id=number, result=result, error=None, raw=raw)


def _alike(found: Iterable[str], known: frozenset[str]) -> str:
    """Return a name that differs from a known one, or from another one here, in case alone; `""` for none."""
    seen: set[str] = set()
    for name in found:
        folded = name.casefold()
        if folded in seen or (folded in known and folded != name and name not in _CAMEL):
            return folded
        seen.add(folded)
    return ""


_CAMEL = frozenset(("inputResponses", "requestState"))


def _once(pairs: list[tuple[str, Any]]) -> Tree:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise _TwoReadings("a name is there twice")
    return record


def _no_constant(_text: str) -> NoReturn:
    raise ValueError("no JSON number")


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _TwoReadings("a number is too large to be read")
    return value


_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_number)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _check_whole(value: Any) -> None:
    """Check that no text holds half a character. Raises: ValueError."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _TwoReadings("a text holds half a character") from None
