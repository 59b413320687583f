"""Which nodes of a ledger a user means: numbers, ranges and kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.verify import ReadNode

_HINT = "give numbers, ranges (3-7) or kinds (check,tool_call,prompt), with commas; or `all`, or `none`"


def nodes_named(words: str, nodes: Iterable[ReadNode]) -> frozenset[int]:
    """Return the nodes that are meant. Raises: InputError, if a word names none."""
    kinds: dict[str, set[int]] = {}
    count = 0
    for node in nodes:
        kinds.setdefault(node.kind, set()).add(node.seq)
        count += 1
    named = [one.strip() for one in words.split(",") if one.strip()]
    if named in (["all"], ["none"]):
        return frozenset(range(count) if named == ["all"] else ())
    found: set[int] = set()
    for word in named:
        first, dash, last = word.partition("-")
        if first.isdecimal() and (last.isdecimal() or not dash):
            low, high = int(first), int(last or first)
            if not low <= high < count:
                raise InputError(f"there is no node `{word}`", hint=f"the ledger has 0 to {count - 1}")
            found.update(range(low, high + 1))
        elif kind := kinds.get(word.replace("-", "_")):
            found |= kind
        else:
            raise InputError(f"`{word}` names no node of this run", hint=_HINT)
    if not found:
        raise InputError("no node is named", hint=_HINT)
    return frozenset(found)
