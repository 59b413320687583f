"""An answer cut into slices that may pass one by one: events, elements of a list, or the one JSON text that it is.

Nothing is lost: the slices together are the answer, byte for byte.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

PIECE_BYTES = 32 * 1024 * 1024
"""What one slice may be: an event with a picture in it, a whole answer that does not stream."""
_BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BARE = re.compile(rb"\r(?!\n)")
_OUTSIDE = re.compile(rb'["{}\[\],]')
_INSIDE = re.compile(rb'["\\]')


class Form(Enum):
    """How an answer is put on the wire."""

    EVENTS = auto()
    LIST = auto()
    WHOLE = auto()


class Piece(NamedTuple):
    """One slice.

    Takes: `raw`, its bytes; `data`, the JSON text in it, None for none; `name`, of the event; `odd`, whether it
    has lines that are no fields; `bare`, whether lines end in a bare CR, where some readers end none.
    """

    raw: bytes
    data: bytes | None
    name: str = ""
    odd: bool = False
    bare: bool = False


class Pieces:
    """Cuts an answer into slices as it comes.

    Takes: `lists`, whether a JSON list is a stream of its elements.
    Holds: any cut into chunks gives the same slices; once `broken` says why, what follows is dropped.
    """

    def __init__(self, *, lists: bool) -> None:
        self.form: Form | None = None  # not known before the first byte that is no white space
        self.broken = ""
        self._lists = lists
        self._buffer = bytearray()
        self._scanned = 0
        self._depth = 0
        self._quoted = False
        self._start = -1  # of the element under way

    def feed(self, chunk: bytes) -> list[Piece]:
        """Take a part; return the slices that it ends."""
        if self.broken:
            return []
        self._buffer += chunk
        if self.form is None:
            self._look()
        found: list[Piece] = []
        if self.form is Form.EVENTS:
            found = self._events()
        elif self.form is Form.LIST:
            found = self._elements()
        if len(self._buffer) > PIECE_BYTES:
            self.broken = "a part of it is larger than is read"
            self._buffer.clear()
        return found

    def finish(self) -> list[Piece]:
        """Return what was under way when the answer ended."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if not rest or self.broken:
            return []
        if self.form is Form.EVENTS:
            ends = [found.end() for found in _BLANK.finditer(rest)]  # one that ends in a bare CR
            cuts = [0, *ends, len(rest)]
            return [_event(rest[a:b]) for a, b in pairwise(cuts) if a < b]
        if self.form is Form.LIST and self._depth <= 1 and not rest.strip(b" \t\r\n[],"):
            return [Piece(rest, None)]
        return [Piece(rest, rest.removeprefix(_BOM))]

    def _look(self) -> None:
        start = bytes(self._buffer[:4096]).removeprefix(_BOM).lstrip()
        if not start or _BOM.startswith(start):
            return
        if start[:1] == b"{" or (start[:1] == b"[" and not self._lists):
            self.form = Form.WHOLE
        elif start[:1] == b"[":
            self.form = Form.LIST
        else:
            self.form = Form.EVENTS

    def _events(self) -> list[Piece]:
        found: list[Piece] = []
        buffer, at, scan = self._buffer, 0, max(0, self._scanned - 3)
        while (end := _BLANK.search(buffer, max(at, scan))) is not None:
            if end.end() == len(buffer) and buffer[-1] == 13:  # an LF may follow, and belong to it
                break
            found.append(_event(bytes(buffer[at : end.end()])))
            at = end.end()
        if at:
            del buffer[:at]
        self._scanned = len(buffer)
        return found

    def _elements(self) -> list[Piece]:
        found: list[Piece] = []
        buffer, at, scan = self._buffer, 0, self._scanned
        while True:
            token = (_INSIDE if self._quoted else _OUTSIDE).search(buffer, scan)
            if token is None:
                scan = len(buffer)
                break
            sign, scan = buffer[token.start()], token.end()
            if sign == 0x5C:
                if scan == len(buffer):
                    scan -= 1
                    break
                scan += 1
            elif sign == 0x22:
                self._quoted = not self._quoted
            elif sign in b"{[":
                self._depth += 1
                if self._depth == 2:
                    self._start = token.start()
            elif sign in b"}]":
                self._depth -= 1
                if self._depth == 1 and self._start >= 0:
                    found.append(
                        Piece(bytes(buffer[at:scan]), _element(bytes(buffer[at:scan]), self._start - at))
                    )
                    at, self._start = scan, -1
        if at:
            del buffer[:at]
            self._start = self._start - at if self._start >= 0 else -1
        self._scanned = scan - at
        return found


def _element(raw: bytes, start: int) -> bytes:
    """Return an element without what parts it from the one before; all of it where that is no mere punctuation."""
    lead = raw[:start].removeprefix(_BOM)
    return raw[start:] if not lead.strip(b" \t\r\n[,") else raw


def _event(raw: bytes) -> Piece:
    text = raw.removeprefix(_BOM)
    if text.startswith(b"data: ") and text.count(b"\n") <= 2 and b"\r" not in text:
        line, _, rest = text.partition(b"\n")
        if not rest.strip(b"\n"):
            return Piece(raw, line[6:])
    data: list[bytes] = []
    name, odd = "", False
    for line in _LINE_END.split(text):
        field, colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
        elif line and field and (field not in (b"id", b"retry") or not colon):
            odd = True
    return Piece(raw, b"\n".join(data) if data else None, name, odd, _BARE.search(text) is not None)
