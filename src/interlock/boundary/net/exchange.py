"""One request and its answer: spooled, proposed, and only then sent on, answered, parked or refused."""

import asyncio
from collections.abc import Awaitable
from typing import assert_never

from interlock.boundary.net.around import Around
from interlock.boundary.net.bodies import BodyTooLarge, Kept, Spool, SpoolFailed
from interlock.boundary.net.gate import Answered, Parked, Passage, Passed, Refused
from interlock.boundary.net.leaving import Leaving
from interlock.boundary.net.parked import store
from interlock.boundary.net.proposing import request_of
from interlock.boundary.net.refusal import grpc_problem, is_grpc, placeholder, problem
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, RawHeaders, RequestHead
from interlock.model.errors import InterlockError
from interlock.model.redactions import Redaction
from interlock.model.requests import Outcome

_CONTINUE = AnswerHead(status=100, headers=())


class NetExchange(Leaving):
    """An `Exchange` (see `sides`) from a checked head to its end.

    Holds: nothing is dialled before the gate said Passed; a request that passed is reported to the gate exactly once;
    the client gets exactly one answer, or sees its connection break.
    """

    def __init__(self, around: Around, client: ClientSide, head: RequestHead, place: Place) -> None:
        super().__init__(around, client, head, place)
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
        if self._around.renamed:
            from interlock.boundary.net.audited import going_on

            try:
                self._head, self._spool = going_on(self._around, self._head, self._spool)
            except (BodyTooLarge, SpoolFailed) as error:
                self._turn_away(error.status, str(error))
                return
        self._propose(self._spool, streams=False)

    def client_gone(self) -> None:
        """Give up what is not sent yet; what is under way is cut."""
        if self._audit is not None:
            self._audit.client_gone()
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
        elif self._answer is not None:  # its calls were being judged
            self._report(Outcome.DONE, "")
            self._release()
        # else the gate's answer or the dial finds it ended

    def client_full(self, full: bool) -> None:
        """Hold the far side while the client is slow."""
        if full != self._slow:
            self._slow = full
            if self._far is not None:
                self._far.read_on(not full)
            if self._audit is not None:
                self._audit.client_full(full)

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
        if self._ended or (self._audit is not None and self._audit.holds(trailers)):
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
        try:
            self._report(outcome, detail)
        finally:  # whatever the gate does: nobody may be left waiting
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
                elif (passage.redaction is None or self._redact(passage.redaction)) and self._holds_answer(
                    passage.effect_id
                ):
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

    # an answer that is audited

    def _holds_answer(self, effect_id: str) -> bool:
        """Have the answer audited, where the gate says so. Returns: False, where it could not be: nothing leaves."""
        if not self._around.gate.audits(effect_id):
            messages = self._around.gate.reads(effect_id)
            if messages is not None:
                from interlock.boundary.net.mcp_side import McpSide

                self._client = McpSide(self._around, self, self._client, self._head.method, messages)
            return True
        from interlock.boundary.net import audited

        try:
            self._client = self._audit = audited.begin(
                self._around, self, self._client, self._head, self._place, effect_id, self._spool
            )
        except (audited.NotAudited, SpoolFailed) as error:
            self._report(Outcome.FAILED, f"it was not sent: {error}")
            self._fail(501, f"it was not sent: {error}")
            return False
        return True

    def told(self) -> None:
        """Report an answer that came whole; what the agent gets in its place is the audit's."""
        if not self._ended:
            self._ended = True
            self._report(Outcome.DONE, "")
            self._release()

    def unreadable(self, detail: str) -> None:
        """Give up an answer that cannot be read."""
        if self._ended:
            return
        self._ended = True
        far, self._far = self._far, None
        if far is not None:
            far.abort()
        try:
            self._report(Outcome.UNKNOWN, detail)
        finally:
            self._client.cut()
            self._release()
