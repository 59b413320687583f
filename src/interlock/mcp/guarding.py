"""One client's session with one server: every call is decided before the server hears of it, in a run of its own.

It knows no transport: whoever carries the messages hands each of them in, with a way to both sides.
Holds: what the fold has not let through is never sent to the server; whatever the client reads of a tool is on record
before it reads it; a fault of ours refuses.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, assert_never

from interlock.boundary.mcp.conversing import CALL, Conversation
from interlock.boundary.mcp.messages import INTERNAL, Id, Response, answer, failure
from interlock.boundary.mcp.moves import (
    Back,
    Cancelled,
    Dropped,
    Guarded,
    Listed,
    Onward,
    Ours,
    Replied,
    Returned,
)
from interlock.mcp import telling
from interlock.mcp.asking import Put, asked_by
from interlock.mcp.calling import Decider
from interlock.mcp.offering import Offered
from interlock.mcp.pending import Pending, Send, ServerGone
from interlock.mcp.siblings import Siblings
from interlock.model import events as ev
from interlock.model.errors import InterlockError
from interlock.sdk.errors import Refusal

if TYPE_CHECKING:
    from interlock.sdk.scope import Scope

OpenRun = Callable[[Put, Mapping[str, tuple[str, ...]]], "Scope"]
_LOOKING_S = 0.01
_MAX_REASONS = 200
"""So many reasons why a message went nowhere are told apart."""
_THREADS = 64
"""So many questions may be open at once before others wait for a thread."""


class Session:
    """Guards one conversation.

    Takes: `server`, its name; `open_run`, which opens the run, with a way to put a form to the client and the tools
    that may be believed to read only; `asks_client`, whether what is deferred is put to the client's own user;
    `believes`, whether the server's annotations count; `note`, who is told one line; `siblings`, the servers beside it;
    `alone`, whether the loop is this session's own.
    """

    def __init__(
        self,
        *,
        server: str,
        conversation: Conversation,
        open_run: OpenRun,
        asks_client: bool,
        believes: bool,
        note: Callable[[str], None],
        siblings: Siblings,
        alone: bool = False,
    ) -> None:
        self.server = server
        self._alone = alone
        self.asks_client = asks_client
        self._talk = conversation
        self._open_run = open_run
        self._note = note
        self._decider: Decider | None = None
        self._to_server: Send | None = None
        self._pending: dict[Id, Pending] = {}
        self._asked_in_answer: dict[str, Pending] = {}
        self._own: dict[Id, asyncio.Future[Response]] = {}
        self._offered = Offered(server, believes=believes, note=note, siblings=siblings)
        self._gone = ""
        self._count = 0
        self._told: dict[str, int] = {}

    @property
    def run_id(self) -> str:
        """Return the id of the run, `""` while there was nothing to record."""
        return self._decider.scope.run_id if self._decider is not None else ""

    # what is said

    async def client_said(self, raw: bytes | None, *, back: Send, onward: Send) -> None:
        """Take a message of the client's, and come back when its answer was given, where it has one.

        Takes: `raw`, without the end of the line, None for one that was too long to be kept; `back`, to the client on
        the exchange of this message; `onward`, to the server.
        """
        self._to_server = onward
        move = self._talk.from_client(raw)
        match move:
            case Onward():
                await onward(move.raw)
            case Back():
                self._unreadable("client", move.why)
                await back(move.raw)
            case Dropped():
                self._unreadable("client", move.why)
            case Guarded():
                await self._guarded(move, back, onward)
            case Replied():
                await self._replied(move, back, onward)
            case Ours():
                self._own_answered(move)
            case Cancelled():
                pending = self._pending.get(move.id)
                if move.raw:
                    await onward(move.raw)
                if pending is not None:
                    pending.give_up()
            case _:
                assert_never(move)

    async def server_said(self, raw: bytes | None, *, back: Send, onward: Send) -> None:
        """Take a message of the server's. Takes: `back`, to the server; `onward`, to the client."""
        move = self._talk.from_server(raw)
        match move:
            case Onward():
                await onward(move.raw)
            case Back():
                self._unreadable("server", move.why)
                await back(move.raw)
            case Dropped():
                self._unreadable("server", move.why)
            case Listed():
                await onward(self._offered.seen(move, self._decider is not None, self._scope))
            case Returned():
                pending = self._pending.get(move.id)
                if pending is not None and pending.response is not None and not pending.response.done():
                    pending.response.set_result(move.response)
            case Ours():
                self._own_answered(move)
            case _:
                assert_never(move)

    def server_gone(self, why: str) -> None:
        """Say that the server ended, or cannot be reached: whoever waits is told, and nothing is sent any more."""
        self._gone = self._gone or why
        for pending in self._pending.values():
            if pending.response is not None and not pending.response.done():
                pending.response.set_exception(ServerGone(why, sent=True))
        for future in self._own.values():
            if not future.done():
                future.set_exception(ServerGone(why, sent=True))

    async def settled(self, within_s: float) -> None:
        """Wait until what the client asked for has its answer, at most so long."""
        over = asyncio.get_running_loop().time() + within_s
        while not self._talk.is_quiet and asyncio.get_running_loop().time() < over:
            await asyncio.sleep(_LOOKING_S)

    async def closed(self) -> None:
        """End the run: the client is gone. What waits is resolved, and released calls are made, before it is sealed.

        Raises: StuckError, where it cannot be sealed; LedgerLost.
        """
        every = [*self._pending.values(), *self._asked_in_answer.values()]
        works = [one.work for one in every if one.work is not None]
        for one in every:
            one.give_up()
        await asyncio.gather(*works, return_exceptions=True)
        self._offered.leave()
        if self._decider is not None:
            await self._decider.ended()

    # what is decided

    async def _guarded(self, move: Guarded, back: Send, onward: Send) -> None:
        pending = self._asked_before(move)
        if pending is not None:
            self._pending[move.request.id] = pending
            pending.bind(move, back, onward)
            assert pending.question is not None
            if not pending.question.done():
                pending.question.set_result(_said_to_us(move))
        else:
            self._count += 1
            name = f"{self.server}/{move.tool}"
            pending = Pending(move, name=name, call_id=f"m{self._count}", back=back, onward=onward)
            self._pending[move.request.id] = pending
            pending.work = asyncio.create_task(self._work(pending, move.tool))
        turn = pending.turn
        try:
            await asyncio.shield(turn)
        except asyncio.CancelledError:
            if not turn.done():
                pending.give_up()
            raise

    async def _work(self, pending: Pending, tool: str) -> None:
        asked_by.set(pending)
        try:
            try:
                said = await self._answer(pending, tool)
            except InterlockError as error:
                unknown = isinstance(error, ServerGone) and error.sent
                said = telling.broken(pending, error.message, unknown=unknown)
            except Exception as error:  # noqa: BLE001 - a fault of ours refuses
                self._note(f"a fault of Interlock's own: {type(error).__name__}")
                sent = pending.response is not None
                said = telling.broken(pending, "a fault of Interlock's own", unknown=sent)
            self._forget(pending)
            await pending.say(said)
        except OSError:
            pass  # the client is gone
        finally:
            self._forget(pending)
            if not pending.turn.done():
                pending.turn.set_result(None)

    def _forget(self, pending: Pending) -> None:
        """Free a request's id, once: the client may use it again as soon as it has its answer."""
        if self._pending.get(pending.id) is pending:
            del self._pending[pending.id]
            self._talk.over(pending.id)

    async def _answer(self, pending: Pending, tool: str) -> bytes:
        decider = self._open()
        continued = decider.continued(pending)
        for method, asked, reply in decider.replies(pending, continued):
            refusal = await decider.replied(method, asked, reply, f"{pending.call_id}-{method}")
            if refusal is not None:
                return telling.refused(pending, refusal)
        alone = self._alone and len(self._pending) == 1
        came = await decider.decided(pending, tool, continued, self._forward(pending), alone=alone)
        if isinstance(came, Response):
            return came.raw if came.id == pending.id else _with_id(came, pending.id)
        if isinstance(came, Refusal):
            return telling.refused(pending, came)
        if self.asks_client and pending.elicits:
            made = await decider.resolved(came)
            if isinstance(made, Response):
                return made.raw if made.id == pending.id else _with_id(made, pending.id)
            return telling.refused(pending, made)
        return telling.waiting(pending, came, is_error=tool in self._offered.shaped)

    def _forward(self, pending: Pending) -> Callable[[], Any]:
        async def forward() -> Response:
            if self._gone:
                raise ServerGone(self._gone, sent=False)
            if pending.turn.done():
                return await self._made_later(pending)
            future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
            pending.response = future
            self._talk.sent(pending.id)
            try:
                await pending.onward(pending.onward_bytes())
            except OSError as error:
                raise ServerGone("the server cannot be reached any more", sent=True) from error
            return await future

        return forward

    async def _made_later(self, pending: Pending) -> Response:
        """Make a call whose client was told that it waits."""
        number, future = self._own_request(to_server=True)
        assert self._to_server is not None
        await self._to_server(pending.onward_bytes(number))
        return await future

    async def _replied(self, move: Replied, back: Send, onward: Send) -> None:
        """Decide what the client tells a server that asked it."""
        request, response = move.request, move.response
        refusal = None
        if response.result is not None:
            self._count += 1
            try:
                refusal = await self._open().replied(
                    request.method, request.params, response.result, f"m{self._count}"
                )
            except InterlockError as error:
                self._note(error.message)
                await onward(failure(request.id, INTERNAL, "the client's answer could not be passed"))
                return
        if refusal is None:
            await onward(response.raw)
        else:
            self._note(f"an answer to `{request.method}` was not passed: {refusal.rationale}")
            await onward(failure(request.id, INTERNAL, "the client's answer was not passed"))

    # the client is asked

    async def _put(self, pending: Pending, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put a form to the client, and return what it says."""
        if pending.modern:
            return await self._put_in_answer(pending, asked)
        number, future = self._own_request(to_server=False)
        pending.asking.add(future)
        try:
            await pending.back(telling.elicitation(str(number), asked))
            response = await future
        except asyncio.CancelledError:
            with suppress(OSError, TimeoutError):
                await asyncio.wait_for(pending.back(telling.withdrawn(str(number))), _LOOKING_S)
            raise
        finally:
            pending.asking.discard(future)
            self._own.pop(number, None)
            self._talk.forget(str(number))
        return response.result or {}

    async def _put_in_answer(self, pending: Pending, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        state = secrets.token_hex(16)
        pending.question = asyncio.get_running_loop().create_future()
        pending.asking.add(pending.question)
        self._asked_in_answer[state] = pending
        self._forget(pending)
        try:
            await pending.say(telling.input_required(pending.id, asked, state))
            return await pending.question
        finally:
            pending.asking.discard(pending.question)
            self._asked_in_answer.pop(state, None)

    def _asked_before(self, move: Guarded) -> Pending | None:
        """Return the request that this one repeats with an answer of our question, None where it is another."""
        state = move.request.params.get("requestState")
        pending = self._asked_in_answer.get(state) if isinstance(state, str) else None
        if pending is None or pending.first.method != move.request.method:
            return None
        same = pending.arguments == move.arguments and (
            move.request.method != CALL or pending.first.params.get("name") == move.tool
        )
        return pending if same else None

    def _own_request(self, *, to_server: bool) -> tuple[Id, asyncio.Future[Response]]:
        number: Id = self._talk.own_id(to_server=to_server)
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._own[number] = future
        return number, future

    def _own_answered(self, move: Ours) -> None:
        future = self._own.pop(move.id, None)
        if future is not None and not future.done():
            future.set_result(move.response)

    # what is recorded

    def _open(self) -> Decider:
        if self._decider is None:
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "interlock-mcp"))
            scope = self._open_run(self._put, self._offered.read_only)
            self._decider = Decider(scope, self.server)
            self._offered.record_early(scope)
        return self._decider

    def _scope(self) -> Scope:
        return self._open().scope

    def _unreadable(self, side: str, why: str) -> None:
        """Record that a message went nowhere; a flood of the same is told at its 1st, 2nd, 4th, 8th … time."""
        reason = f"from the {side}: {why}"
        if reason not in self._told and len(self._told) >= _MAX_REASONS:
            reason = f"from the {side}: of many kinds"
        seen = self._told[reason] = self._told.get(reason, 0) + 1
        if seen & (seen - 1):
            return
        self._note(f"a message went nowhere, {reason}")
        try:
            scope = self._open().scope
            scope.told(
                ev.TrafficRefused(host=f"mcp:{self.server}", port=0, reason=reason, count=max(seen // 2, 1))
            )
        except InterlockError as error:
            self._note(error.message)


def _said_to_us(move: Guarded) -> Mapping[str, Any]:
    replies = move.request.params.get("inputResponses")
    said = replies.get(telling.KEY) if isinstance(replies, dict) else None
    return said if isinstance(said, dict) else {}


def _with_id(response: Response, number: Id) -> bytes:
    if response.error is not None:
        from interlock.boundary.mcp.messages import written

        return written({"jsonrpc": "2.0", "id": number, "error": dict(response.error)})
    return answer(number, response.result or {})
