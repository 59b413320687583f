"""A server made with the official SDK that uses all of the protocol; run by the Python that has it."""

# mypy: disable-error-code="untyped-decorator, misc"

from __future__ import annotations

from typing import Any

import anyio
import mcp.types as t
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("all")


class Shape(BaseModel):
    """An answer with a shape."""

    name: str
    size: int


class Choice(BaseModel):
    """What the user is asked for."""

    word: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@server.tool()
def shaped(name: str) -> Shape:
    """Answer with a shape."""
    return Shape(name=name, size=len(name))


@server.tool()
def fails() -> str:
    """Fail."""
    raise ValueError("it cannot be done")


@server.tool()
async def tells(steps: int, context: Context) -> str:
    """Tell how far it is."""
    for step in range(steps):
        await context.report_progress(step + 1, steps)
        await context.info(f"step {step + 1}")
    return "told"


@server.tool()
async def asks(context: Context) -> str:
    """Ask the user."""
    came = await context.elicit("which word?", Choice)
    return f"{came.action} {came.data.word if came.action == 'accept' else ''}"


@server.tool()
async def samples(context: Context) -> str:
    """Ask the client's model."""
    message = t.SamplingMessage(role="user", content=t.TextContent(type="text", text="say hello"))
    came = await context.session.create_message([message], max_tokens=10)
    return str(came.model)


@server.tool()
async def looks(context: Context) -> str:
    """Ask for the client's folders."""
    came = await context.session.list_roots()
    return ", ".join(str(root.uri) for root in came.roots)


@server.tool()
async def grows(context: Context) -> str:
    """Offer one tool more."""
    server.add_tool(grown)
    await context.session.send_tool_list_changed()
    return "grown"


def grown() -> str:
    """Be there."""
    return "here"


@server.tool()
async def needs(context: Context) -> str | t.InputRequiredResult:
    """Ask the user within the answer (2026-07-28)."""
    if context.input_responses is None:
        schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        asked = t.ElicitRequest(
            params=t.ElicitRequestFormParams(message="which word?", requested_schema=schema)
        )
        return t.InputRequiredResult(input_requests={"first": asked}, request_state="half way")
    return f"needed {context.input_responses['first']} {context.request_state}"


@server.tool()
async def slow() -> str:
    """Take long."""
    await anyio.sleep(20)
    return "late"


@server.resource("note://first")
def first() -> str:
    """Be the first note."""
    return "the first note"


@server.resource("note://{name}")
def note(name: str) -> str:
    """Be a note."""
    return f"the note {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greet."""
    return f"say hello to {name}"


@server.completion()
async def complete(_reference: Any, _argument: Any, _context: Any) -> t.Completion:
    """Complete anything."""
    return t.Completion(values=["xavier", "xenia"], total=2, has_more=False)


server.run()
