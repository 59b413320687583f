"""Calls of an answer and results of a request as the core takes them, and what is told of a call that is not made."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from interlock.boundary.lens.calls import canonical
from interlock.boundary.lens.outcomes import Facts
from interlock.boundary.net.inflating import inflate_sent
from interlock.model.actions import AnnouncedCall, HeldCall
from interlock.model.requests import NetRequest, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import ExceptionType, SemanticException

if TYPE_CHECKING:
    from interlock.boundary.lens.requests import BroughtResult
    from interlock.boundary.net.gate import Body

MAX_TEXT = 500_000
"""Characters of a result that are kept; of a longer one its digest alone."""
MAX_BODY = 16 * 1024 * 1024
"""A larger request is not read: the results that it brings stay unknown."""
NO_FACTS = Facts()
_TEXT = "input"
"""The argument that a call has whose wire gives it a text and no arguments."""


def refused_by_fault(fault: str) -> SemanticException:
    """Return what the model is told of a call where the audit itself failed."""
    return SemanticException(
        type=ExceptionType.STOP,
        violated_rule="lens.fault",
        rationale=f"the call was not made, since it could not be checked: {fault}",
        constraints=("a call is made only when it was checked",),
        allowed_objective="end the task, and say in your answer what is left undone",
    )


def refused_unreadable(fault: str) -> SemanticException:
    """Return what the model is told of a call that cannot be read."""
    return SemanticException(
        type=ExceptionType.RULE,
        violated_rule="lens.unreadable",
        rationale=f"the call was not made, since it cannot be read: {fault}",
        constraints=("a call is made only when all of it can be read",),
        allowed_objective="make the call again with a name and arguments that are one JSON object",
    )


def group_of(call_id: str, tool: str) -> tuple[str, str]:
    """Return by what a call and its result find each other: the id, else the tool."""
    return (call_id, "") if call_id else ("", tool)


def key_of(call: ToolCall, request: str) -> tuple[str, ...]:
    """Return by what a call is known again. Takes: `request`, the digest of its question: it counts without an id."""
    arguments = sha256(call.arguments.encode("utf-8", "surrogatepass")).hexdigest()
    return (call.call, call.tool, arguments, "" if call.call else request)


def announced_of(held: HeldCall) -> AnnouncedCall:
    """Return a call as it is told of where nobody decides it: its arguments within a bound."""
    arguments = canonical(json.loads(held.arguments))
    return AnnouncedCall(call_id=held.call_id, tool=held.tool, arguments=arguments)


def arguments_of(given: str) -> str:
    """Return arguments as the core takes them: a text that is no JSON object is one argument."""
    if not given.startswith('"'):
        return given
    return f'{{"{_TEXT}":{given}}}'


def result_of(brought: BroughtResult) -> ToolResult:
    """Return a result as the core takes it; a text that is one JSON object or list is the structure that it writes."""
    text, structured = brought.text, False
    if len(text) <= MAX_TEXT and text.lstrip()[:1] in ("{", "["):
        written = _structure(text)
        text, structured = (text, False) if written is None else (written, True)
    return ToolResult(
        outcome=Outcome.FAILED if brought.failed else Outcome.DONE,
        text=text if len(text) <= MAX_TEXT and _has_utf8(text) else None,
        structured=structured,
        size_bytes=brought.size_bytes,
        digest=brought.digest,
    )


def _structure(text: str) -> str | None:
    """Return a JSON text in its canonical writing, None for one that is none, or that has two readings."""
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _refuse(_word: str) -> object:
    raise ValueError("no number")


def _has_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def body_of(request: NetRequest, body: Body | None) -> bytes:
    """Return a request's body, decompressed; `b""` where there is none that can be read within the bound."""
    if request.body_text is not None:
        return request.body_text.encode("utf-8", "surrogatepass")
    if body is None or body.size_bytes > MAX_BODY:
        return b""
    data = b"".join(body.chunks())
    coding = next((value for name, value in request.headers if name == "content-encoding"), "")
    return (inflate_sent(data, coding, MAX_BODY) or b"") if coding else data


def facts_of(wire: str, body: bytes) -> Facts:
    """Return what a whole answer says of itself."""
    from interlock.boundary.lens.auditing import AnswerAudit

    audit = AnswerAudit(wire, b"{}")
    audit.feed(body)
    audit.finish()
    return audit.facts
