"""What a server offers: each tool is pinned as it was described first, and what is not so any more is held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from interlock.boundary.mcp.conversing import METHOD
from interlock.boundary.mcp.listing import Listing, without
from interlock.boundary.mcp.messages import INTERNAL, answer, failure
from interlock.boundary.mcp.moves import Listed
from interlock.mcp.siblings import Listing as Offer
from interlock.mcp.siblings import Siblings
from interlock.model import events as ev
from interlock.model.errors import InterlockError
from interlock.model.tools import ToolCall, ToolDefinition

if TYPE_CHECKING:
    from interlock.sdk.scope import Scope


class Offered:
    """The tools of one server.

    Takes: `believes`, whether its annotations count; `note`, who is told one line; `siblings`, the servers beside it.

    Holds: `read_only`, what may be believed to read only, as the pages said before the run began; `shaped`, tools whose
    answers have a declared shape.
    """

    def __init__(
        self, server: str, *, believes: bool, note: Callable[[str], None], siblings: Siblings
    ) -> None:
        self._server = server
        self._siblings = siblings
        self._believes = believes
        self._note = note
        self.read_only: dict[str, tuple[str, ...]] = {}
        self.shaped: set[str] = set()
        self._early: list[tuple[ToolDefinition, ...]] = []
        self._held: set[str] = set()

    def seen(self, move: Listed, is_open: bool, open_run: Callable[[], Scope]) -> bytes:
        """Pin a page of tools. Takes: `is_open`, whether the run began. Returns: what of it the client sees."""
        listing, response = move.listing, move.response
        assert response.result is not None
        self.shaped |= listing.shaped
        if self._believes and not is_open:
            # The run's policy says which tools only read, so it waits for the last page.
            self.read_only |= listing.read_only
            self._early.append(listing.tools)
            if not listing.last:
                return response.raw
        try:
            held = self._held_of(listing, open_run())
        except InterlockError as error:
            self._note(error.message)
            return failure(response.id, INTERNAL, "the server's list could not be put on record")
        return answer(response.id, without(response.result, held)) if held else response.raw

    def record_early(self, scope: Scope) -> None:
        """Record the pages that came before the run began. Raises: LedgerLost."""
        for tools in self._early:
            scope.told(ev.ToolsListed(server=self._server, tools=tools))
        self._early.clear()

    def _held_of(self, listing: Listing, scope: Scope) -> dict[str, str]:
        try:
            return self._siblings.among(lambda others: self._told(listing, scope, others))
        except (OSError, ValueError):
            self._note(
                "the servers that the same client started cannot be seen, so a name taken from one is not noticed"
            )
            return self._told(listing, scope, ())[0]

    def leave(self) -> None:
        """Offer nothing any more."""
        self._siblings.leave()

    def _told(
        self, listing: Listing, scope: Scope, others: Sequence[Offer]
    ) -> tuple[dict[str, str], tuple[ToolDefinition, ...]]:
        """Record what is offered, here and beside it. Returns: what is held, and what is not."""
        state = scope.state
        policy = state.policy
        known = {tool.name for tool in policy.tools.tools} if policy is not None else set()
        for server, tools in others:
            # Who declares a tool under its server's whole name knows that another is named so.
            foreign = tuple(one for one in tools if f"{self._server}/{one.name}" not in known)
            event = ev.ToolsListed(server=server, tools=foreign)
            if foreign and not state.pins.knows(event):
                state = scope.told(event)
        event = ev.ToolsListed(server=self._server, tools=listing.tools)
        if listing.tools and not state.pins.knows(event):
            state = scope.told(event)
        held = {}
        for one in listing.tools:
            call = ToolCall(call="", tool=one.name, server=self._server, arguments="{}")
            why = state.pins.doubt(call)
            if not why and one.name.startswith(METHOD):
                why = f"the tool `{one.name}` is named like a method"
            if why:
                held[one.name] = why
                if one.name not in self._held:
                    self._held.add(one.name)
                    self._note(f"held, and not shown to the client: {why}")
        return held, tuple(one for one in listing.tools if one.name not in held)
