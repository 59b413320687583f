"""Which effects a model's answer releases, found character by character; shares neither code nor library with the reader.

Anything that is not exactly as asked releases nothing.
"""

import sys
from typing import Any

_DEEP = 20_000


class NotAsAsked(Exception):
    pass


def released(text: str, ids: tuple[str, ...]) -> set[str]:
    """Return the ids that the answer releases."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEEP)  # an answer may be nested deeper than the reader goes
    try:
        value, at = _value(text, _gap(text, 0))
        if _gap(text, at) != len(text):
            return set()
    except (NotAsAsked, IndexError):
        return set()
    finally:
        sys.setrecursionlimit(limit)
    if not isinstance(value, Pairs) or [key for key, _ in value] != ["answers"]:
        return set()
    entries = value[0][1]
    if not isinstance(entries, list) or isinstance(entries, Pairs):
        return set()
    seen: dict[str, int] = {}
    out: set[str] = set()
    for entry in entries:
        if not isinstance(entry, Pairs):
            return set()
        fields = dict(entry)
        who = fields.get("id")
        if not isinstance(who, str) or who not in ids:
            return set()
        seen[who] = seen.get(who, 0) + 1
        reason = fields.get("reason")
        if (
            sorted(fields) == ["decision", "id", "reason"]
            and type(fields["decision"]) is str
            and fields["decision"] == "release"
            and type(reason) is str
            and any(not char.isspace() for char in reason)
            and reason.strip() != "REASON"
            and len(reason) <= 1000
        ):
            out.add(who)
    return {who for who in out if seen[who] == 1}


class Pairs(list[tuple[str, Any]]):
    """An object, as its pairs in order."""


def _gap(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \n\r\t":
        at += 1
    return at


def _value(text: str, at: int) -> tuple[Any, int]:
    head = text[at]
    if head == "{":
        return _object(text, at + 1)
    if head == "[":
        return _array(text, at + 1)
    if head == '"':
        return _string(text, at + 1)
    for word, means in (("true", True), ("false", False), ("null", None)):
        if text[at : at + len(word)] == word:
            return means, at + len(word)
    return _number(text, at)


def _object(text: str, at: int) -> tuple[Pairs, int]:
    pairs = Pairs()
    at = _gap(text, at)
    if text[at] == "}":
        return pairs, at + 1
    while True:
        if text[at] != '"':
            raise NotAsAsked
        key, at = _string(text, at + 1)
        at = _gap(text, at)
        if text[at] != ":":
            raise NotAsAsked
        value, at = _value(text, _gap(text, at + 1))
        if key in [known for known, _ in pairs]:
            raise NotAsAsked
        pairs.append((key, value))
        at = _gap(text, at)
        if text[at] == "}":
            return pairs, at + 1
        if text[at] != ",":
            raise NotAsAsked
        at = _gap(text, at + 1)


def _array(text: str, at: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    at = _gap(text, at)
    if text[at] == "]":
        return items, at + 1
    while True:
        item, at = _value(text, at)
        items.append(item)
        at = _gap(text, at)
        if text[at] == "]":
            return items, at + 1
        if text[at] != ",":
            raise NotAsAsked
        at = _gap(text, at + 1)


def _string(text: str, at: int) -> tuple[str, int]:
    out: list[int] = []
    while text[at] != '"':
        char = text[at]
        if ord(char) < 32:
            raise NotAsAsked
        if char != "\\":
            out.append(ord(char))
            at += 1
            continue
        kind = text[at + 1]
        if kind == "u":
            digits = text[at + 2 : at + 6]
            if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise NotAsAsked
            unit = int(digits, 16)
            if 0xDC00 <= unit < 0xE000 and out and 0xD800 <= out[-1] < 0xDC00:
                unit = 0x10000 + ((out.pop() - 0xD800) << 10) + (unit - 0xDC00)
            out.append(unit)
            at += 6
        elif kind in '"\\/bfnrt':
            out.append(ord({"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}.get(kind, kind)))
            at += 2
        else:
            raise NotAsAsked
    return "".join(map(chr, out)), at + 1


def _number(text: str, at: int) -> tuple[float, int]:
    at += text[at] == "-"
    digits = _digits(text, at)
    if digits == at or (text[at] == "0" and digits > at + 1):
        raise NotAsAsked
    at = digits
    if text[at : at + 1] == ".":
        digits = _digits(text, at + 1)
        if digits == at + 1:
            raise NotAsAsked
        at = digits
    if text[at : at + 1] in ("e", "E"):
        at += 1
        at += text[at : at + 1] in ("+", "-") and at < len(text)
        digits = _digits(text, at)
        if digits == at:
            raise NotAsAsked
        at = digits
    return 0.0, at


def _digits(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in "0123456789":
        at += 1
    return at
