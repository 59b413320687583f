"""Serves the run's own agent socket: what is allowed is proposed, and what passes is asked of the user's agent."""

import asyncio
import contextlib
import hashlib
import socket
from collections.abc import Awaitable
from functools import partial

from interlock.boundary.net.gate import Gate, Passage, Passed
from interlock.boundary.net.plan import Signing
from interlock.boundary.signing import upstream
from interlock.boundary.signing.protocol import (
    FAILURE,
    LIST_KEYS,
    MAX_REQUEST,
    Listing,
    NotAllowed,
    Signature,
    fingerprint,
    framed,
    keys_answer,
    parse,
    signature_answer,
)
from interlock.model.requests import AGENT_SCHEME, NetRequest, NetResponse, Outcome

CONNECTIONS = 16
"""Clients at once; one more is turned away, for each may sit idle for a while."""
IDLE_SECONDS = 60.0
REQUEST_SECONDS = 10.0
"""For the rest of a request, once its first bytes are there, and for a client to take its answer."""
LIST_SECONDS = 10.0
SIGN_SECONDS = 90.0
"""For the agent to sign: it may ask the user, or wait for a finger on a hardware key."""

_SIGNED, _FAILED = 14, 5


class Broker:
    """Stands between the clients inside and the user's ssh-agent.

    Holds: one request at a time reaches the agent; whatever fails is answered with the protocol's failure; nothing is
    asked of the agent but what `protocol.parse` let through and the gate passed.
    """

    def __init__(
        self, doors: tuple[socket.socket, ...], plan: Signing, gate: Gate, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._doors = doors
        self._plan = plan
        self._gate = gate
        self._loop = loop
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        for one in doors:
            loop.add_reader(one.fileno(), self._accept, one)

    async def close(self) -> None:
        """Take nobody more, and end who is there; the listening sockets are the doors' to close."""
        for one in self._doors:
            if one.fileno() >= 0:
                self._loop.remove_reader(one.fileno())
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    def _accept(self, door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock, _ = door.accept()
            if len(self._tasks) >= CONNECTIONS:
                upstream.close(sock)
                return
            sock.setblocking(False)
            task = self._loop.create_task(self._serve(sock))
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, sock))

    def _ended(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        upstream.close(sock)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._gate.turned_away(AGENT_SCHEME, 0, f"the boundary failed on it: {type(error).__name__}")

    async def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            while True:
                async with asyncio.timeout(IDLE_SECONDS):
                    first = await upstream.read_exactly(self._loop, sock, 1)
                try:
                    async with asyncio.timeout(REQUEST_SECONDS):
                        payload = await self._rest(sock, first)
                    answer = await self._answer(payload)
                    stays = True
                except NotAllowed as refused:
                    self._gate.turned_away(AGENT_SCHEME, 0, str(refused))
                    # After a wrong length nobody knows where the next request would begin.
                    answer, stays = FAILURE, not isinstance(refused, _LengthRefused)
                async with asyncio.timeout(REQUEST_SECONDS):
                    await self._loop.sock_sendall(sock, framed(answer))
                if not stays:
                    return

    async def _rest(self, sock: socket.socket, first: bytes) -> bytes:
        size = int.from_bytes(first + await upstream.read_exactly(self._loop, sock, 3), "big")
        if not 0 < size <= MAX_REQUEST:
            raise _LengthRefused(f"a request of {size} bytes, where at most {MAX_REQUEST} are read")
        return await upstream.read_exactly(self._loop, sock, size)

    async def _answer(self, payload: bytes) -> bytes:
        """Return what a request is answered. Raises: NotAllowed."""
        asked = parse(payload, self._plan.namespaces)
        if isinstance(asked, Listing):
            answer = await self._ask(LIST_KEYS, LIST_SECONDS)
            return keys_answer(answer, self._plan.keys)
        if self._plan.keys is not None and asked.key not in self._plan.keys:
            raise NotAllowed("a signature with a key that the user does not sign with")
        passage = self._gate.propose(_request(asked), None)
        if isinstance(passage, Awaitable):
            found: Passage = await passage
        else:
            found = passage
        if not isinstance(found, Passed):
            return FAILURE
        return await self._signed(found.effect_id, asked)

    async def _signed(self, effect_id: str, asked: Signature) -> bytes:
        """Have the agent sign what passed, and report how that ended."""
        try:
            answer = signature_answer(await self._ask(asked.request, SIGN_SECONDS))
        except NotAllowed as failed:
            self._gate.answered(
                effect_id, NetResponse(outcome=Outcome.FAILED, status=_FAILED, detail=str(failed)), None
            )
            return FAILURE
        except asyncio.CancelledError:
            self._gate.answered(effect_id, NetResponse(outcome=Outcome.UNKNOWN, detail="the run ended"), None)
            raise
        response = NetResponse(
            outcome=Outcome.DONE,
            status=_SIGNED,
            size_bytes=len(answer),
            digest=hashlib.sha256(answer).hexdigest(),
            detail="signed",
        )
        self._gate.answered(effect_id, response, None)
        return answer

    async def _ask(self, payload: bytes, seconds: float) -> bytes:
        """Ask the agent, one client after the other, in a time that takes the waiting in."""
        try:
            async with asyncio.timeout(seconds), self._turn:
                return await upstream.ask(self._loop, self._plan.agent, payload)
        except TimeoutError:
            raise NotAllowed("the ssh-agent did not answer in time") from None


class _LengthRefused(NotAllowed):
    """A request whose length is out of bounds."""


def _request(asked: Signature) -> NetRequest:
    """Return a signature as the core decides it and the ledger holds it."""
    signed = asked.signed
    return NetRequest(
        method="SIGN",
        scheme=AGENT_SCHEME,
        host=AGENT_SCHEME,
        port=0,
        path=f"/{asked.namespace}/{fingerprint(asked.key)}",
        headers=(("signed-hash", f"{asked.hash_name}:{asked.digest.hex()}"),),
        protocol=AGENT_SCHEME,
        body_size_bytes=len(signed),
        body_digest=hashlib.sha256(signed).hexdigest(),
    )
