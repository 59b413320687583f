"""Answers cut into their documents as they stream: server-sent events, or one JSON text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from interlock.boundary.lens.calls import loads

DOCUMENT_BYTES = 8 * 1024 * 1024
"""What one event, or an answer that is one JSON text, may be."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class Documents:
    """Cuts an answer's bytes into JSON documents.

    Holds: the same documents for any cut into chunks; never more memory than `DOCUMENT_BYTES` and a chunk; after
    `broken` says why, nothing more is read.
    """

    def __init__(self) -> None:
        self.broken = ""
        self._buffer = bytearray()
        self._scanned = 0
        self._events: bool | None = None  # not known before the first byte that is no white space
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, chunk: bytes) -> Iterator[Any]:
        """Take a part; yield the documents that it ends."""
        if self.broken:
            return
        self._buffer += chunk
        if self._events is None:
            self._look()
        if self._events:
            yield from self._lines(last=False)
        if not self.broken and len(self._buffer) + self._data_bytes > DOCUMENT_BYTES:
            self._break("a document larger than is read")

    def finish(self) -> Iterator[Any]:
        """Yield what was under way when the answer ended."""
        if self.broken:
            return
        if self._events:
            yield from self._lines(last=True)
            yield from self._event()
        elif self._buffer.strip():
            yield from self._document(bytes(self._buffer))
        self._buffer.clear()

    def _look(self) -> None:
        start = bytes(self._buffer).removeprefix(_BOM).lstrip()
        if start and not _BOM.startswith(start):
            self._events = start[:1] not in (b"{", b"[")
            if self._buffer.startswith(_BOM):
                del self._buffer[: len(_BOM)]

    def _lines(self, *, last: bool) -> Iterator[Any]:
        at = 0
        while not self.broken:
            found = _LINE_END.search(self._buffer, max(at, self._scanned))
            if found is None or (found.group() == b"\r" and found.end() == len(self._buffer) and not last):
                self._scanned = len(self._buffer) if found is None else found.start()
                break
            yield from self._line(bytes(self._buffer[at : found.start()]))
            at = found.end()
        if last and not self.broken and at < len(self._buffer):
            yield from self._line(bytes(self._buffer[at:]))
            at = len(self._buffer)
        del self._buffer[:at]
        self._scanned = max(0, self._scanned - at)

    def _line(self, line: bytes) -> Iterator[Any]:
        if not line:
            yield from self._event()
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(value) + 1
            if self._data_bytes > DOCUMENT_BYTES:
                self._break("a document larger than is read")

    def _event(self) -> Iterator[Any]:
        data, self._data, self._data_bytes = b"\n".join(self._data), [], 0
        if data and data.strip() != b"[DONE]":
            yield from self._document(data)

    def _document(self, data: bytes) -> Iterator[Any]:
        value = loads(data)
        if value is None and data.strip() != b"null":
            self._break("a document that is no JSON")
        else:
            yield value

    def _break(self, why: str) -> None:
        self.broken = why
        self._buffer.clear()
        self._data.clear()
        self._data_bytes = 0
