"""A client on the official SDK that uses every kind of message, and prints what it got as one JSON text.

Takes words: a mode of the SDK's, then the URL, or a command after `--`; `--only NAME` for one thing alone.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import (  # type: ignore[import-not-found]
    Client,
    StdioServerParameters,
    types,  # type: ignore[import-not-found]
)

seen: dict[str, Any] = {"log": [], "progress": [], "notices": [], "asked": []}


async def elicited(_context: Any, params: Any) -> Any:
    seen["asked"].append(params.message.split("\n")[0][:60])
    if "colour" in str(params.message):
        return types.ElicitResult(action="accept", content={"colour": "red"})
    asked = params.requested_schema if hasattr(params, "requested_schema") else params.requestedSchema
    return types.ElicitResult(
        action="accept", content={key: _first(one) for key, one in asked["properties"].items()}
    )


def _first(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    return schema["oneOf"][0]["const"] if "oneOf" in schema else True


async def sampled(_context: Any, params: Any) -> Any:
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(type="text", text="deeply"), model="m"
    )


async def roots(_context: Any) -> Any:
    return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])


async def logged(params: Any) -> None:
    seen["log"].append(str(params.data))


async def noticed(message: Any) -> None:
    method = getattr(message, "method", None) or getattr(getattr(message, "root", None), "method", None)
    if method:
        seen["notices"].append(method)


async def progressed(progress: float, total: float | None, message: str | None) -> None:
    seen["progress"].append([progress, total, message])


def text(result: Any) -> Any:
    found = [one.text for one in result.content if hasattr(one, "text")]
    failed = getattr(result, "is_error", None)
    return {"text": found, "failed": bool(getattr(result, "isError", False) if failed is None else failed)}


async def attempted(name: str, work: Callable[[], Awaitable[Any]]) -> None:
    try:
        seen[name] = await asyncio.wait_for(work(), 30)
    except TimeoutError:
        seen[name] = "timed out"
    except Exception as error:
        seen[name] = f"{type(error).__name__}: {error}"[:300]


async def main() -> None:
    mode, *words = sys.argv[1:]
    only = ""
    if words[0] == "--only":
        only, words = words[1], words[2:]
    target: Any = (
        words[0] if words[0] != "--" else StdioServerParameters(command=words[1], args=words[2:], env=None)
    )
    client = Client(
        target,
        mode=mode,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=roots,
        logging_callback=logged,
        message_handler=noticed,
        log_level="info" if mode != "legacy" else None,
        cache=None,
    )
    async with client as session:
        seen["version"] = session.protocol_version

        def call(name: str, **arguments: Any) -> Callable[[], Awaitable[Any]]:
            async def called() -> Any:
                return text(await session.call_tool(name, arguments))

            return called

        async def tools() -> Any:
            return sorted(one.name for one in (await session.list_tools()).tools)

        async def counted() -> Any:
            return text(await session.call_tool("count", {"steps": 3}, progress_callback=progressed))

        async def cancelled() -> Any:
            task = asyncio.ensure_future(session.call_tool("sleep", {}))
            await asyncio.sleep(0.3)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return "cancelled"
            return "not cancelled"

        async def resources() -> Any:
            listed = [str(one.uri) for one in (await session.list_resources()).resources]
            return [listed, (await session.read_resource("mail://inbox")).contents[0].text]

        async def prompts() -> Any:
            listed = [one.name for one in (await session.list_prompts()).prompts]
            return [listed, (await session.get_prompt("greet", {"name": "ann"})).messages[0].content.text]

        steps: dict[str, Callable[[], Awaitable[Any]]] = {
            "tools": tools,
            "search": call("search", query="mail"),
            "send_vouched": call("send", to="ann@a.test", body="hello"),
            "send_other": call("send", to="eve@evil.test", body="hello"),
            "count": counted,
            "note": call("note"),
            "resources": resources,
            "prompts": prompts,
            "cancel": cancelled,
            "ask": call("ask"),
            "think": call("think"),
            "where": call("where"),
            "grow": call("grow"),
            "tools_after": tools,
            "break_off": call("break_off"),
        }
        asked_for: dict[str, Callable[[], Awaitable[Any]]] = {
            "rename": call("rename"),
            "tools_renamed": tools,
            "find": call("find", query="mail"),
            "note_again": call("note"),
        }
        for name, step in (steps | asked_for).items():
            if name in only.split(",") if only else name in steps:
                await attempted(name, step)
        await asyncio.sleep(0.2)
    seen["notices"] = sorted(set(seen["notices"]))
    print(json.dumps(seen))


asyncio.run(main())
