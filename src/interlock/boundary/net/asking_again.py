"""The model is asked once more, in place of an answer of which a call was refused: by a request like any other.

It is proposed, recorded and answered as the agent's own requests are; only its answer is not the agent's yet.
"""

from dataclasses import replace

from interlock.boundary.lens.auditing import AnswerAudit
from interlock.boundary.net.around import Around
from interlock.boundary.net.audited import AskAgain, Audited
from interlock.boundary.net.exchange import NetExchange
from interlock.boundary.net.gate import Parked, Verdicts
from interlock.boundary.net.proposing import field
from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import AnswerHead, RawHeaders, RequestHead
from interlock.model.requests import Outcome

_ONCE = frozenset(
    (
        b"content-encoding",
        b"content-md5",
        b"content-digest",
        b"digest",
        b"idempotency-key",
        b"x-idempotency-key",
    )
)
"""Fields that speak of the first body, or that would have the provider give its first answer once more."""
_SIGNED = ("aws4-", "signature ")


def asking(around: Around, head: RequestHead, place: Place, left: int) -> AskAgain | None:
    """Return how a request is asked again. Takes: `left`, how often at most.

    Returns: None where it cannot be: its key signs its very body.
    """
    if field(head.headers, b"authorization").lower().startswith(_SIGNED):
        return None
    headers = tuple(one for one in head.headers if one[0] not in _ONCE)
    head = replace(head, headers=headers, expects_continue=False)

    def again(before: Audited, audit: AnswerAudit, body: bytes, verdicts: Verdicts) -> "AskedAgain":
        return AskedAgain(
            around, before, replace(head, length=len(body)), place, audit, body, verdicts, left - 1
        )

    return again


class _Nobody:
    """The client of an exchange until its answer is the agent's."""

    def interim(self, head: AnswerHead) -> None:
        pass

    def answer(self, head: AnswerHead) -> None:
        pass

    def data(self, chunk: bytes) -> None:
        pass

    def end(self, trailers: RawHeaders) -> None:
        pass

    def cut(self) -> None:
        pass

    def read_on(self, on: bool) -> None:
        pass


class _Second(Audited):
    """The answer to a request that was asked again: one that is none leaves the word to the answer before."""

    fallen: "AskedAgain"

    def answer(self, head: AnswerHead) -> None:
        if 200 <= head.status < 300 or (_comes_later(head.status) and not self.agent.begun):
            super().answer(head)
        else:
            self.fallen.fall_back()

    def cut(self) -> None:
        if self.passed:
            super().cut()
        else:
            self.fallen.fall_back()


class AskedAgain(NetExchange):
    """An exchange of the boundary's own.

    Takes: `before`, the audit of the answer of which a call was refused; `left`, how often may be asked after this one.
    Holds: as long as the agent got nothing of its answer, a failure leaves it to the answer before to end.
    """

    def __init__(  # noqa: PLR0917 - it stands between all of these
        self,
        around: Around,
        before: Audited,
        head: RequestHead,
        place: Place,
        audit: AnswerAudit,
        body: bytes,
        verdicts: Verdicts,
        left: int,
    ) -> None:
        super().__init__(around, _Nobody(), head, place)
        self._before = before
        self._verdicts = verdicts
        self._left = left
        self._follow = audit.follow(body)
        self._fallen = False
        around.loop.call_soon(self._ask, body)

    def _ask(self, body: bytes) -> None:
        if not self._ended:
            self.body_data(body)
            self.body_end(())

    def _holds_answer(self, effect_id: str) -> bool:
        again = asking(self._around, self._head, self._place, self._left) if self._left > 0 else None
        second = _Second(self._around, self, self._before.agent, self._follow, effect_id, again=again)
        second.fallen = self
        self._client = second
        self._audit = second
        self._around.loop.call_later(self._limits.idle_seconds, self._silent)
        return True

    def _silent(self) -> None:
        """Give up a model that says nothing, where the agent is kept alive and so would wait for ever."""
        if self._ended or self._fallen or self._answer is not None or not self._before.agent.begun:
            return
        far, self._far = self._far, None
        if far is not None:
            far.abort()
            self.came_failure(Outcome.UNKNOWN, f"it said nothing for {self._limits.idle_seconds:g} s")

    def _park(self, passage: Parked) -> None:
        self._effect_id = passage.effect_id
        self._report(Outcome.FAILED, "a request of the boundary's own cannot be parked")
        self._finish(AnswerHead(status=503, headers=()), b"")

    def _finish(self, head: AnswerHead, body: bytes) -> None:
        """Take an answer of the boundary itself: there is none of the model."""
        if not self._ended:
            self._ended = True
            self.fall_back()
        self._release()

    def fall_back(self) -> None:
        """Leave it to the answer before; what still comes for this one is nobody's."""
        if not self._fallen:
            self._fallen = True
            self._client = _Nobody()
            self._audit = None
            self._before.give_up(self._verdicts)


def _comes_later(status: int) -> bool:
    """Say whether an error of the provider is one after which the agent itself asks once more."""
    return status in (408, 429) or status >= 500
