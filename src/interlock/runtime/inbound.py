"""Inbound bodies, kept in one file of the run for provenance, within a budget."""

from __future__ import annotations

import os

from interlock.model.records import changed
from interlock.model.requests import NetResponse

_TEXT_BYTES = 1024 * 1024
_GATHERED_BYTES = 64 * 1024


class Inbound:
    """The file of bodies that came in, one after the other.

    Takes: `path`; `budget_bytes`, for the whole run: what comes later is not kept, and its event says so by an empty
    `kept`.
    Holds: small bodies are gathered and written at `flush`; a disk that fails only ends the keeping, and what a `kept`
    names may then lie beyond the file's end.
    """

    def __init__(self, path: str, *, budget_bytes: int) -> None:
        self._path = path
        self._budget_bytes = budget_bytes
        self._size_bytes = 0
        self._file = -1
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0

    def keep(self, response: NetResponse, body: bytes, *, as_text: bool) -> NetResponse:
        """Keep a body (decompressed) and return the response that says where.

        Takes: `as_text`, whether its text goes into the ledger too, since values may be derived from it.
        """
        text = None
        if as_text and len(body) <= _TEXT_BYTES:
            try:
                text = body.decode("utf-8")
            except UnicodeDecodeError:
                text = None
        if self._size_bytes + len(body) > self._budget_bytes:
            return changed(response, text=text)
        self._gathered.append(body)
        self._gathered_bytes += len(body)
        kept = f"{self._size_bytes}+{len(body)}"
        self._size_bytes += len(body)
        if self._gathered_bytes >= _GATHERED_BYTES and not self.flush():
            return changed(response, text=text)
        return changed(response, text=text, kept=kept)

    def flush(self) -> bool:
        """Hand what was gathered to the kernel. Returns: False, if the disk fails: nothing more is kept then."""
        if not self._gathered:
            return self._budget_bytes > 0
        content = memoryview(b"".join(self._gathered))
        self._gathered.clear()
        self._gathered_bytes = 0
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
            while content:
                content = content[os.write(self._file, content) :]
        except OSError:
            # Kept bodies are a convenience: without them values are only vouched for less.
            self._budget_bytes = 0
            return False
        return True

    def close(self) -> None:
        """Write what was gathered, and close the file."""
        self.flush()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
