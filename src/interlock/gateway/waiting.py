"""A request whose session's run is still being opened: it waits for the disk, and other sessions go on meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from interlock.boundary.net.sides import AnswerHead, ClientSide, Exchange, RawHeaders
from interlock.model.requests import Outcome


class Waiting:
    """The exchange of such a request, until there is one that it can go on as.

    Holds: what came of its body until then is what was read already; no more is read.
    """

    def __init__(self, client: ClientSide) -> None:
        self._client = client
        self._exchange: Exchange | None = None
        self._parts: list[bytes] = []
        self._ended: RawHeaders | None = None
        self._gone = False
        self._full = False
        client.read_on(False)

    def go_on(self, begin: Callable[[], Exchange]) -> None:
        """Go on as an exchange. Takes: `begin`, called unless the client is gone."""
        if self._gone:
            return
        exchange = self._exchange = begin()
        self._client.read_on(True)
        for part in self._parts:
            exchange.body_data(part)
        self._parts.clear()
        if self._full:
            exchange.client_full(True)
        if self._ended is not None:
            exchange.body_end(self._ended)

    def body_data(self, chunk: bytes) -> None:
        """Take a part of the body."""
        if self._exchange is not None:
            self._exchange.body_data(chunk)
        elif not self._gone:
            self._parts.append(chunk)

    def body_end(self, trailers: RawHeaders) -> None:
        """Take the end of the body."""
        if self._exchange is not None:
            self._exchange.body_end(trailers)
        else:
            self._ended = trailers

    def client_gone(self) -> None:
        """Give it up."""
        self._gone = True
        self._parts.clear()
        if self._exchange is not None:
            self._exchange.client_gone()

    def client_full(self, full: bool) -> None:
        """Take note of the client's link."""
        self._full = full
        if self._exchange is not None:
            self._exchange.client_full(full)

    # the far side of what it goes on as speaks with that alone

    def came_interim(self, head: AnswerHead) -> None:
        """Nothing comes here."""

    def came_head(self, head: AnswerHead) -> None:
        """Nothing comes here."""

    def came_data(self, chunk: bytes) -> None:
        """Nothing comes here."""

    def came_end(self, trailers: RawHeaders) -> None:
        """Nothing comes here."""

    def came_failure(self, outcome: Outcome, detail: str) -> None:
        """Nothing comes here."""

    def far_full(self, full: bool) -> None:
        """Nothing comes here."""
