"""Where a sentence begins right behind an address: `write to ann@a.test.Please be quick`.

Only words that are no top-level domain begin one, with a capital behind a host in small letters; so nobody can own the
host that such a word would make.
"""

import re

OPENERS = (
    "After",
    "Also",
    "And",
    "Before",
    "But",
    "From",
    "Her",
    "His",
    "Our",
    "Please",
    "She",
    "Thanks",
    "That",
    "The",
    "Their",
    "Then",
    "There",
    "These",
    "They",
    "This",
    "Those",
    "What",
    "When",
    "Which",
    "With",
    "Your",
)
# The capital comes first: in most texts no full stop has one right behind it.
_STOP = re.compile(rf"\.(?=[A-Z])(?=(?:{'|'.join(OPENERS)})\s)")
_ADDRESS = re.compile(r"(?:https?://)?(?:[a-z0-9.%+_-]+@)?(?:[a-z0-9-]+\.)+[a-z]{2,}")
_BEFORE = re.compile(r"[\s\"'`(<]")
_LONGEST = 320


def parted(text: str) -> str:
    """Return a text with a space for the full stop between an address and a sentence; no other place moves."""
    stops = [each.start() for each in _STOP.finditer(text) if _ends_address(text, each.start())]
    if not stops:
        return text
    chars = list(text)
    for stop in stops:
        chars[stop] = " "
    return "".join(chars)


def _ends_address(text: str, end: int) -> bool:
    word = _BEFORE.split(text[max(0, end - _LONGEST) : end])[-1]
    return _ADDRESS.fullmatch(word) is not None
