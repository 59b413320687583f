"""A call that an agent's own hook asks about, from inside the sandbox (`POST http://interlock.internal/calls`).

It is decided as a call that the model announced, and what the model's own traffic had decided already is not decided
twice. Its result is not taken from here: what came of it the model is told in its next request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from interlock.boundary.net.gate import Answered, Passage, Passed, Refused
from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import ExceptionType, SemanticException

if TYPE_CHECKING:
    from interlock.runtime.auditing import Auditing

CALLS_PATH = "/calls"
_KEYS = {"call", "tool", "arguments"}
_NAME_CHARS = 200

PARKS = SemanticException(
    type=ExceptionType.PROVENANCE,
    violated_rule="placeholder",
    rationale="this call would wait for the end of the run, and the agent makes it itself, at once",
    constraints=("a call that the agent makes cannot be made later for it",),
    allowed_objective="go on without it, and say in your answer what you left out",
)


def asks(request: NetRequest) -> bool:
    """Say whether a request to the boundary itself is a hook's."""
    return request.method == "POST" and request.path == CALLS_PATH


def settle(
    effect_id: str,
    request: NetRequest,
    auditing: Auditing,
    answer: Callable[[Answered], None],
    run: Callable[[Coroutine[Any, Any, None]], object],
) -> None:
    """Decide a hook's call, and answer the hook, at once or when somebody has answered.

    Takes: `answer`, what the hook is to be told; `run`, which has the loop wait.
    """
    call = read(request)
    if call is None:
        answer(_said(effect_id, 400, {"error": "no call of a tool that can be read"}))
        return
    passage = auditing.hooked(call)
    if not isinstance(passage, Awaitable):
        answer(_told(effect_id, passage))
        return
    waited = passage

    async def wait() -> None:
        try:
            came = await waited
        except asyncio.CancelledError:
            return  # the run is over, and nobody waits
        answer(_told(effect_id, came))

    run(wait())


def read(request: NetRequest) -> ToolCall | None:
    """Return the call that a hook asks about, None where it cannot be read."""
    try:
        said: Any = json.loads(request.body_text or "", object_pairs_hook=_once)
        arguments = json.loads(said["arguments"], object_pairs_hook=_once)
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    if not isinstance(said, dict) or said.keys() != _KEYS or not isinstance(arguments, dict):
        return None
    call, tool = said["call"], said["tool"]
    if not isinstance(call, str) or not isinstance(tool, str) or not tool:
        return None
    if len(tool) > _NAME_CHARS or len(call) > _NAME_CHARS:
        return None
    text = json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return ToolCall(call=call, tool=tool, arguments=text)


def _told(effect_id: str, passage: Passage) -> Answered:
    if isinstance(passage, Passed):
        return _said(effect_id, 200, {"decision": "pass"})
    told = passage.exception if isinstance(passage, Refused) else PARKS
    exception = {
        "type": told.type.value,
        "violated_rule": told.violated_rule,
        "rationale": told.rationale,
        "constraints": list(told.constraints),
        "allowed_objective": told.allowed_objective,
    }
    return _said(effect_id, 200, {"decision": "refuse", "exception": exception})


def _said(effect_id: str, status: int, content: dict[str, object]) -> Answered:
    body = (json.dumps(content) + "\n").encode()
    return Answered(effect_id=effect_id, status=status, content_type="application/json", body=body)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands there twice")
    return made
