"""A toolkit as the text of a file that people read and change: one line an entry, each with its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from interlock.manifest.needs import needs_tree
from interlock.manifest.toolkits import toolkit_tree

if TYPE_CHECKING:
    from interlock.model.toolkits import Needs, Toolkit

_PLAIN = re.compile(r"[A-Za-z_/{][A-Za-z0-9_ ./{}()'+;,-]*[A-Za-z0-9_/})]")
"""A text that YAML reads as itself without quotes, in a line and in a list of this file."""
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
_FLOW = re.compile(r"[A-Za-z_/][A-Za-z0-9_ ./()+-]*")


def text_of(toolkit: Toolkit, head: Iterable[str] = ()) -> str:
    """Return a toolkit's file. Takes: `head`, comment lines that stand above it."""
    tree = toolkit_tree(toolkit)
    lines = [f"# {line}".rstrip() for line in head]
    for key in ("interlock", "name", "version", "description"):
        lines.append(f"{key}: {_scalar(tree[key])}")
    if "needs" in tree:
        lines += ["needs:", *needs_lines(toolkit.needs, "  ")]
    if "tools" in tree:
        lines.append("tools:")
    for name, tool in tree.get("tools", {}).items():
        lines.append(f"  {name}:")
        lines += _tool(tool)
        spec = next(one for one in toolkit.tools if one.name == name)
        if "needs" in tool:
            lines += ["    needs:", *needs_lines(spec.needs, "      ")]
    return "\n".join(lines) + "\n"


def needs_lines(needs: Needs, margin: str) -> list[str]:
    """Return needs as the lines below the key `needs`."""
    tree = needs_tree(needs)
    lines = []
    if calls := tree.get("system_calls"):
        lines.append(f"{margin}system_calls:")
        lines += [f"{margin}  {name}: {_scalar(why)}" for name, why in calls.items()]
    for key in ("paths", "hosts"):
        if key in tree:
            lines.append(f"{margin}{key}:")
            lines += [f"{margin}  - {_flow(one)}" for one in tree[key]]
    if limits := tree.get("limits"):
        lines.append(f"{margin}limits:")
        lines += [f"{margin}  {name}: {_flow(one)}" for name, one in limits.items()]
    return lines


def _tool(tree: dict[str, Any]) -> list[str]:
    lines = []
    for key, value in tree.items():
        if key == "needs" or value in ("", {}):
            continue
        if key in ("parameters", "returns") and isinstance(value, dict) and value.get("properties"):
            lines.append(f"    {key}:")
            rest = {name: one for name, one in value.items() if name != "properties"}
            lines += [f"      {name}: {_flow(one)}" for name, one in rest.items()]
            lines.append("      properties:")
            lines += [f"        {_scalar(name)}: {_flow(one)}" for name, one in value["properties"].items()]
        else:
            lines.append(f"    {key}: {_scalar(value) if isinstance(value, str) else _flow(value)}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS and value[0] != "{":
        return value
    return json.dumps(value, ensure_ascii=False)


def _flow(value: Any) -> str:
    """A value on one line; without quotes where YAML needs none."""
    if isinstance(value, dict):
        ordered = sorted(value.items(), key=lambda item: item[0] != "type")
        return "{" + ", ".join(f"{_flow(key)}: {_flow(one)}" for key, one in ordered) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(one) for one in value) + "]"
    if (
        isinstance(value, str)
        and _FLOW.fullmatch(value)
        and value.lower() not in _WORDS
        and value == value.strip()
    ):
        return value
    return json.dumps(value, ensure_ascii=False)
