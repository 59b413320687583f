"""LangChain's tools, and so LangGraph's, guarded (`pip install 'interlock[langchain]'`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from interlock.model.errors import InputError
from interlock.sdk.adapters import Guards, Roles, check_schema, needed, parsed, told
from interlock.sdk.answers import Seen
from interlock.sdk.calling import Guarded
from interlock.sdk.errors import ArgumentError, Refusal
from interlock.sdk.placeholder import Placeholder

if TYPE_CHECKING:
    from interlock.sdk.monitor import Monitor


def guard_tools(monitor: Monitor, tools: Iterable[Any], roles: Roles | None = None) -> list[Any]:
    """Return tools to give to an agent, a `ToolNode` or `bind_tools`, each guarded by the monitor's open scope.

    Takes: `tools`, each a `BaseTool`; `roles`, by a tool's name, where the policy does not say them.
    Raises: InputError, for what is no tool, and for a schema that is none.
    Holds: what a graph puts in by itself (its state, its store) is no argument: no agent chooses it.
    """
    base = needed("langchain-core", "langchain", _base_tool)
    guards = Guards(monitor, roles)
    found = []
    for tool in tools:
        if not isinstance(tool, base):
            raise InputError(
                f"a `{type(tool).__name__}` is no tool of LangChain's",
                hint="make one of it first: langchain_core.tools.tool(function)",
            )
        schema = tool.tool_call_schema
        check_schema(tool.name, schema if isinstance(schema, dict) else schema.model_json_schema())
        found.append(_guarded(monitor, guards.of(tool.name), tool))
    return found


def _base_tool() -> Any:
    from importlib import import_module

    return import_module("langchain_core.tools").BaseTool


def _guarded(monitor: Monitor, guarded: Guarded, tool: Any) -> Any:
    """Return a copy of a tool whose runs are put to the monitor first; to a graph it is the same tool."""
    kind: Any = type(tool)

    def run(self: Any, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        def made(**_arguments: Any) -> Seen:
            return _seen(kind.run(self, tool_input, *args, tool_call_id=tool_call_id, **kwargs))

        one = guarded.calling(made, is_async=False)
        try:
            came = monitor.call(one, _chosen(self, tool_input), call_id=tool_call_id or "")
        except ArgumentError as error:
            return _message(self, f"{error.message}; {error.hint}", tool_call_id, failed=True)
        return _answer(self, came, tool_call_id)

    async def arun(
        self: Any, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any
    ) -> Any:
        async def made(**_arguments: Any) -> Seen:
            return _seen(await kind.arun(self, tool_input, *args, tool_call_id=tool_call_id, **kwargs))

        one = guarded.calling(made, is_async=True)
        try:
            came = await monitor.acall(one, _chosen(self, tool_input), call_id=tool_call_id or "")
        except ArgumentError as error:
            return _message(self, f"{error.message}; {error.hint}", tool_call_id, failed=True)
        return _answer(self, came, tool_call_id)

    held = tool.model_copy()
    held.__class__ = type(kind.__name__, (kind,), {"run": run, "arun": arun, "__module__": kind.__module__})
    return held


def _chosen(tool: Any, tool_input: Any) -> dict[str, Any]:
    """Return the arguments that the model wrote."""
    schema = tool.tool_call_schema
    names = list(schema.get("properties", {})) if isinstance(schema, dict) else list(schema.model_fields)
    if not isinstance(tool_input, dict):
        return {names[0] if names else "input": tool_input}
    injected = set(tool.get_input_schema().model_fields) - set(names)
    return {name: value for name, value in tool_input.items() if name not in injected}


def _seen(came: Any) -> Seen:
    content = getattr(came, "content", came)
    says = parsed(content) if isinstance(content, str) else content
    return Seen(value=came, says=says, failed=getattr(came, "status", "") == "error")


def _answer(tool: Any, came: Any, tool_call_id: str | None) -> Any:
    if isinstance(came, Refusal | Placeholder):
        return _message(tool, told(came), tool_call_id, failed=isinstance(came, Refusal))
    return came


def _message(tool: Any, text: str, tool_call_id: str | None, *, failed: bool) -> Any:
    if tool_call_id is None:
        return text
    from importlib import import_module

    status = "error" if failed else "success"
    return import_module("langchain_core.messages").ToolMessage(
        text, tool_call_id=tool_call_id, name=tool.name, status=status
    )
