"""One session of the gateway: a run, and all that its exchanges stand in."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from interlock.boundary.net.credentials import Credentials
from interlock.boundary.net.exchange import NetExchange
from interlock.boundary.net.gate import Body, Gate, Passage
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.pool import Pool
from interlock.boundary.net.proposing import Sight
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import ClientSide, Exchange, RequestHead
from interlock.gateway.opening import OpenRun
from interlock.model.requests import NetRequest, NetResponse
from interlock.runtime.inbound import Inbound
from interlock.runtime.sending import Sender
from interlock.runtime.traffic import Traffic

if TYPE_CHECKING:
    from interlock.boundary import Sandbox
    from interlock.runtime.control import Control

Run = Callable[[Coroutine[Any, Any, None], Place | None], "asyncio.Task[None] | None"]


class _Unseen:
    """In place of a sandbox: there is none, so nothing was read that would have to be caught up with."""

    def catch_up(self) -> None:
        """Learn nothing."""


class _Gate(Traffic):
    """The gate of one session, which knows when it was used."""

    used_at = 0.0

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        """Decide a request."""
        self.used_at = self._loop.time()
        return super().propose(request, body)

    def answered(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        """Record how a request came back."""
        self.used_at = self._loop.time()
        super().answered(effect_id, response, body)

    @property
    def busy(self) -> bool:
        """Say whether a request waits for its decision or its answer."""
        return bool(self._flying or self._held or self._awaited)


class Session:
    """What the exchanges of one session stand in (`Around`).

    Takes: `plan`, of this run; `pool`, which all sessions share; `run`, who runs what waits; `lost`, called once when
    the ledger cannot be written: nothing of the session passes any more.
    """

    def __init__(
        self,
        name: str,
        opened: OpenRun,
        plan: NetPlan,
        pool: Pool,
        loop: asyncio.AbstractEventLoop,
        *,
        run: Run,
        lost: Callable[[Session], None],
    ) -> None:
        self.name = name
        self.opened = opened
        self.loop = loop
        self.plan = plan
        self.pool = pool
        self.credentials = Credentials(plan)
        self.sight = Sight(self.credentials, views=plan.views)
        self.tokens: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        self.parked_folder = os.path.join(plan.folder, "parked")
        self.endings: set[Callable[[], None]] = set()
        self.control: Control | None = None
        self.exchanges = 0
        self._finished = False
        self._run = run
        policy = opened.performer.state.policy
        assert policy is not None
        self._inbound = Inbound(os.path.join(plan.folder, "inbound"), budget_bytes=plan.limits.kept_bytes)
        sender = Sender(plan, policy.network.keeps_text)
        sender.pool = pool
        self._gate = _Gate(
            performer=opened.performer,
            sandbox=cast("Sandbox", _Unseen()),
            loop=loop,
            sender=sender,
            tokens=self.tokens,
            keeps_text=policy.network.keeps_text,
            inbound=self._inbound,
            lost=lambda _error: lost(self),
        )
        self._gate.used_at = loop.time()
        self.gate: Gate = self._gate
        opened.performer.traffic = self._gate

    def idle_since(self) -> float | None:
        """Return since when nothing is under way, None while something is."""
        return None if self._gate.busy else self._gate.used_at

    def begin(self, client: ClientSide, head: RequestHead, place: Place) -> Exchange:
        """Begin an exchange with an upstream."""
        self._gate.used_at = self.loop.time()
        self.exchanges += 1
        return NetExchange(self, client, head, place)

    def turned_away(self, place: Place, reason: str) -> None:
        """Report what was refused without being an effect."""
        self.gate.turned_away(place.host, place.port, reason)

    def run(self, work: Coroutine[Any, Any, None], place: Place | None = None) -> asyncio.Task[None] | None:
        """Run what waits, until the gateway closes."""
        return self._run(work, place)

    async def finish(self) -> None:
        """Let nothing more pass, and tell what was under way. May be called again."""
        if self._finished:
            return
        self._finished = True
        await self._gate.finish()
        for ending in list(self.endings):
            ending()
        if self.control is not None:
            self.loop.remove_reader(self.control.source().descriptor)
            self.control.close()
        self.opened.performer.traffic = None
        self._inbound.close()
