"""The official SDK's client, as a program: it uses all that a server has, and prints what it saw, as JSON.

Run by the Python that has the SDK: `mcp_sdk_client.py MODE SERVER ARGUMENTS…`, MODE as the SDK's own: auto, legacy.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import mcp.types as t
from mcp.client.stdio import StdioServerParameters, stdio_client

from mcp import Client, MCPError

CALLS: dict[str, dict[str, Any]] = {
    "echo": {"message": "hello"},
    "get-sum": {"a": 2, "b": 3},
    "get-tiny-image": {},
    "get-annotated-message": {"messageType": "success", "includeImage": True},
    "get-structured-content": {"location": "New York"},
    "get-resource-links": {"count": 2},
    "get-resource-reference": {"resourceType": "Text", "resourceId": 1},
    "get-roots-list": {},
    "trigger-long-running-operation": {"duration": 0.2, "steps": 2},
    "trigger-sampling-request": {"prompt": "say hello", "maxTokens": 10},
    "trigger-elicitation-request": {},
    "simulate-research-query": {"topic": "bees", "ambiguous": False},
    "add": {"a": 2, "b": 3},
    "shaped": {"name": "x"},
    "fails": {},
    "tells": {"steps": 2},
    "asks": {},
    "samples": {},
    "looks": {},
    "needs": {},
    "grows": {},
}
"""What is called of each tool that a server has; those of the reference server, and of our own."""


class Seen:
    """What came without being asked for."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    async def elicit(self, _context: Any, params: Any) -> t.ElicitResult:
        self.lines.append(["elicited", params.message])
        asked = params.requested_schema["properties"] if hasattr(params, "requested_schema") else {}
        content = {name: _fill(schema) for name, schema in asked.items()}
        return t.ElicitResult(action="accept", content=content)

    async def sample(self, _context: Any, params: Any) -> t.CreateMessageResult:
        self.lines.append(["sampled", params.messages[0].role])
        return t.CreateMessageResult(
            role="assistant",
            content=t.TextContent(type="text", text="sampled"),
            model="none",
            stopReason="endTurn",
        )

    async def roots(self, _context: Any) -> t.ListRootsResult:
        self.lines.append(["roots"])
        return t.ListRootsResult(roots=[t.Root(uri="file:///work", name="work")])

    async def log(self, params: Any) -> None:
        self.lines.append(["logged", params.level])

    async def other(self, message: Any) -> None:
        method = getattr(message, "method", type(message).__name__)
        if "message" not in str(method):
            self.lines.append(["noted", str(method)])

    async def progress(self, progress: float, total: float | None, _message: str | None) -> None:
        self.lines.append(["progress", progress, total])


def _fill(schema: dict[str, Any]) -> Any:
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema:
        return schema["oneOf"][0]["const"]
    filled = {
        "boolean": True,
        "integer": schema.get("minimum", 1),
        "number": schema.get("minimum", 1),
        "array": [],
    }
    formats = {
        "email": "ann@a.test",
        "uri": "https://a.test",
        "date": "2026-01-01",
        "date-time": "2026-01-01T00:00:00Z",
    }
    return filled.get(schema["type"], formats.get(schema.get("format", ""), "text"))


async def used(client: Client, seen: Seen) -> dict[str, Any]:
    """Use all of it once. Returns: what was said, in the order of asking."""
    found: dict[str, Any] = {"version": client.protocol_version}

    async def keep(name: str, making: Any) -> Any:
        try:
            result = await making
        except MCPError as error:
            found[name] = ["error", error.error.code]
            return None
        found[name] = (
            result.model_dump(mode="json", by_alias=True) if hasattr(result, "model_dump") else repr(result)
        )
        return result

    tools = await keep("tools", client.list_tools())
    for tool in tools.tools:
        if tool.name in CALLS:
            calling = client.call_tool(tool.name, CALLS[tool.name], progress_callback=seen.progress)
            await keep(f"call {tool.name}", calling)
    again = await keep("tools again", client.list_tools())
    if any(tool.name == "grown" for tool in again.tools):
        await keep("call grown", client.call_tool("grown", {}))
    await keep("no such tool", client.call_tool("no-such-tool", {}))
    resources = await keep("resources", client.list_resources())
    await keep("templates", client.list_resource_templates())
    for one in (resources.resources if resources is not None else [])[:3]:
        await keep(f"read {one.uri}", client.read_resource(str(one.uri)))
    prompts = await keep("prompts", client.list_prompts())
    for one in prompts.prompts if prompts is not None else ():
        said = {argument.name: "x" for argument in one.arguments or ()}
        await keep(f"prompt {one.name}", client.get_prompt(one.name, said))
    first = next((one for one in (prompts.prompts if prompts is not None else ()) if one.arguments), None)
    if first is not None:
        reference = t.PromptReference(type="ref/prompt", name=first.name)
        await keep("complete", client.complete(reference, {"name": first.arguments[0].name, "value": "x"}))
    if client.protocol_version < "2026":
        await keep("ping", client.send_ping())
        await keep("level", client.set_logging_level("info"))
        await client.send_roots_list_changed()
    return found


async def cancelled(client: Client) -> bool:
    """Give up a call. Returns: whether the session goes on after it."""
    with anyio.move_on_after(0.3):
        await client.call_tool("slow", {})
    again = await client.list_tools()
    return bool(again.tools)


async def main() -> None:
    mode, command, *arguments = sys.argv[1:]
    seen = Seen()
    server = StdioServerParameters(command=command, args=arguments)
    async with Client(
        stdio_client(server),
        mode=mode,  # type: ignore[arg-type]
        sampling_callback=seen.sample,
        elicitation_callback=seen.elicit,
        list_roots_callback=seen.roots,
        logging_callback=seen.log,
        message_handler=seen.other,
    ) as client:
        found = await used(client, seen)
        if any(tool["name"] == "slow" for tool in found["tools"]["tools"]):
            found["cancelled"] = await cancelled(client)
    print(json.dumps({"found": found, "seen": seen.lines}))


anyio.run(main)
