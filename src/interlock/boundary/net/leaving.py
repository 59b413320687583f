"""A request on its way out: dialled, sent and pumped, and each way that it ends, reported once."""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from interlock.boundary.net.around import Around
from interlock.boundary.net.bodies import Kept, Spool, SpoolFailed
from interlock.boundary.net.dial import DialError
from interlock.boundary.net.gate import Passage
from interlock.boundary.net.heads import bodyless
from interlock.boundary.net.http1_far import Http1Far, Switched
from interlock.boundary.net.pool import Way
from interlock.boundary.net.proposing import response_of
from interlock.boundary.net.refusal import grpc_plain, is_grpc, plain
from interlock.boundary.net.settings import FarConnection, Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, Exchange, FarSide, RawHeaders, RequestHead
from interlock.model.requests import Outcome

if TYPE_CHECKING:
    from interlock.boundary.net.audited import Audited

_IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))
_DIAL_STATUS = {"timed-out": 504, "misdirected": 421}
_TITLE = "The far side cannot be had"


class Leaving(Exchange):
    """The part of an exchange that sends.

    Holds: a request that passed is reported to the gate exactly once; the client gets exactly one answer, or sees its
    connection break.
    """

    def __init__(self, around: Around, client: ClientSide, head: RequestHead, place: Place) -> None:
        self._around = around
        self._client = client
        self._head = head
        self._place = place
        self._limits = around.plan.limits
        self._spool: Spool | None = None
        self._trailers: RawHeaders = ()
        self._effect_id = ""  # from the time it passed until its end was reported
        self._connection: FarConnection | None = None
        self._far: FarSide | None = None
        self._body: Iterator[bytes] | None = None
        self._waiting = False  # the far side's link is full
        self._answer: AnswerHead | None = None
        self._kept: Kept | None = None
        self._ended = False  # the client has its answer, or is gone
        self._retried = False
        self._slow = False  # the client's link is full
        self._whole = False  # the request is
        self._asked: Awaitable[Passage] | None = None
        self._uncertain = False  # a first try failed, and the far side may have taken it
        self._audit: Audited | None = None  # who stands between the answer and the client

    # sending

    def _way(self) -> Way:
        head, place = self._head, self._place
        return Way(
            address="" if head.elsewhere else place.address,
            host=head.authority_host,
            port=head.port,
            tls=head.scheme == "https",
            published=place.published,
        )

    def _h2(self) -> bool:
        return self._place.h2 or self._head.protocol == "h2"

    def _send(self) -> None:
        if not self._head.upgrade:
            ready = self._around.pool.ready(self._way(), self._h2())
            if ready is not None:
                self._begin(ready)
                return
        self._around.run(self._open(), self._place)

    async def _open(self) -> None:
        pool = self._around.pool
        self._connection = None
        try:
            if self._head.upgrade:
                connection: FarConnection = await pool.fresh(self._way())
            else:
                connection = await pool.open(self._way(), self._h2())
            if not self._ended:
                self._begin(connection)
                return
        except DialError as error:
            self._unsent(error.message)
            if not self._ended:
                hint = f" ({error.hint})" if error.hint else ""
                self._fail(_DIAL_STATUS.get(error.kind, 502), error.message + hint)
            return
        except asyncio.CancelledError:
            self._unsent("the run ended before it was sent")
            raise
        except BaseException:
            self._broke()
            raise
        pool.rest(connection)
        self._unsent("the client went away before it was sent")

    def _begin(self, connection: FarConnection) -> None:
        head = self._around.credentials.put_in(self._head)
        if self._audit is not None:
            from interlock.boundary.net.audited import asks_identity

            head = asks_identity(head)
        spool = self._spool
        size_bytes = 0 if spool is None else spool.size_bytes
        if head.length != size_bytes and not self._trailers:
            head = replace(head, length=size_bytes)
        body = size_bytes > 0 or bool(self._trailers)
        self._connection = connection
        if head.upgrade and isinstance(connection, Http1Far):
            head = self._offer(connection, head)
        self._far = connection.begin(head, self, body=body)
        if self._slow:
            self._far.read_on(False)
        if body:
            self._waiting = False
            self._body = iter(()) if spool is None else spool.chunks()
            self._pump()

    def _pump(self) -> None:
        while self._body is not None and self._far is not None and not self._waiting:
            far = self._far
            try:
                chunk = next(self._body, None)
            except SpoolFailed as error:
                self._body = self._far = None
                far.abort()
                self._report(Outcome.UNKNOWN, str(error))
                self._fail(502, str(error))
                return
            if chunk is None:
                self._body = None
                far.end(self._trailers)
            else:
                far.send(chunk)

    def _may_retry(self, outcome: Outcome) -> bool:
        """Say whether the far side cannot have acted on it, or acting twice is acting once (RFC 9110 §9.2.2)."""
        if outcome is Outcome.FAILED:
            return True
        connection = self._connection
        return (
            isinstance(connection, Http1Far)
            and connection.used
            and not connection.began
            and self._head.method in _IDEMPOTENT
        )

    # a websocket

    def _offer(self, connection: Http1Far, head: RequestHead) -> RequestHead:
        from interlock.boundary.net import upgrading

        sent = upgrading.offer(head)
        connection.on_switched = lambda switched: self._switched(switched, sent)
        return sent

    def _switched(self, switched: Switched, sent: RequestHead) -> None:
        from interlock.boundary.net import upgrading

        if self._ended or not upgrading.join(
            self._around, self._client, switched, sent, self._head, self._effect_id
        ):
            switched.link.abort()
            self.came_failure(Outcome.UNKNOWN, "the far side's answer to the upgrade is not a right one")
            return
        self._ended = True
        self._far = None
        self._effect_id = ""  # the relay reports its end
        self._release()

    # endings

    def _too_large(self) -> None:
        self._turn_away(413, f"the body is larger than {self._limits.body_bytes} bytes")

    def _turn_away(self, status: int, detail: str) -> None:
        if not self._ended:
            self._around.turned_away(self._place, detail)
        self._fail(status, detail)

    def _fail(self, status: int, detail: str) -> None:
        title = _TITLE if status in (502, 504) else "Not taken"
        if is_grpc(self._head.headers):
            self._finish(grpc_plain(title, detail), b"")
        else:
            self._finish(*plain(status, title, detail))

    def _finish(self, head: AnswerHead, body: bytes) -> None:
        if not self._ended:
            self._ended = True
            if bodyless(self._head.method, head.status):
                head, body = replace(head, length=0), b""
            self._client.answer(head)
            if body:
                self._client.data(body)
            self._client.end(())
        self._release()

    def _report(self, outcome: Outcome, detail: str) -> None:
        effect_id, self._effect_id = self._effect_id, ""
        if not effect_id:
            return
        response, whole = response_of(outcome, detail, self._answer, self._kept)
        self._around.gate.answered(effect_id, response, whole)

    def _unsent(self, detail: str) -> None:
        self._report(Outcome.UNKNOWN if self._uncertain else Outcome.FAILED, detail)
        if self._ended:
            self._release()

    def _broke(self) -> None:
        """Leave nobody waiting where the boundary itself failed."""
        far, self._far = self._far, None
        if far is not None:
            far.abort()
        begun = self._connection is not None or self._uncertain
        try:
            self._report(Outcome.UNKNOWN if begun else Outcome.FAILED, "the boundary failed on it")
        finally:
            self._fail(502, "the boundary failed on it")

    def _release(self) -> None:
        self._body = None
        self._close_spool()

    def _close_spool(self) -> None:
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()
