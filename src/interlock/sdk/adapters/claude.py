"""The Claude Agent SDK: in-process tools guarded where they run, and by its hooks every tool that the CLI runs itself.

`pip install 'interlock[claude]'`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interlock.model.errors import InputError
from interlock.sdk.adapters import Guards, Roles, needed, parsed, told
from interlock.sdk.answers import Seen
from interlock.sdk.calling import Guarded
from interlock.sdk.errors import ArgumentError, Refusal
from interlock.sdk.placeholder import Placeholder

if TYPE_CHECKING:
    from interlock.sdk.monitor import Monitor

HOOK_SECONDS = 600.0
"""How long the CLI waits for a hook: an oracle may think."""
_SERVED = "mcp__"


def guard_tools(monitor: Monitor, tools: Iterable[Any], roles: Roles | None = None) -> list[Any]:
    """Return tools for `create_sdk_mcp_server`, each guarded by the monitor's open scope.

    Takes: `tools`, of the decorator `tool`; `roles`, by a tool's name, where the policy does not say them.
    Raises: InputError, for what is no such tool.
    """
    kind = needed("claude-agent-sdk", "claude", _sdk).SdkMcpTool
    guards = Guards(monitor, roles)
    found = []
    for tool in tools:
        if not isinstance(tool, kind):
            raise InputError(
                f"a `{type(tool).__name__}` is no in-process tool of the Claude Agent SDK",
                hint="make one with its decorator `tool`",
            )
        found.append(_guarded(monitor, guards.of(tool.name), tool))
    return found


def _sdk() -> Any:
    from importlib import import_module

    return import_module("claude_agent_sdk")


def _guarded(monitor: Monitor, guarded: Guarded, tool: Any) -> Any:
    async def handler(arguments: Any) -> dict[str, Any]:
        async def made(**_arguments: Any) -> Seen:
            return _seen(await tool.handler(arguments))

        try:
            came = await monitor.acall(guarded.calling(made, is_async=True), dict(arguments))
        except ArgumentError as error:
            return _text(f"{error.message}; {error.hint}", failed=True)
        if isinstance(came, Refusal | Placeholder):
            return _text(told(came), failed=isinstance(came, Refusal))
        answer: dict[str, Any] = came
        return answer

    return replace(tool, handler=handler)


def _text(text: str, *, failed: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "is_error": failed}


def _seen(came: Any) -> Seen:
    parts = came.get("content", []) if isinstance(came, dict) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    whole = len(texts) == len(parts) == 1
    says = parsed(texts[0]) if whole else parts
    return Seen(value=came, says=says, failed=isinstance(came, dict) and bool(came.get("is_error")))


class Hooks:
    """Guards the tools that the CLI runs itself (`Bash`, `Write`, tools of other servers), by its hooks.

    Takes: `beside`, names of servers whose tools are guarded where they run (`guard_tools`); `roles`, by the CLI's name
    of a tool, where the policy does not say them.
    Holds: what is let through here may still be denied by the CLI's own rules, and then stands as unknown; such a call
    cannot wait for the scope's end, for nobody but the CLI can make it.
    """

    def __init__(self, monitor: Monitor, roles: Roles | None = None, *, beside: Iterable[str] = ()) -> None:
        self._monitor = monitor
        self._guards = Guards(monitor, roles)
        self._beside = tuple(f"{_SERVED}{name}__" for name in beside)
        self._flying: dict[str, tuple[asyncio.Future[Seen], asyncio.Task[Any]]] = {}

    def for_options(self) -> dict[str, Any]:
        """Return what `ClaudeAgentOptions(hooks=…)` takes. Holds: a hook that fails blocks the call."""
        matcher = needed("claude-agent-sdk", "claude", _sdk).HookMatcher

        def one(hook: Any) -> list[Any]:
            return [matcher(hooks=[hook], timeout=HOOK_SECONDS, on_failure="block")]

        return {
            "PreToolUse": one(self.before),
            "PostToolUse": one(self.after),
            "PostToolUseFailure": one(self.after),
        }

    async def before(self, given: Any, tool_use_id: str | None, _context: Any) -> dict[str, Any]:
        """Put a call to the monitor before the CLI makes it."""
        name = given["tool_name"]
        if name.startswith(self._beside) and self._beside:
            return {}
        call_id = given.get("tool_use_id") or tool_use_id or ""
        loop = asyncio.get_running_loop()
        passed: asyncio.Future[None] = loop.create_future()
        outcome: asyncio.Future[Seen] = loop.create_future()

        async def made(**_arguments: Any) -> Seen:
            passed.set_result(None)
            return await outcome

        scope = self._monitor.current()
        if scope.parks(name):
            return _denied(f"`{name}` parks by the policy, and a call that the CLI makes cannot wait")
        task = asyncio.ensure_future(
            self._monitor.acall(
                self._guards.of(name).calling(made, is_async=True), given["tool_input"], call_id=call_id
            )
        )
        await asyncio.wait((task, passed), return_when=asyncio.FIRST_COMPLETED)
        if passed.done():
            self._flying[call_id] = (outcome, task)
            scope.sign()  # the CLI may outlive this program
            return {}
        try:
            came = task.result()
        except InputError as error:
            return _denied(f"{error.message}; {error.hint}")
        return _denied(str(told(came)))

    async def after(self, given: Any, tool_use_id: str | None, _context: Any) -> dict[str, Any]:
        """Record what a call of the CLI's came to."""
        outcome, task = self._flying.pop(given.get("tool_use_id") or tool_use_id or "", (None, None))
        if outcome is not None and task is not None and not outcome.done():
            failed = "error" in given
            says = given["error"] if failed else given.get("tool_response")
            outcome.set_result(Seen(value=None, says=says, failed=failed))
            await asyncio.wait((task,))  # what it said counts for the next call
        return {}


def _denied(reason: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }
