"""One request and its answer: spooled, proposed, and only then sent on, answered, parked or refused."""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from typing import assert_never

from interlock.boundary.net.around import Around
from interlock.boundary.net.bodies import BodyTooLarge, Kept, Spool, SpoolFailed
from interlock.boundary.net.dial import DialError
from interlock.boundary.net.gate import Answered, Parked, Passage, Passed, Refused
from interlock.boundary.net.heads import bodyless
from interlock.boundary.net.http1_far import Http1Far, Switched
from interlock.boundary.net.parked import store
from interlock.boundary.net.pool import Way
from interlock.boundary.net.proposing import request_of, response_of
from interlock.boundary.net.refusal import grpc_plain, grpc_problem, is_grpc, placeholder, plain, problem
from interlock.boundary.net.settings import FarConnection, Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, FarSide, RawHeaders, RequestHead
from interlock.model.errors import InterlockError
from interlock.model.redactions import Redaction
from interlock.model.requests import Outcome

_IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))
_CONTINUE = AnswerHead(status=100, headers=())
_DIAL_STATUS = {"timed-out": 504, "misdirected": 421}
_TITLE = "The far side cannot be had"


class NetExchange:
    """An `Exchange` (see `sides`) from a checked head to its end.

    Holds: nothing is dialled before the gate said Passed; a request that passed is reported to the gate exactly once;
    the client gets exactly one answer, or sees its connection break.
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
        if head.length is not None and head.length > self._limits.body_bytes:
            around.loop.call_soon(self._too_large)
        elif head.expects_continue:
            client.interim(_CONTINUE)

    # the client's side calls these

    def body_data(self, chunk: bytes) -> None:
        """Spool a part of the request's body."""
        if self._ended:
            return
        if self._spool is None:
            self._spool = Spool(self._around.plan.folder, self._limits)
        try:
            self._spool.append(chunk)
        except BodyTooLarge:
            self._too_large()
        except SpoolFailed as error:
            self._turn_away(error.status, str(error))

    def body_end(self, trailers: RawHeaders) -> None:
        """Ask the gate."""
        if self._ended:
            return
        self._whole = True
        self._trailers = trailers
        if self._head.upgrade:
            from interlock.boundary.net.websocket import check

            refusal = check(self._head)
            if refusal is not None:
                self._turn_away(refusal.status, refusal.reason)
                return
        if self._spool is not None:
            self._spool.finish()
        self._propose(self._spool, streams=False)

    def client_gone(self) -> None:
        """Give up what is not sent yet; what is under way is cut."""
        if self._ended:
            return
        self._ended = True
        if self._far is not None:
            far, self._far = self._far, None
            far.abort()
            self._report(Outcome.UNKNOWN, "the client went away")
            self._release()
        elif not self._whole:
            self._release()
        elif isinstance(self._asked, asyncio.Future):
            self._asked.cancel()  # the gate then asks nobody about it any more
        # else the gate's answer or the dial finds it ended

    def client_full(self, full: bool) -> None:
        """Hold the far side while the client is slow."""
        if full != self._slow:
            self._slow = full
            if self._far is not None:
                self._far.read_on(not full)

    # the far side calls these

    def came_interim(self, head: AnswerHead) -> None:
        """Send a 1xx answer on."""
        if not self._ended and self._answer is None:
            self._client.interim(head)

    def came_head(self, head: AnswerHead) -> None:
        """Begin the answer."""
        if self._ended:
            return
        self._answer = head
        self._kept = Kept(self._limits)
        self._client.answer(head)

    def came_data(self, chunk: bytes) -> None:
        """Send a part of the answer on at once."""
        if self._ended:
            return
        assert self._kept is not None
        self._kept.append(chunk)
        self._client.data(chunk)

    def came_end(self, trailers: RawHeaders) -> None:
        """End the answer, and say how it went."""
        self._far = None
        if self._ended:
            return
        self._ended = True
        # Ended first: the client need not wait for the record of what it got. The gate hears of it within the same
        # turn of the loop, so before anything that the client does next.
        self._client.end(trailers)
        self._report(Outcome.DONE, "")
        self._release()

    def came_failure(self, outcome: Outcome, detail: str) -> None:
        """Try once more where that is safe, else break off."""
        self._far = None
        if self._ended:
            return
        if self._answer is None and not self._retried and self._may_retry(outcome):
            self._retried = True
            self._uncertain = outcome is Outcome.UNKNOWN
            self._around.run(self._open(), self._place)
            return
        self._report(outcome, detail)
        if self._answer is None:
            self._fail(502, detail)
        else:
            self._ended = True
            self._client.cut()
            self._release()

    def far_full(self, full: bool) -> None:
        """Send the body on as the far side takes it."""
        self._waiting = full
        if not full:
            self._pump()

    # the decision

    def _propose(self, body: Spool | None, *, streams: bool) -> None:
        around = self._around
        try:
            request = request_of(
                self._head,
                self._place,
                body,
                around.sight,
                around.tokens,
                streams=streams,
                trailers=self._trailers,
            )
            passage = around.gate.propose(request, body)
        except SpoolFailed as error:
            self._turn_away(error.status, str(error))
            return
        except InterlockError as error:
            self._turn_away(503, error.message)
            return
        if isinstance(passage, Passed | Refused | Parked | Answered):
            self._decided(passage)
        else:
            self._asked = passage
            around.run(self._wait(passage), self._place)

    async def _wait(self, passage: Awaitable[Passage]) -> None:
        try:
            decided = await passage
            if not isinstance(decided, Passed | Refused | Parked | Answered):
                raise TypeError("what the gate said is no passage")
        except InterlockError as error:
            self._turn_away(503, error.message)
            return
        except BaseException:  # the run ends, or the gate broke: nobody may be left waiting
            self._turn_away(503, "the boundary could not decide it")
            self._release()
            raise
        self._asked = None
        self._decided(decided)

    def _decided(self, passage: Passage) -> None:
        match passage:
            case Passed():
                self._effect_id = passage.effect_id
                self._around.sight.passed(self._head)
                if self._ended:
                    self._unsent("the client went away before it was sent")
                elif passage.redaction is None or self._redact(passage.redaction):
                    self._send()
            case Refused():
                if is_grpc(self._head.headers):
                    self._finish(grpc_problem(passage.exception, passage.effect_id), b"")
                else:
                    self._finish(*problem(403, passage.exception, passage.effect_id))
            case Parked():
                self._park(passage)
            case Answered():
                kind = passage.content_type.encode("latin-1", "replace")
                head = AnswerHead(
                    status=passage.status, headers=((b"content-type", kind),), length=len(passage.body)
                )
                self._finish(head, passage.body)
            case _:
                assert_never(passage)

    def _park(self, passage: Parked) -> None:
        try:
            store(
                self._around.parked_folder,
                passage.effect_id,
                self._head,
                self._place,
                self._spool,
                self._trailers,
            )
        except (SpoolFailed, OSError) as error:
            self._effect_id = passage.effect_id
            self._report(Outcome.FAILED, "it could not be kept until it may be sent")
            self._turn_away(507, f"the request could not be parked: {type(error).__name__}")
            return
        self._finish(*placeholder(passage.effect_id, passage.token))

    def _redact(self, redaction: Redaction) -> bool:
        """Cut out what was decided. Returns: whether all of it was cut; else nothing leaves, and it is reported so."""
        from interlock.boundary.net.redacting import NotRedacted, redacted_request

        try:
            self._head, spool = redacted_request(
                self._head, self._spool, self._trailers, redaction, self._around.plan
            )
        except (NotRedacted, SpoolFailed) as error:
            self._report(Outcome.FAILED, f"it was not sent: {error}")
            self._fail(503, f"it was not sent: {error}")
            return False
        self._close_spool()
        self._spool = spool
        return True

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
        self._report(Outcome.UNKNOWN if begun else Outcome.FAILED, "the boundary failed on it")
        self._fail(502, "the boundary failed on it")

    def _release(self) -> None:
        self._body = None
        self._close_spool()

    def _close_spool(self) -> None:
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()
