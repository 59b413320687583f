"""One text for one value: what a step and an action are compared by, and what is signed.

Source: RFC 8785 in its order and its white space; whole numbers are written as whole numbers, ours.
"""

import json
from hashlib import sha256
from typing import NoReturn

from interlock.model.errors import InputError

MAX_DEPTH = 60
_EXACT = 2**53
"""Up to here a number with a point is the same as one without."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def canonical(value: object) -> str:
    """Return a JSON value's one text: keys sorted, no white space, `2.0` as `2`.

    Raises: InputError, for what JSON cannot hold (keys that are no text, no numbers, half characters).
    """
    try:
        text = _encode(_plain(value, 0))
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            "a value has no canonical JSON form",
            hint="use text, finite numbers, true, false, null, lists, and objects whose keys are text",
        ) from error
    return text


def canonical_text(text: str) -> str:
    """Return a JSON text in its canonical form. Raises: InputError, where it is none, or a key stands twice."""
    return canonical(parse(text))


def digest(value: object) -> str:
    """Return SHA-256 in hex of a value's canonical text. Raises: InputError."""
    return sha256(canonical(value).encode()).hexdigest()


def parse(text: str) -> object:
    """Read exactly one JSON value in which no key stands twice. Raises: InputError."""
    try:
        value: object = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(
            "a text is not one JSON value, or a key stands in it twice", hint="write it as one JSON value"
        ) from error
    return value


def _plain(value: object, depth: int) -> object:
    if isinstance(value, str | bool | int) or value is None:
        return value
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, float):
        return int(value) if abs(value) <= _EXACT and value.is_integer() else value
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ValueError("a key is no text")
        # Most values are texts, and this is what a manifest is made by.
        return {
            key: item if item.__class__ is str else _plain(item, depth + 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [item if item.__class__ is str else _plain(item, depth + 1) for item in value]
    raise ValueError("no JSON value")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _no_number(_name: str) -> NoReturn:
    raise ValueError("no number of JSON")
