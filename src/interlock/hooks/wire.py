"""What each agent says to a hook before a tool runs, and the one answer that really blocks there.

Takes no other answer into use: `ask` lets the effect through in Codex and hangs a headless Gemini CLI, `allow` would
switch the user's own permission prompts off in Claude Code and is no answer at all in Codex.
Source: the hook references of Claude Code, Codex and Gemini CLI; measured with claude-code 2.1.332, codex 0.171.0 and
gemini-cli 0.61.0.
"""

from __future__ import annotations

import json
from typing import Any

from interlock.model.errors import InputError
from interlock.model.records import dataclass

AGENTS = ("claude", "codex", "gemini")
INPUT_BYTES = 16 * 1024 * 1024
"""What an agent may say to a hook: a tool that writes a file brings all of its text."""
_BEFORE = {"claude": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool"}
_NAME_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCall:
    """A tool call that an agent is about to make.

    Takes: `call_id`, the model's own id of it, `""` where the agent does not say it; `arguments`, a JSON object as
    canonical text.
    """

    call_id: str
    tool: str
    arguments: str


def read_call(agent: str, said: bytes) -> HookedCall | None:
    """Read what an agent says to its hook. Returns: None for an event at which no tool is about to run.

    Raises: InputError, for what cannot be read: the tool must not run then.
    """
    if len(said) > INPUT_BYTES:
        raise InputError("the hook's input is larger than is read")
    try:
        event: Any = json.loads(said.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InputError("the hook's input is no JSON that can be read") from error
    if not isinstance(event, dict) or not isinstance(event.get("hook_event_name"), str):
        raise InputError("the hook's input names no `hook_event_name`")
    if event["hook_event_name"] != _BEFORE[agent]:
        return None
    tool, arguments, call_id = event.get("tool_name"), event.get("tool_input"), event.get("tool_use_id", "")
    if not isinstance(tool, str) or not tool or len(tool) > _NAME_CHARS or not isinstance(call_id, str):
        raise InputError("the hook's input names no tool")
    if not isinstance(arguments, dict):
        raise InputError("the hook's input has no arguments", hint="the tool's arguments are a JSON object")
    text = json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError("the tool's arguments hold half a character (a lone surrogate)") from error
    return HookedCall(call_id=call_id[:_NAME_CHARS], tool=tool, arguments=text)


def denial(agent: str, reason: str) -> str:
    """Return the answer by which a hook keeps the tool from running; silence lets the agent go on by its own rules."""
    if agent == "gemini":
        return json.dumps({"decision": "deny", "reason": reason})
    return json.dumps(
        {
            "hookSpecificOutput": {
                "hookEventName": _BEFORE[agent],
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }
        }
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a key stands there twice, and nobody knows which one the agent goes by")
    return read
