"""OpenAI responses: the items that the agent itself carries out, and the item that holds the result of each.

Source: OpenAI's documentation of responses and of its tools.
"""

from __future__ import annotations

from typing import Any

from interlock.boundary.lens.calls import text
from interlock.boundary.lens.wires import Document, present

RUN_HERE = {
    "local_shell_call": "local_shell",
    "shell_call": "shell",
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "tool_search_call": "tool_search",
}
"""Item types with a tool of their own, and its name."""
_ASKED = {"apply_patch_call": "operation", "tool_search_call": "arguments"}
CALLS = frozenset(("function_call", "custom_tool_call", *RUN_HERE))


def is_call(item: Document) -> bool:
    """Say whether the agent carries an item out. A search for tools is its own only where it says so."""
    kind = text(item.get("type"))
    return kind in CALLS and (kind != "tool_search_call" or item.get("execution") == "client")


def tool_of(item: Document) -> Any:
    """Return the name of the tool that an item calls, with its namespace where it has one."""
    kind = text(item.get("type"))
    if kind in RUN_HERE:
        return RUN_HERE[kind]
    space, name = item.get("namespace"), item.get("name")
    return f"{space}.{name}" if isinstance(space, str) and space and isinstance(name, str) and name else name


def asked_of(item: Document) -> Any:
    """Return what an item asks its tool, None where it does not say."""
    kind = text(item.get("type"))
    if kind == "function_call":
        return item.get("arguments")
    if kind == "custom_tool_call":
        return item.get("input")
    if kind == "computer_call" and "action" not in item and isinstance(item.get("actions"), list):
        return {"actions": item["actions"]}
    return item.get(_ASKED.get(kind, "action"))


def output_for(item: Document, told: str, *, refused: bool) -> Document | None:
    """Return the item with a call's result, None for a tool whose result can be no text."""
    kind, call_id = text(item.get("type")), text(item.get("call_id")) or text(item.get("id"))
    if not call_id or kind == "computer_call":
        return None
    out: Document = {"type": f"{kind}_output", "call_id": call_id, "output": told}
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": 1}
        return {**out, "output": [{"stdout": "", "stderr": told, "outcome": outcome}]}
    if kind == "apply_patch_call":
        return {**out, "status": "failed"}
    if kind == "tool_search_call":
        return {"type": "tool_search_output", "call_id": call_id, "execution": "client", "tools": []}
    return out


def as_input(item: Document, *, stored: bool) -> Document | None:
    """Return an item of an answer as a request holds it, None for one that must be left out.

    Takes: `stored`, whether the provider keeps its answers, and so knows items by their ids.
    """
    item = present(item)
    if item.get("type") == "reasoning":
        item.pop("status", None)
        return item if stored or item.get("encrypted_content") else None
    if not stored and (item.get("type") == "message" or item.get("call_id")):
        item.pop("id", None)
    if item.get("type") == "function_call" and not isinstance(item.get("arguments"), str):
        item["arguments"] = "{}"
    return item


def message_item(number: str, said: str) -> Document:
    """Return a message of the assistant."""
    content = [{"type": "output_text", "text": said, "annotations": []}]
    return {
        "type": "message", "id": number, "role": "assistant", "status": "completed", "content": content,
    }  # fmt: skip


def input_items(body: Document) -> list[Any]:
    """Return a request's input as a list of items."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) else []
