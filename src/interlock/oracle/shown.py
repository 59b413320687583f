"""Hostile text made safe to show: no byte of it can steer a terminal or hide itself.

The agent chooses file names and contents, so it writes much of what a review shows. What is not
a plainly visible character is written as the `\\xNN` of its UTF-8 bytes, as places are.
"""

import re

# Printable to Python, yet invisible on a screen: fillers, variation selectors, joiners, blank Braille.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_TAB = "    "
_MARKS_IN_A_ROW = 2
"""More combining marks than this on one letter smear over the lines around it."""


def shown(text: str) -> str:
    """Write `text` as one line that holds only visible characters and spaces.

    Holds: the result is printable, has no escape sequence, no bidirectional control and no line
    end; what was visible already is unchanged.
    """
    if text.isascii() and text.isprintable():
        return text
    from unicodedata import combining

    out: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if combining(char) else 0
        if char == "\t":
            out.append(_TAB)
        elif marks <= _MARKS_IN_A_ROW and char.isprintable() and not _INVISIBLE.match(char):
            out.append(char)
        else:
            out.extend(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    return "".join(out)


def columns(text: str) -> int:
    """Return how many columns of a terminal `text` takes, once it is `shown`."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def clip(text: str, width: int) -> str:
    """Cut the middle out of `text` so that it takes at most `width` columns.

    Both ends stay, since a path's start says where and its end says what.
    """
    if columns(text) <= width:
        return text
    room = max(width - 3, 0)
    tail = _take(text[::-1], room * 2 // 3)[::-1]
    head = _take(text, room - columns(tail))
    return (head + "..." + tail)[: max(width, 0)]


def wrap(text: str, width: int, *, indent: str = "") -> list[str]:
    """Break `text` into lines of at most `width` columns; the ones after the first begin with `indent`.

    Breaks at a space where there is one in the last third of a line. Never lets the terminal wrap, since a
    wrapped tail could pass for a line of its own.
    """
    lines: list[str] = []
    rest = text
    while True:
        lead = indent if lines else ""
        room = max(width - columns(lead), 8)
        if columns(rest) <= room:
            lines.append(lead + rest)
            return lines
        piece = _take(rest, room)
        space = piece.rfind(" ")
        if space > len(piece) * 2 // 3:
            piece = piece[: space + 1]
        lines.append(lead + piece.rstrip(" "))
        rest = rest[len(piece) :]


def _take(text: str, width: int) -> str:
    if text.isascii():
        return text[: max(width, 0)]
    used = 0
    for index, char in enumerate(text):
        used += columns(char)
        if used > width:
            return text[:index]
    return text
