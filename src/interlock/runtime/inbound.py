"""Inbound bodies, kept in one file of the run for provenance, within a budget."""

from __future__ import annotations

import os
from dataclasses import replace

from interlock.model.requests import NetResponse

_TEXT_BYTES = 1024 * 1024


class Inbound:
    """The file of bodies that came in, one after the other.

    Takes: `path`; `budget_bytes`, for the whole run: what comes later is not kept, and its event says so by an empty
    `kept`.
    """

    def __init__(self, path: str, *, budget_bytes: int) -> None:
        self._path = path
        self._budget_bytes = budget_bytes
        self._size_bytes = 0
        self._file = -1

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
            return replace(response, text=text)
        try:
            self._write(body)
        except OSError:
            # Kept bodies are a convenience: without them values are only vouched for less.
            self._budget_bytes = 0
            return replace(response, text=text)
        kept = f"{self._size_bytes}+{len(body)}"
        self._size_bytes += len(body)
        return replace(response, text=text, kept=kept)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, body: bytes) -> None:
        if self._file < 0:
            self._file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        view = memoryview(body)
        while view:
            view = view[os.write(self._file, view) :]
