"""JSON of a service, read strictly: one value, no name twice, no number that is none, and not without bounds."""

import json
from typing import NoReturn

_DEPTH_CHARACTERS = "[{"
_DEPTH = 64


def read(body: bytes) -> object:
    """Return the JSON value.

    Raises: ValueError, for anything that two readers could read differently, or that is nested too deep.
    """
    text = body.decode("utf-8")
    if sum(text.count(mark) for mark in _DEPTH_CHARACTERS) > _DEPTH and _depth(text) > _DEPTH:
        raise ValueError("nested too deep")
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)


def _depth(text: str) -> int:
    """Return how deep it nests at most, texts counted as if they were marks: rather too much than too little."""
    depth = deepest = 0
    for char in text:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a name is there twice")
    return record


def _no_constant(_text: str) -> NoReturn:
    raise ValueError("no JSON number")
