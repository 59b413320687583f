"""The escapes of URLs, HTML, JSON and string literals, undone where they stand and a little around."""

import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote_to_bytes

_QUOTED = re.compile(r"%[0-9A-Fa-f]{2}")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30};)")
_NUMBERED = (
    r"\\u\{([0-9A-Fa-f]{1,6})\}|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\x([0-9A-Fa-f]{2})|\\([0-3][0-7]{2})"
)
_ESCAPE = re.compile(_NUMBERED + r"|\\(.)", re.S)
_NUMBERED_ALONE = re.compile(_NUMBERED)
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def unquoted(text: str) -> str:
    """Undo the escapes of URLs."""
    return unquote_to_bytes(text.encode("utf-8", "replace")).decode("utf-8", "replace")


def unescaped(text: str) -> str:
    """Undo the escapes of JSON and of string literals."""
    found = _ESCAPE.sub(_meant, text)
    if not found.isascii() and any("\ud800" <= char <= "\udfff" for char in found):
        found = found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return found


def _meant(match: re.Match[str]) -> str:
    number = match.lastindex or 0
    given = match[number]
    if number == 6:
        return _SHORT.get(given, given)
    code = int(given, 8 if number == 5 else 16)
    return chr(code) if code <= 0x10FFFF else ""


def without_escapes(text: str, around: int, *, numbered: bool = False) -> Iterator[str]:
    """Yield what the escapes of each kind mean, with what stands around them; the rest of the text is left out.

    Takes: `around`, characters that are kept on either side; `numbered`, whether of a back slash only those count
    that give a character's number.
    """
    if "%" in text:
        for part in _windows(text, _QUOTED, around):
            yield unquoted(part)
            if "+" in part:
                yield unquoted(part.replace("+", " "))
    if "&" in text:
        yield from _each(text, _ENTITY, around, html.unescape)
    if "\\" in text:
        yield from _each(text, _NUMBERED_ALONE if numbered else _ESCAPE, around, unescaped)


def _each(text: str, escape: re.Pattern[str], around: int, undo: Callable[[str], str]) -> Iterator[str]:
    return map(undo, _windows(text, escape, around))


def _windows(text: str, escape: re.Pattern[str], around: int) -> Iterator[str]:
    match = escape.search(text)
    while match is not None:
        begin = max(match.start() - around, 0)
        end = match.end()
        # On to the last one that is near: each jump looks at no more than lies between two windows.
        while True:
            match = escape.search(text, end)
            if match is None or match.start() - end > 2 * around:
                break
            end = match.end()
        yield text[begin : end + around]
