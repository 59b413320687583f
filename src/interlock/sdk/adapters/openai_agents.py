"""The OpenAI Agents SDK: its function tools, guarded (`pip install 'interlock[openai-agents]'`)."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from interlock.model.errors import InputError
from interlock.sdk.adapters import Guards, Roles, arguments_of, check_schema, needed, told
from interlock.sdk.arguments import canonical
from interlock.sdk.calling import Guarded
from interlock.sdk.errors import ArgumentError

if TYPE_CHECKING:
    from interlock.sdk.monitor import Monitor


def guard_tools(monitor: Monitor, tools: Iterable[Any], roles: Roles | None = None) -> list[Any]:
    """Return function tools to give to an `Agent`, each guarded by the monitor's open scope.

    Takes: `tools`, of `function_tool`; `roles`, by a tool's name, where the policy does not say them.
    Raises: InputError, for a tool that the provider makes, which nobody here could hold, and for a schema that is none.
    """
    kind = needed("openai-agents", "openai-agents", _function_tool)
    guards = Guards(monitor, roles)
    found = []
    for tool in tools:
        if not isinstance(tool, kind):
            raise InputError(
                f"a `{type(tool).__name__}` is called where this program does not see it",
                hint="guard function tools; leave hosted tools out, or put a function of your own in their place",
            )
        check_schema(tool.name, tool.params_json_schema)
        found.append(_guarded(monitor, guards.of(tool.name), tool))
    return found


def _function_tool() -> Any:
    from importlib import import_module

    return import_module("agents").FunctionTool


def _guarded(monitor: Monitor, guarded: Guarded, tool: Any) -> Any:
    inner = tool.on_invoke_tool

    async def invoke(context: Any, text: str) -> Any:
        try:
            arguments = arguments_of(tool.name, text)
        except InputError as error:
            return f"{error.message}; {error.hint}"
        # What was decided is what is read again: never the model's own spelling of it.
        decided = canonical(arguments)

        async def made(**_arguments: Any) -> Any:
            return await inner(context, decided)

        try:
            came = await monitor.acall(
                guarded.calling(made, is_async=True), arguments, call_id=context.tool_call_id or ""
            )
        except ArgumentError as error:
            return f"{error.message}; {error.hint}"
        return told(came)

    held = copy.copy(tool)
    held.on_invoke_tool = invoke
    return held
