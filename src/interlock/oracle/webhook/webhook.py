"""`webhook:NAME`: a desk elsewhere, where a person or a service answers with a signature before the question expires.

Only outward: the question is posted, and its answer is fetched. Nothing listens here, so nothing that can reach this
machine can answer, and a desk needs no way in.
"""

import secrets
import time
from collections.abc import Callable
from typing import Protocol

from interlock.model.errors import InputError
from interlock.model.events import OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle.asking import Way, is_withdrawn
from interlock.oracle.exchanging import Address, Came, ServiceError, address_of, exchange
from interlock.oracle.question import Question, sanity
from interlock.oracle.webhook.asking import Put, put, read_answer
from interlock.oracle.webhook.envelope import ANSWER_TYPE, QUESTION_TYPE, OwnKey, opened, read_key

SHORTEST_S, LONGEST_S = 10, 86_400
WAIT_S = 20
"""How long a desk may keep a request for an answer open that is not there yet."""
PAUSE_S = 2.0
LONGEST_PAUSE_S = 15.0
EFFECTS = 500
"""More effects than this are not put to a desk."""
_ANSWER_BYTES = 512 * 1024
_NOT_YET = frozenset({202, 204, 404})
_GONE = 410
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})


class KeySource(Protocol):
    """Where the own key lies."""

    def read(self) -> bytes:
        """Return it, in base64."""


class Entry(Protocol):
    """A webhook of models.yaml. Holds: `desk`, the desk's public key in base64."""

    @property
    def url(self) -> str: ...  # noqa: D102
    @property
    def key(self) -> KeySource: ...  # noqa: D102
    @property
    def desk(self) -> str: ...  # noqa: D102
    @property
    def expires_s(self) -> int: ...  # noqa: D102


def open_webhook(name: str, entry: Entry) -> "Webhook":
    """Open `webhook:NAME`. Raises: InputError, if its URL, its keys or its time are none."""
    what = f"the webhook `{name}`"
    if not SHORTEST_S <= entry.expires_s <= LONGEST_S:
        raise InputError(
            f"{what} expires after {entry.expires_s} s", hint=f"from {SHORTEST_S} to {LONGEST_S} seconds"
        )
    return Webhook(
        f"webhook:{name}",
        address_of(entry.url, what=what),
        own=OwnKey(read_key(entry.key.read(), what=f"`key` of {what}")),
        desk=read_key(entry.desk, what=f"`desk` of {what}"),
        expires_s=entry.expires_s,
    )


class Webhook:
    """A desk.

    Takes: `own`, the key that signs questions; `desk`, the public key that signs answers; `expires_s`, how long a
    question is open; `pause_s`, between two looks for an answer; `clock`, seconds since 1970; `ticks`, monotonic ones.
    Holds: an answer counts once, for the question whose mark and digest it names, before both have expired, and signed
    by the desk; anything else refuses all of it.
    """

    way = Way.AWAY
    together = 16

    def __init__(
        self,
        name: str,
        address: Address,
        *,
        own: OwnKey,
        desk: bytes,
        expires_s: int,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._address = address
        self._own = own
        self._desk = desk
        self._expires_s = expires_s
        self._pause_s = pause_s
        self._clock = clock
        self._ticks = ticks

    def resolve(self, question: Question) -> OracleAnswered:
        """Put the question to the desk, and wait for its answer until it expires."""
        return self.resolve_unless(question, None)

    def resolve_unless(self, question: Question, withdrawn: int | None) -> OracleAnswered:
        """Do the same, and give up once `withdrawn` can be read."""
        asked = [pair for pair in question.deferred if pair[1].decision is Decision.DEFER]
        if not asked:
            return OracleAnswered(oracle=self.name, answers=())
        if len(asked) > EFFECTS:
            return self._fault(
                f"{len(asked)} effects are more than the {EFFECTS} that a desk is asked about", question
            )
        now = int(self._clock())
        one = put(
            question, asked, mark=secrets.token_hex(16), issued_at=now, expires_at=now + self._expires_s
        )
        try:
            payload = self._answer_to(one, self._ticks() + self._expires_s, withdrawn)
            if payload is None:
                return OracleAnswered(oracle=self.name, answers=(), leave_open=True)
            answers = read_answer(payload, one, now=int(self._clock()))
        except ServiceError as error:
            return self._fault(error.message, question)
        return OracleAnswered(oracle=self.name, answers=answers)

    def _answer_to(self, one: Put, until: float, withdrawn: int | None) -> bytes | None:
        """Return the signed answer's payload, None once the question was taken back. Raises: ServiceError."""
        envelope = self._own.envelope(QUESTION_TYPE, one.payload)
        came = self._until(lambda left_s: self._post(envelope, left_s), until, withdrawn, posted=False)
        if came is not None and came.status != 200:
            place = self._address.below(one.mark)
            came = self._until(lambda left_s: self._get(place, left_s), until, withdrawn, posted=True)
        return None if came is None else opened(came.body, ANSWER_TYPE, self._desk)

    def _post(self, envelope: bytes, left_s: float) -> Came:
        return exchange(
            self._address,
            method="POST",
            body=envelope,
            deadline_s=min(WAIT_S, left_s),
            limit_bytes=_ANSWER_BYTES,
        )

    def _get(self, place: Address, left_s: float) -> Came:
        wait_s = max(0, min(WAIT_S, int(left_s)))
        return exchange(
            place,
            method="GET",
            headers={"Prefer": f"wait={wait_s}", "Cache-Control": "no-store"},
            deadline_s=min(WAIT_S * 2, left_s),
            limit_bytes=_ANSWER_BYTES,
        )

    def _until(
        self, send: Callable[[float], Came], until: float, withdrawn: int | None, *, posted: bool
    ) -> Came | None:
        """Send until something counts: the question is taken, or its answer is there. Returns: None if withdrawn."""
        pause_s = self._pause_s
        failed = ""
        while True:
            left_s = until - self._ticks()
            if left_s <= 0:
                why = f": {failed}" if failed else ""
                raise ServiceError(f"nobody answered within {self._expires_s} s{why}")
            if is_withdrawn(withdrawn):
                return None
            try:
                came = send(left_s)
                failed = ""
            except ServiceError as error:
                failed = error.message
            else:
                if came.status == 200 or (came.status == 202 and not posted):
                    return came
                if came.status == _GONE:
                    raise ServiceError("the desk will not answer this question")
                if came.status in _BUSY:
                    failed = f"status {came.status}"
                elif came.status not in _NOT_YET or not posted:
                    raise ServiceError(f"the desk answered with status {came.status}")
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S) if failed else self._pause_s
            if is_withdrawn(withdrawn, within_s=self._pause_of(pause_s, until)):
                return None
            if withdrawn is None:
                time.sleep(self._pause_of(pause_s, until))

    def _pause_of(self, pause_s: float, until: float) -> float:
        return max(0.0, min(pause_s, until - self._ticks()))

    def _fault(self, reason: str, question: Question) -> OracleAnswered:
        return sanity(OracleAnswered(oracle=self.name, answers=(), fault=reason), question)
