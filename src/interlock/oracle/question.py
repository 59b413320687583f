"""The bounded question: what an oracle is asked, and what its answer is worth.

An oracle resolves what was deferred and nothing else. Whatever it says passes `sanity`, so that no oracle
can overturn a refusal, answer what was not asked, or release by silence or nonsense.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from interlock.model.effects import Effect
from interlock.model.errors import InterlockError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision, Verdict

_REASON_CHARACTERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The deferred effects of one scope, put to an oracle.

    Takes: `task`, the principal's words; `deferred`, in order of proposal; `diff`, which gives an
    effect's unified diff, or a request's body, as text and may raise; `now`, whether the command still runs and
    waits for the answer, so that nothing can be left for later.
    """

    task: str
    deferred: tuple[tuple[Effect, Verdict], ...]
    diff: Callable[[Effect], str]
    now: bool = False


class Oracle(Protocol):
    """Whoever resolves deferred effects."""

    @property
    def name(self) -> str:
        """Return the name that the ledger records."""

    def resolve(self, question: Question) -> OracleAnswered:
        """Answer the question; a failure is an answer with a `fault`, never an exception."""


def ask(oracle: Oracle, question: Question) -> OracleAnswered:
    """Put the question to the oracle and return the sane part of what it says.

    Holds: never raises; whatever the oracle does, the outcome releases only what was deferred and what the
    oracle released by exactly one answer.
    """
    try:
        answered = oracle.resolve(question)
    except InterlockError as error:
        answered = OracleAnswered(oracle=oracle.name, answers=(), fault=error.message)
    except Exception as error:  # noqa: BLE001  (an oracle that breaks is an oracle that refuses)
        # The message may hold what the oracle was shown; its type does not.
        answered = OracleAnswered(oracle=oracle.name, answers=(), fault=f"broke off: {type(error).__name__}")
    return sanity(answered, question)


def sanity(answered: OracleAnswered, question: Question) -> OracleAnswered:
    """Bound an oracle's answer by its question: one answer for each deferred effect, in their order.

    Holds: an answer on anything that was not deferred is dropped; no answer, two answers, or an answer
    other than RELEASE refuses; a fault refuses all; a scope left open has no answers; a second pass
    changes nothing.
    Source: KAIROS, bounded oracles; ours.
    """
    if answered.fault:
        fault = _line(answered.fault)
        refusals = tuple(_refusal(effect.id, fault) for effect in _deferred(question))
        return replace(answered, answers=refusals, fault=fault, leave_open=False)
    if answered.leave_open:
        return replace(answered, answers=())
    given: dict[str, list[Answer]] = {}
    for answer in answered.answers:
        given.setdefault(answer.effect_id, []).append(answer)
    return replace(answered, answers=tuple(_one(effect.id, given) for effect in _deferred(question)))


def _deferred(question: Question) -> list[Effect]:
    # Only a DEFER may be answered: a REFUSE that strayed into the question stays refused.
    return [effect for effect, verdict in question.deferred if verdict.decision is Decision.DEFER]


def _one(effect_id: str, given: Mapping[str, list[Answer]]) -> Answer:
    match given.get(effect_id, []):
        case []:
            return _refusal(effect_id, "the oracle gave no answer")
        case [answer] if answer.decision is Decision.DEFER:
            return _refusal(effect_id, "the oracle did not decide")
        case [answer]:
            return replace(answer, reason=_line(answer.reason))
        case _:
            return _refusal(effect_id, "the oracle answered more than once")


def _refusal(effect_id: str, reason: str) -> Answer:
    return Answer(effect_id=effect_id, decision=Decision.REFUSE, reason=reason)


def _line(text: str) -> str:
    """Bound a reason: the ledger takes no lone surrogates, and nobody reads a novel."""
    clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return clean if len(clean) <= _REASON_CHARACTERS else clean[: _REASON_CHARACTERS - 3] + "..."
