"""Canonical JSON as evidence has it, in plain lines: docs/formats/evidence-v1.md §1. Imports nothing of `src`."""

import json
from typing import Any

LARGEST = 2**53 - 1


class Broken(Exception):
    """What does not hold. Takes: the code of §8, and the node where one is at fault."""

    def __init__(self, code: str, node: int | None = None) -> None:
        super().__init__(code)
        self.code, self.node = code, node


def _string(text: str) -> str:
    out = ['"']
    for char in text:
        if 0xD800 <= ord(char) <= 0xDFFF:
            raise ValueError("a lone surrogate")
        if char in '"\\':
            out.append("\\" + char)
        elif char in "\b\t\n\f\r":
            out.append("\\" + "btnfr"["\b\t\n\f\r".index(char)])
        elif ord(char) < 0x20:
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(char)
    return "".join(out) + '"'


def canonical(value: Any, depth: int = 0) -> str:
    if depth > 250:
        raise ValueError("too deep")
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        if abs(value) > LARGEST:
            raise ValueError("too large")
        return str(value)
    if isinstance(value, float):
        return repr(value)  # no such number is allowed, but how it is written is looked at first
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(one, depth + 1) for one in value) + "]"
    if isinstance(value, dict):
        items = sorted(value.items())
        return "{" + ",".join(f"{_string(key)}:{canonical(one, depth + 1)}" for key, one in items) + "}"
    raise ValueError("no such value")


def parsed(data: bytes, code: str, node: int | None = None) -> Any:
    """Read canonical JSON; what encodes to other bytes is not canonical."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise Broken("duplicate-key", node)
        return found

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise Broken(code, node) from error
    try:
        again = canonical(value).encode()
    except (ValueError, RecursionError) as error:
        raise Broken(code, node) from error  # a value that cannot be written
    if again != data:
        raise Broken("non-canonical", node)
    return value
