"""The answer of a model on its way to the agent: what holds no tool call passes, calls wait until they are judged.

A refused call never reaches the agent. The model is asked once more in its place, by a request of the boundary's own
(`asking_again`), and what it answers is audited in turn; where nothing more is asked, the agent's answer ends with a
text that says why.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from interlock.boundary.lens.auditing import AnswerAudit, Judge
from interlock.boundary.lens.reading import wire_of
from interlock.boundary.lens.requests import gone_on_from
from interlock.boundary.net.agent_side import AgentSide
from interlock.boundary.net.around import Around
from interlock.boundary.net.bodies import Spool
from interlock.boundary.net.decoding import Decoding, Undecodable
from interlock.boundary.net.gate import Verdicts
from interlock.boundary.net.inflating import inflate_sent
from interlock.boundary.net.proposing import field
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, RawHeaders, RequestHead
from interlock.model.actions import HeldCall
from interlock.model.errors import InterlockError
from interlock.model.verdicts import ExceptionType, SemanticException

_REQUEST_BYTES = 64 * 1024 * 1024
"""A larger request is not asked again."""
_RENAMED = 10_000
"""So many answers are remembered that a provider keeps by another id."""
_UNDECIDED = SemanticException(
    type=ExceptionType.STOP,
    violated_rule="audit",
    rationale="the boundary could not decide this call",
    constraints=("it was not made",),
    allowed_objective="",
)


class NotAudited(Exception):
    """The answer to a request could not be audited, so the request does not leave."""


class Audits(Protocol):
    """The exchange whose answer is audited, as the audit sees it."""

    def told(self) -> None:
        """Report that the answer came whole; from now on the audit alone gives the agent its answer."""
        ...

    def unreadable(self, detail: str) -> None:
        """Give up an answer that cannot be read."""
        ...


class Following(Protocol):
    """The exchange that asks a model once more."""

    def client_gone(self) -> None:
        """The agent is gone."""
        ...

    def client_full(self, full: bool) -> None:
        """The agent's link is full, or has room again."""
        ...


AskAgain = Callable[["Audited", AnswerAudit, bytes, Verdicts], Following]


class Audited:
    """The `ClientSide` of an exchange with a model: stands between the answer and the agent.

    Takes: `again`, how the model is asked once more, None where that was done as often as it may be.
    Holds: no byte of a call goes out before its verdict; of an answer with a refused call, no call does.
    """

    def __init__(
        self,
        around: Around,
        exchange: Audits,
        agent: AgentSide,
        audit: AnswerAudit,
        effect_id: str,
        *,
        again: AskAgain | None,
    ) -> None:
        self.agent = agent
        self._around = around
        self._exchange = exchange
        self._audit = audit
        self._effect_id = effect_id
        self._again = again
        self._decoding: Decoding | None = None
        self._plain = True  # what comes is no model's answer
        self._trailers: RawHeaders = ()
        self._asked: Awaitable[Verdicts] | None = None
        self._next: Following | None = None
        self._full = False  # the agent's link is
        self._fault = "the far side broke its answer off"
        self._heard_at = around.loop.time()
        self.passed = False
        """Whether the agent has got any of this answer."""

    # the client's side of the exchange

    def interim(self, head: AnswerHead) -> None:
        """Send a 1xx answer on."""
        self.agent.interim(head)

    def answer(self, head: AnswerHead) -> None:
        """Begin the answer; that of an error is no model's."""
        self._plain = not 200 <= head.status < 300
        if self._plain:
            self.agent.head(head, decoded=False)
            return
        encoding = field(head.headers, b"content-encoding")
        try:
            self._decoding = Decoding(encoding)
        except Undecodable as error:
            self._unreadable(error)
            return
        self.agent.head(head, decoded=encoding.strip().lower() not in ("", "identity"))

    def data(self, chunk: bytes) -> None:
        """Send on what may pass of a part."""
        self._heard_at = self._around.loop.time()
        if self._plain or self._decoding is None:
            self.agent.data(chunk)
            return
        try:
            for piece in self._decoding.feed(chunk):
                self._pass(self._audit.feed(piece))
        except Undecodable as error:
            self._unreadable(error)
            return
        if self._audit.holding:
            self.agent.keep_alive(self._alive)

    def holds(self, trailers: RawHeaders) -> bool:
        """Take the end of the answer. Returns: whether it is held, since calls of it are to be judged."""
        if self._plain or self._decoding is None:
            return False
        try:
            self._decoding.finish()
        except Undecodable as error:
            self._unreadable(error)
            return True
        found = self._audit.finish()
        self._around.gate.heard(self._effect_id, self._audit.facts)
        if not isinstance(found, Judge):
            self._pass(found.rest)
            return False
        self._trailers = trailers
        self.agent.keep_alive(self._alive)
        self._judge(found.calls)
        return True

    def end(self, trailers: RawHeaders) -> None:
        """End an answer that holds no call."""
        self._rename()
        self.agent.end(trailers)

    def cut(self) -> None:
        """Break the answer off: what is held of it never passes."""
        self.agent.cut(self._fault)

    def read_on(self, on: bool) -> None:
        """Take, or stop taking, more of the request's body."""
        self.agent.read_on(on)

    # the agent

    def client_gone(self) -> None:
        """Ask nobody about it any more."""
        self.agent.close()
        asked, self._asked = self._asked, None
        if isinstance(asked, asyncio.Future):
            asked.cancel()
        if self._next is not None:
            self._next.client_gone()

    def client_full(self, full: bool) -> None:
        """Hold the answer that comes now while the agent is slow."""
        self._full = full
        if self._next is not None:
            self._next.client_full(full)

    # the verdicts

    def _unreadable(self, error: Undecodable) -> None:
        self._fault = f"the far side's answer cannot be read: {error.reason}"
        self._exchange.unreadable(self._fault)

    def _judge(self, calls: tuple[HeldCall, ...]) -> None:
        try:
            verdicts = self._around.gate.judge(self._effect_id, calls)
        except InterlockError:
            verdicts = (_UNDECIDED,) * len(calls)
        if isinstance(verdicts, tuple):
            self._judged(calls, verdicts)
            return
        self._asked = verdicts
        self._around.run(self._wait(calls, verdicts))

    async def _wait(self, calls: tuple[HeldCall, ...], asked: Awaitable[Verdicts]) -> None:
        try:
            verdicts = await asked
        except InterlockError:
            verdicts = (_UNDECIDED,) * len(calls)
        except (
            BaseException
        ):  # the run ends, the agent is gone, or the gate broke: nobody may be left waiting
            self._exchange.told()
            self.agent.cut("the boundary could not decide the calls of the answer")
            raise
        self._asked = None
        if not self.agent.over:
            self._judged(calls, verdicts)

    def _judged(self, calls: tuple[HeldCall, ...], verdicts: Verdicts) -> None:
        if len(verdicts) != len(calls):
            verdicts = (_UNDECIDED,) * len(calls)
        try:
            self._exchange.told()
            self._go_on(calls, verdicts)
        except BaseException:  # a fault of ours: the agent sees its connection break, and does not wait
            self.agent.cut("the boundary failed on the calls of the answer")
            raise

    def _go_on(self, calls: tuple[HeldCall, ...], verdicts: Verdicts) -> None:
        if not any(verdicts) and not any(call.fault for call in calls):
            self._pass(self._audit.released(verdicts))
            self._rename()
            self.agent.end(self._trailers)
            return
        body = self._audit.again(verdicts) if self._again is not None else None
        if body is None or self._again is None:
            self.give_up(verdicts)
            return
        self.agent.change()
        self._next = self._again(self, self._audit, body, verdicts)
        self._next.client_full(self._full)

    def give_up(self, verdicts: Verdicts) -> None:
        """End the agent's answer by saying why a call of it was refused."""
        self._next = None
        self.agent.change()
        self._pass(self._audit.over(verdicts))
        self.agent.end(())

    def _rename(self) -> None:
        """Remember by which id the provider keeps an answer that was put together of two."""
        renamed = self._around.renamed
        renamed.update(self._audit.renamed)
        while len(renamed) > _RENAMED:
            del renamed[next(iter(renamed))]

    def _pass(self, chunk: bytes) -> None:
        if chunk:
            self.passed = True
            self.agent.data(chunk)

    def _alive(self) -> bytes:
        """Return what keeps the agent alive. Holds: it does not wait for ever for a provider that says no more."""
        seconds = self._around.plan.limits.idle_seconds
        comes = self._asked is None and self._next is None and not self.agent.over
        if comes and self._around.loop.time() - self._heard_at > seconds:
            self._fault = f"the far side said nothing for {seconds:g} s"
            self._exchange.unreadable(self._fault)
            return b""
        return self._audit.keep_alive


def body_of(head: RequestHead, spool: Spool | None) -> bytes:
    """Return a request's whole body, decompressed; `b""` where it cannot be read, and so is not asked again.

    Raises: SpoolFailed.
    """
    if spool is None or spool.size_bytes > _REQUEST_BYTES:
        return b""
    data = b"".join(spool.chunks())
    encoding = field(head.headers, b"content-encoding")
    return (inflate_sent(data, encoding, _REQUEST_BYTES) or b"") if encoding else data


def going_on(around: Around, head: RequestHead, spool: Spool | None) -> tuple[RequestHead, Spool | None]:
    """Return a request that goes on from an answer by the id that the provider knows it by, the same for any other.

    Raises: SpoolFailed, BodyTooLarge.
    """
    wire = wire_of(head.target.partition("?")[0])
    body = body_of(head, spool) if wire and spool is not None else b""
    changed = gone_on_from(wire, body, around.renamed)
    if changed == body:
        return head, spool
    written = Spool(around.plan.folder, around.plan.limits)
    written.append(changed)
    written.finish()
    if spool is not None:
        spool.close()
    headers = tuple(one for one in head.headers if one[0] != b"content-encoding")
    return replace(head, headers=headers, length=len(changed)), written


def asks_identity(head: RequestHead) -> RequestHead:
    """Return a head that asks for an answer as it is, not compressed."""
    fields = tuple(one for one in head.headers if one[0] != b"accept-encoding")
    return replace(head, headers=(*fields, (b"accept-encoding", b"identity")))


def begin(  # noqa: PLR0917 - an audit stands between all of these
    around: Around,
    exchange: Audits,
    client: ClientSide,
    head: RequestHead,
    place: Place,
    effect_id: str,
    spool: Spool | None,
) -> Audited:
    """Begin to audit the answer to an agent's own request.

    Takes: `spool`, its body. Raises: NotAudited; SpoolFailed.
    """
    from interlock.boundary.net.asking_again import asking

    wire = wire_of(head.target.partition("?")[0])
    if head.upgrade or not wire:
        raise NotAudited("what a model answers in this way cannot be read")
    limits = around.plan.limits
    agent = AgentSide(client, head.method, around.loop, limits.quiet_seconds)
    left = around.plan.asks_again
    again = asking(around, head, place, left) if left > 0 else None
    audit = AnswerAudit(wire, body_of(head, spool))
    return Audited(around, exchange, agent, audit, effect_id, again=again)
