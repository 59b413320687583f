"""A policy engine outside, asked about each deferred effect by one HTTP request."""

import time
from collections.abc import Callable
from typing import Protocol

from interlock.model.effects import Effect
from interlock.model.events import Answer, OracleAnswered
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision, Verdict
from interlock.oracle.asking import Way, is_withdrawn
from interlock.oracle.exchanging import Address, Came, ServiceError, exchange
from interlock.oracle.question import Question, sanity

REQUEST_S = 10.0
QUESTION_S = 60.0
"""How long one request, and all of a question's, may take."""
EFFECTS = 2000
"""More deferred effects than this are not asked about: the engine would be asked for minutes."""
ANSWER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What an engine says on one effect: RELEASE, REFUSE, or DEFER where its rules say nothing."""

    decision: Decision
    reason: str


class Dialect(Protocol):
    """How an engine is spoken to."""

    def written(self, question: Question, effect: Effect, verdict: Verdict) -> bytes:
        """Return the request's body."""

    def read(self, came: Came) -> Opinion:
        """Read the answer. Raises: ServiceError, if it is none."""


class Engine:
    """An engine at a URL.

    Takes: `name`, as the ledger has it; `clock`, monotonic seconds.
    Holds: one answer that is none, one failure, or too many effects refuse all of the question: an engine that is not
    whole is none.
    """

    way = Way.AWAY

    def __init__(
        self,
        name: str,
        address: Address,
        dialect: Dialect,
        *,
        request_s: float = REQUEST_S,
        question_s: float = QUESTION_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._address = address
        self._dialect = dialect
        self._request_s = request_s
        self._question_s = question_s
        self._clock = clock

    def resolve(self, question: Question) -> OracleAnswered:
        """Ask about each effect that was deferred, in order."""
        return self.resolve_unless(question, None)

    def resolve_unless(self, question: Question, withdrawn: int | None) -> OracleAnswered:
        """Do the same, and give up once `withdrawn` can be read."""
        asked = [pair for pair in question.deferred if pair[1].decision is Decision.DEFER]
        if len(asked) > EFFECTS:
            return self._fault(
                f"{len(asked)} effects are more than the {EFFECTS} that it is asked about", question
            )
        until = self._clock() + self._question_s
        answers = []
        for effect, verdict in asked:
            if is_withdrawn(withdrawn):
                return OracleAnswered(oracle=self.name, answers=(), leave_open=True)
            left_s = min(self._request_s, until - self._clock())
            try:
                opinion = self._ask(question, effect, verdict, left_s)
            except ServiceError as error:
                return self._fault(error.message, question)
            answers.append(Answer(effect_id=effect.id, decision=opinion.decision, reason=opinion.reason))
        return OracleAnswered(oracle=self.name, answers=tuple(answers))

    def _ask(self, question: Question, effect: Effect, verdict: Verdict, left_s: float) -> Opinion:
        body = self._dialect.written(question, effect, verdict)
        came = exchange(self._address, method="POST", body=body, deadline_s=left_s, limit_bytes=ANSWER_BYTES)
        if came.status != 200:
            raise ServiceError(f"the engine answered with status {came.status}")
        if came.content_type != "application/json":
            raise ServiceError("the engine's answer is no JSON")
        return self._dialect.read(came)

    def _fault(self, reason: str, question: Question) -> OracleAnswered:
        return sanity(OracleAnswered(oracle=self.name, answers=(), fault=reason), question)
