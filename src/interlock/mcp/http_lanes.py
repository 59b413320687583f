"""Which guarded session an HTTP request belongs to: the one that its session id names, or one that its sender shares.

A revision without sessions has requests that stand alone. Those of one sender (by its authorization) share one session,
and so one run, so that what one call read vouches for the next; a request whose id is in use there gets another.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from interlock.boundary.mcp.messages import Id
from interlock.boundary.net.mcp_requests import SESSION
from interlock.mcp.guarding import Session
from interlock.model.errors import BoundaryError, InterlockError

if TYPE_CHECKING:
    from interlock.mcp.http_calls import Listening

MAX_LANES = 1_000
_MAX_STATES = 1_000
_MAX_KEPT, _MAX_KEPT_BYTES = 1_000, 16 * 1024 * 1024


class Lane:
    """A guarded session and who listens in it."""

    def __init__(self, session: Session, now: float) -> None:
        self.session = session
        self.used_at = now
        self.ids: set[Id] = set()
        """Requests of clients that have no answer yet."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.broken_off: set[asyncio.Task[None]] = set()
        """Those of `tasks` whose client has no stream any more on which it could be answered."""
        self.listening: list[Listening] = []
        self.came_on: dict[Id, Listening] = {}
        """On which stream the server gave an answer that is not on record yet."""
        self.states: dict[str, None] = {}
        """What answers gave their client to say again, so that its next request comes here."""
        self._kept: list[bytes] = []
        self._kept_bytes = 0

    @property
    def is_idle(self) -> bool:
        """Say whether nothing is under way."""
        return not self.ids and not self.tasks and not self.listening

    def remember(self, state: str) -> None:
        """Take note of a state that an answer gave its client."""
        self.states[state] = None
        if len(self.states) > _MAX_STATES:
            del self.states[next(iter(self.states))]

    def left(self, one: Listening) -> None:
        """Take note that a client listens no more."""
        self.listening.remove(one)
        self.came_on = {number: other for number, other in self.came_on.items() if other is not one}

    async def deliver(self, raw: bytes, number: Id | None) -> None:
        """Tell a client what its own stream broke off before; it is kept until it listens again.

        Takes: `number`, of the request: a client takes what comes on the rest of a stream for that stream's answer.
        """
        came_on = self.came_on.pop(number, None) if number is not None else None
        for one in [came_on] if came_on is not None else [one for one in self.listening if not one.goes_on]:
            with suppress(ConnectionError):
                await one.tell(raw)
                return
        if len(self._kept) < _MAX_KEPT and self._kept_bytes + len(raw) <= _MAX_KEPT_BYTES:
            self._kept.append(raw)
            self._kept_bytes += len(raw)

    def kept(self) -> list[bytes]:
        """Return what was kept, once."""
        found, self._kept, self._kept_bytes = self._kept, [], 0
        return found


class Lanes:
    """All of them. Takes: `open_session`, which begins to guard; `note`, who is told one line."""

    def __init__(self, open_session: Callable[[], Session], note: Callable[[str], None]) -> None:
        self._open = open_session
        self._note = note
        self._named: dict[str, Lane] = {}
        self._shared: dict[str, list[Lane]] = {}
        self.status = 0

    def new(self) -> Lane:
        """Begin one. Raises: BoundaryError, where there are too many."""
        if len(self.every()) >= MAX_LANES:
            raise BoundaryError("too many sessions are open", hint="end some: DELETE the session's URL")
        return Lane(self._open(), asyncio.get_running_loop().time())

    def every(self) -> list[Lane]:
        """Return all that are open."""
        return [*self._named.values(), *(one for lanes in self._shared.values() for one in lanes)]

    def named(self, headers: Mapping[bytes, bytes]) -> Lane | None:
        """Return the lane of the session that a request names, None where there is none."""
        lane = self._named.get(headers.get(SESSION, b"").decode("latin-1"))
        if lane is not None:
            lane.used_at = asyncio.get_running_loop().time()
        return lane

    def name(self, session_id: str, lane: Lane) -> None:
        """Give a lane the name that its server gave it."""
        self._named[session_id] = lane

    def share(self, headers: Mapping[bytes, bytes], lane: Lane) -> None:
        """Have a lane be that of a sender's requests that name no session."""
        self._shared.setdefault(_sender(headers), []).insert(0, lane)

    def shared(self, headers: Mapping[bytes, bytes], number: Id | None, state: object) -> Lane:
        """Return the lane of a request that names no session. Raises: BoundaryError, where there are too many."""
        lanes = self._shared.get(_sender(headers), [])
        known = [one for one in lanes if isinstance(state, str) and state in one.states]
        free = [one for one in lanes if number is None or number not in one.ids]
        lane = next(iter((*known, *free)), None)
        if lane is None:
            lane = self.new()
            self._shared.setdefault(_sender(headers), []).append(lane)
        lane.used_at = asyncio.get_running_loop().time()
        return lane

    async def end(self, lane: Lane) -> None:
        """End a lane, and seal its run."""
        self._named = {name: one for name, one in self._named.items() if one is not lane}
        for sender, lanes in list(self._shared.items()):
            lanes[:] = [one for one in lanes if one is not lane]
            if not lanes:
                del self._shared[sender]
        try:
            await lane.session.closed()
        except InterlockError as error:
            self._note(str(error))
            self.status = max(self.status, error.exit_status)
        for task in list(lane.tasks):
            task.cancel()
        if lane.session.run_id:
            self._note(f"what was asked and decided: interlock show {lane.session.run_id}")

    async def end_idle(self, seconds: float) -> None:
        """End those in which nothing was said for so long."""
        before = asyncio.get_running_loop().time() - seconds
        for lane in self.every():
            if lane.is_idle and lane.used_at < before:
                await self.end(lane)


def _sender(headers: Mapping[bytes, bytes]) -> str:
    return hashlib.sha256(headers.get(b"authorization", b"")).hexdigest()
