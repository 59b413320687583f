"""Answers of a provider that no wire describes, looked through for calls: one that may hold a call passes to nobody."""

from __future__ import annotations

import json
from collections.abc import Callable

from interlock.boundary.lens.beside import call_in
from interlock.model.requests import NetRequest


class Beside:
    """Looks through one answer (see `gate.Messages`). Takes: `away`, told of what does not pass.

    Holds: after a part that may hold a call nothing passes.
    """

    def __init__(self, request: NetRequest, away: Callable[[str, int, str], None]) -> None:
        self._request = request
        self._away = away
        self._why = ""

    def began(self, session: str, status: int) -> None:
        """Take the head of the answer."""

    def goes_on(self) -> None:
        """Take note that what is left of it may come on another stream."""

    def came(self, raw: bytes | None, *, name: str) -> bytes | None:
        """Take a part, or the whole. Returns: what of it passes, None for nothing."""
        if self._why:
            return None
        try:
            self._why = "it is longer than is read" if raw is None else call_in(raw)
        except Exception as error:  # noqa: BLE001 - fail closed: what was not looked at passes to nobody
            self._why = f"it could not be looked through ({type(error).__name__})"
        if not self._why:
            return raw
        self._away(
            self._request.host,
            self._request.port,
            f"an answer of the model's that is fetched in a way which is not audited: {self._why}",
        )
        return None

    def instead(self) -> tuple[int, bytes]:
        """Return what the agent gets in place of an answer that does not pass."""
        message = (
            f"Interlock did not pass this answer: {self._why}, and calls are decided only in answers to "
            "requests of chat completions, responses, messages and generateContent. Ask the model in one of these "
            "ways; a stored response is read at `GET /v1/responses/ID`."
        )
        return 403, json.dumps({"error": {"type": "interlock_refused", "message": message}}).encode()
