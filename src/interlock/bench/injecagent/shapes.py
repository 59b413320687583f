"""Shapes of answers, as the annotations write them: `emails[id!id:email subject]`, `result{success? total#!amount}`."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from interlock.model.errors import InputError
from interlock.model.records import dataclass

_TOKEN = re.compile(
    r"\s*([A-Za-z_][A-Za-z0-9_]*)([#%?]|\{\}|\[\]|[\[{])?(?:!([a-z]+(?::[a-z_]+)?))?|\s*([\]}])"
)


class Kind(StrEnum):
    """What a part of an answer is."""

    TEXT = "string"
    NUMBER = "number"
    WHOLE = "integer"
    FLAG = "boolean"
    OBJECT = "object"
    LIST = "array"


_MARKS = {
    None: Kind.TEXT,
    "#": Kind.NUMBER,
    "%": Kind.WHOLE,
    "?": Kind.FLAG,
    "{}": Kind.OBJECT,
    "{": Kind.OBJECT,
    "[": Kind.LIST,
    "[]": Kind.LIST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One part of an answer.

    Takes: `trusted`, the type as which its leaves may fill a hole, `""` for none; `parts`, of an object, or of each
    entry of a list; a list without parts holds texts.
    """

    name: str
    kind: Kind = Kind.TEXT
    trusted: str = ""
    parts: tuple[Shape, ...] = ()


def read_shapes(text: str) -> tuple[Shape, ...]:
    """Read the shapes of an answer. Raises: InputError."""
    found, end = _read(text, 0, "")
    if text[end:].strip():
        raise _mistake(text, end)
    return found


def schema_of(shape: Shape) -> dict[str, Any]:
    """Return a part of an answer as JSON Schema."""
    inner = {one.name: schema_of(one) for one in shape.parts}
    below: dict[str, Any] = {"type": "object", "properties": inner} if inner else {"type": "string"}
    match shape.kind:
        case Kind.LIST:
            return {"type": "array", "items": below}
        case Kind.OBJECT:
            return below if inner else {"type": "object"}
        case _:
            return {"type": shape.kind.value}


def trusted_leaves(shapes: tuple[Shape, ...], above: str = "") -> tuple[tuple[str, str], ...]:
    """Return the dotted names of the leaves that may be trusted, with their types: `emails[].id`, `id:email`."""
    found: list[tuple[str, str]] = []
    for one in shapes:
        here = f"{above}.{one.name}" if above else one.name
        here += "[]" if one.kind is Kind.LIST else ""
        if one.trusted:
            found.append((here, one.trusted))
        found += trusted_leaves(one.parts, here)
    return tuple(found)


def _read(text: str, start: int, closing: str) -> tuple[tuple[Shape, ...], int]:
    found: list[Shape] = []
    here = start
    while text[here:].strip():
        match = _TOKEN.match(text, here)
        if match is None:
            raise _mistake(text, here)
        name, mark, trusted, closed = match.groups()
        here = match.end()
        if closed:
            if closed != closing:
                raise _mistake(text, here)
            return tuple(found), here
        parts: tuple[Shape, ...] = ()
        if mark in ("[", "{"):
            parts, here = _read(text, here, "]" if mark == "[" else "}")
        found.append(Shape(name=name, kind=_MARKS[mark], trusted=trusted or "", parts=parts))
    if closing:
        raise _mistake(text, here)
    return tuple(found), here


def _mistake(text: str, at: int) -> InputError:
    return InputError(f"no shape of an answer at character {at}: `{text}`", hint="see `shapes.py`")
