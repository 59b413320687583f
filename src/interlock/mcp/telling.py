"""What a client is told in place of a server's answer: a refusal, a placeholder, a question."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from interlock.boundary.mcp.messages import BAD_PARAMETERS, INTERNAL, Id, answer, failure, written

if TYPE_CHECKING:
    from interlock.mcp.pending import Pending
    from interlock.sdk.errors import Refusal
    from interlock.sdk.placeholder import Placeholder

KEY = "interlock"
"""Under which our question stands in an answer that asks for input (2026-07-28)."""
DECISION, ALLOW, REFUSE = "decision", "allow", "refuse"
_SHOWN_CHARACTERS = 2_000


def refused(pending: Pending, refusal: Refusal) -> bytes:
    """Tell that a request was not made, with the semantic exception: as a tool's error, or as any other method's."""
    if not pending.is_tool:
        return failure(pending.id, BAD_PARAMETERS, refusal.rationale, refusal.as_json())
    return _tool_result(pending, str(refusal), refusal.as_json(), is_error=True)


def waiting(pending: Pending, placeholder: Placeholder, *, is_error: bool) -> bytes:
    """Tell that a call waits. Takes: `is_error`, whether the tool's answer has a shape that a placeholder has not."""
    return _tool_result(pending, placeholder.told(), placeholder.as_json(), is_error=is_error)


def broken(pending: Pending, why: str, *, unknown: bool) -> bytes:
    """Tell that a request has no answer. Takes: `unknown`, whether it may have been done."""
    tail = "; whether it was done is not known" if unknown else "; it was not made"
    return failure(pending.id, INTERNAL, why + tail)


def form(call: str, reason: str, arguments: str) -> dict[str, Any]:
    """Return the form that asks whether a call may be made."""
    shown = arguments[:_SHOWN_CHARACTERS]
    more = len(arguments) - len(shown)
    tail = f" … and {more:,} characters more" if more else ""
    return {
        "message": f"Interlock: may `{call}` be called?\nwhy it is asked: {reason}\narguments: {shown}{tail}",
        "requestedSchema": {
            "type": "object",
            "properties": {
                DECISION: {
                    "type": "string",
                    "title": "Decision",
                    "description": f"`{ALLOW}` makes this one call; `{REFUSE}` tells the agent that it was not made",
                    "enum": [REFUSE, ALLOW],
                }
            },
            "required": [DECISION],
        },
    }


def elicitation(number: str, asked: Mapping[str, Any]) -> bytes:
    """Ask the client with a form, by a request of its own."""
    return written({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": asked})


def withdrawn(number: str) -> bytes:
    """Tell the client that nobody waits for the answer to a form any more."""
    return written({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})


def input_required(number: Id, asked: Mapping[str, Any], state: str) -> bytes:
    """Ask the client with a form, within the answer to its request (2026-07-28)."""
    inner = {"method": "elicitation/create", "params": {"mode": "form", **asked}}
    return answer(
        number, {"resultType": "input_required", "inputRequests": {KEY: inner}, "requestState": state}
    )


def allowed(said: Mapping[str, Any]) -> tuple[bool, str]:
    """Return whether what a client said to a form allows the call, and what it said."""
    action, content = said.get("action"), said.get("content")
    decision = content.get(DECISION) if isinstance(content, dict) else None
    if action == "accept" and decision == ALLOW:
        return True, "the client's user allowed it"
    if action == "accept":
        return False, "the client's user refused it"
    return False, "the client's user declined to answer" if action == "decline" else "the question was closed"


def readable(text: str) -> str:
    """Return arguments as they are shown: no character that hides or moves another."""
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def _tool_result(pending: Pending, text: str, shape: Mapping[str, Any], *, is_error: bool) -> bytes:
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": shape,
        "isError": is_error,
    }
    if pending.modern:
        result["resultType"] = "complete"
    return answer(pending.id, result)
