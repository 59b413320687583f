"""pydantic-ai: a toolset whose calls are guarded (`pip install 'interlock[pydantic-ai]'`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from interlock.model.errors import InputError
from interlock.sdk.adapters import Guards, Roles, check_schema, needed
from interlock.sdk.errors import ArgumentError, Refusal
from interlock.sdk.placeholder import Placeholder

if TYPE_CHECKING:
    from interlock.sdk.monitor import Monitor


def guard_toolset(monitor: Monitor, toolset: Any, roles: Roles | None = None) -> Any:
    """Return a toolset to give to an `Agent`, whose calls are guarded by the monitor's open scope.

    Takes: `toolset`, any of pydantic-ai's, or a list of functions and tools; `roles`, by a tool's name, where the
    policy does not say them.
    Raises: InputError.
    """
    kind = needed("pydantic-ai-slim", "pydantic-ai", _guarded_toolset)
    if isinstance(toolset, list | tuple):
        toolset = _toolsets().FunctionToolset(tools=list(toolset))
    if not isinstance(toolset, _toolsets().AbstractToolset):
        raise InputError(
            f"a `{type(toolset).__name__}` is no toolset of pydantic-ai's",
            hint="give a toolset, or a list of functions",
        )
    return kind(wrapped=toolset, monitor=monitor, guards=Guards(monitor, roles))


def _toolsets() -> Any:
    from importlib import import_module

    return import_module("pydantic_ai.toolsets")


@lru_cache(maxsize=1)
def _guarded_toolset() -> Any:
    base: Any = _toolsets().WrapperToolset

    async def get_tools(self: Any, ctx: Any) -> Any:
        found = await base.get_tools(self, ctx)
        for name, tool in found.items():
            check_schema(name, tool.tool_def.parameters_json_schema)
        return found

    async def call_tool(self: Any, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        async def made(**_arguments: Any) -> Any:
            return await base.call_tool(self, name, tool_args, ctx, tool)

        guarded = self.guards.of(name).calling(made, is_async=True)
        try:
            came = await self.monitor.acall(guarded, tool_args, call_id=ctx.tool_call_id or "")
        except ArgumentError as error:
            return f"{error.message}; {error.hint}"
        return came.as_json() if isinstance(came, Refusal | Placeholder) else came

    return dataclass(
        type(
            "GuardedToolset",
            (base,),
            {
                "__annotations__": {"monitor": Any, "guards": Any},
                "__module__": __name__,
                "get_tools": get_tools,
                "call_tool": call_tool,
            },
        )
    )
