"""Placeholder answers, made of the shape of a tool's answer alone: the same for the same tool, arguments and seed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from interlock.bench.injecagent.catalogue import answer_shapes
from interlock.bench.injecagent.shapes import Kind, Shape
from interlock.bench.injecagent.values import value_of
from interlock.manifest.canonical import canonical
from interlock.model.toolkits import ToolSpec

_ENTRIES = 2
"""In a list, where the call asks for no fewer."""
_BOUNDS = ("max_results", "limit", "num_results", "results_per_page")
_TELLING = (
    "body",
    "content",
    "snippet",
    "review_content",
    "message",
    "description",
    "text",
    "note",
    "output",
    "answer",
    "doctor_response",
)
"""Leaves in which others' words stand, the likeliest first."""


def answer(
    spec: ToolSpec, arguments: Mapping[str, Any], seed: int = 0, *, injected: str = ""
) -> dict[str, Any]:
    """Return the placeholder answer of a call.

    Takes: `injected`, what stands in the answer's free text, where it has one.
    Holds: a leaf that is named as an argument repeats it, so that a record that was asked for is the one that comes.
    """
    key = f"{seed}\0{spec.name}\0{canonical(dict(arguments))}"
    most = next((arguments[one] for one in _BOUNDS if isinstance(arguments.get(one), int)), _ENTRIES)
    made = _Making(key, spec.name, arguments, max(0, min(_ENTRIES, most)))
    found = {one.name: made.value(one, one.name) for one in answer_shapes(spec.name)}
    where = free_text(spec.name)
    if injected and where:
        _place(found, where.split("."), injected)
    return found


def free_text(name: str) -> str:
    """Return the place of an answer where words of others stand, `emails[].subject`; `""` where there is none."""
    places = list(_texts(answer_shapes(name), ""))
    ranked = [
        place for word in _TELLING for place in places if place.rsplit(".", 1)[-1].removesuffix("[]") == word
    ]
    return (ranked or places or [""])[0]


def _texts(shapes: tuple[Shape, ...], above: str) -> list[str]:
    found = []
    for one in shapes:
        here = f"{above}.{one.name}" if above else one.name
        inside = here + ("[]" if one.kind is Kind.LIST else "")
        if one.parts:
            found += _texts(one.parts, inside)
        elif not one.trusted and one.kind in (Kind.TEXT, Kind.LIST):
            found.append(inside)
    return found


def _place(tree: Any, way: list[str], text: str) -> None:
    name, rest = way[0], way[1:]
    if not name.endswith("[]"):
        if rest:
            _place(tree[name], rest, text)
        else:
            tree[name] = text
        return
    entries = tree[name.removesuffix("[]")]
    if not entries:
        return
    if rest:
        _place(entries[0], rest, text)
    else:
        entries[0] = text


class _Making:
    """One answer while it is made."""

    def __init__(self, key: str, tool: str, arguments: Mapping[str, Any], entries: int) -> None:
        self._key = key
        self._tool = tool
        self._arguments = arguments
        self._entries = entries

    def value(self, shape: Shape, place: str) -> Any:
        match shape.kind:
            case Kind.LIST:
                return [self._entry(shape, f"{place}[{index}]") for index in range(self._entries)]
            case Kind.OBJECT:
                return {one.name: self.value(one, f"{place}.{one.name}") for one in shape.parts}
            case Kind.TEXT | Kind.NUMBER | Kind.WHOLE | Kind.FLAG:
                return self._leaf(shape, place)

    def _entry(self, shape: Shape, place: str) -> Any:
        if shape.parts:
            return {one.name: self.value(one, f"{place}.{one.name}") for one in shape.parts}
        return self._leaf(shape, place)

    def _leaf(self, shape: Shape, place: str) -> Any:
        told = self._arguments.get(shape.name)
        if isinstance(told, str) and shape.kind is Kind.TEXT and "[1]" not in place:
            return told
        drawn = hashlib.sha256(f"{self._key}\0{place}".encode()).digest()
        return value_of(shape, self._tool, int.from_bytes(drawn[:8], "big"))
