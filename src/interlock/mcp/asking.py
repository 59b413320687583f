"""The oracle that asks the client's own user, with a form (MCP, elicitation)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import TimeoutError as TooLate
from contextvars import ContextVar
from typing import TYPE_CHECKING

from interlock.mcp.telling import allowed, form, readable
from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from interlock.mcp.pending import Pending
    from interlock.model.effects import Effect
    from interlock.model.verdicts import Verdict
    from interlock.oracle import Question

asked_by: ContextVar[Pending | None] = ContextVar("interlock_mcp_pending", default=None)
"""The request on whose exchange the client can be asked."""
Put = Callable[["Pending", "Mapping[str, Any]"], Awaitable["Mapping[str, Any]"]]
NAME = "client"


class AskingClient:
    """Asks the client, one call after the other; where it cannot be asked, nothing is released.

    Takes: `put`, which puts a form to the client and gives what it says; `deadline_s`, how long it may take.
    """

    name = NAME

    def __init__(self, put: Put, loop: asyncio.AbstractEventLoop, deadline_s: float) -> None:
        self._put = put
        self._loop = loop
        self._deadline_s = deadline_s

    def resolve(self, question: Question) -> OracleAnswered:
        """Ask about each deferred call. Holds: silence, an error and a closed form refuse."""
        pending = asked_by.get()
        answers = tuple(self._one(pending, effect, verdict) for effect, verdict in question.deferred)
        return OracleAnswered(oracle=self.name, answers=answers)

    def _one(self, pending: Pending | None, effect: Effect, verdict: Verdict) -> Answer:
        if pending is None:
            return _refused(effect, "the client is gone, and nobody else is asked")
        if not pending.elicits:
            return _refused(
                effect, "the client cannot ask its user (no elicitation), and nobody else is asked"
            )
        call = effect.tool
        asked = form(
            readable(call.name if call is not None else effect.object),
            readable(verdict.reason),
            readable(call.arguments if call is not None else ""),
        )
        waiting = asyncio.run_coroutine_threadsafe(_awaited(self._put(pending, asked)), self._loop)
        try:
            said = waiting.result(self._deadline_s)
        except TooLate:
            waiting.cancel()
            return _refused(effect, f"the client's user did not answer within {self._deadline_s:g} s")
        except Exception as error:  # noqa: BLE001 - an oracle that breaks refuses
            return _refused(effect, f"the client could not be asked: {type(error).__name__}")
        may, reason = allowed(said)
        return Answer(
            effect_id=effect.id, decision=Decision.RELEASE if may else Decision.REFUSE, reason=reason
        )


async def _awaited(said: Awaitable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return await said


def _refused(effect: Effect, reason: str) -> Answer:
    return Answer(effect_id=effect.id, decision=Decision.REFUSE, reason=reason)
