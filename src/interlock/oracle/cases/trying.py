"""Puts cases to an oracle, one question after the other, and keeps what it said, how long it took and what it cost."""

import time
from collections.abc import Callable, Iterable, Iterator

from interlock.model.inferences import Inference
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision
from interlock.oracle.cases.case import Case
from interlock.oracle.question import Oracle, ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What became of one effect."""

    effect_id: str
    good: bool
    released: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What an oracle made of a case. Takes: `fault`, why it gave no answer, `""` where it did."""

    case: Case
    said: tuple[Said, ...]
    elapsed_ms: float
    fault: str = ""
    inferences: tuple[Inference, ...] = ()


def try_cases(
    oracle: Oracle, cases: Iterable[Case], *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Judged]:
    """Yield what the oracle makes of each case."""
    for case in cases:
        yield try_case(oracle, case, clock=clock)


def try_case(oracle: Oracle, case: Case, *, clock: Callable[[], float] = time.monotonic) -> Judged:
    """Put one case to the oracle, bounded like any question; a scope that it leaves open counts as a fault."""
    question = case.question()
    began = clock()
    answered = ask(oracle, question)
    elapsed_ms = (clock() - began) * 1000
    answers = {answer.effect_id: answer for answer in answered.answers}
    said = []
    for one in case.proposed:
        answer = answers.get(one.id)
        released = answer is not None and answer.decision is Decision.RELEASE
        said.append(
            Said(
                effect_id=one.id,
                good=one.good,
                released=released,
                reason="it was left open" if answer is None else answer.reason,
            )
        )
    return Judged(
        case=case,
        said=tuple(said),
        elapsed_ms=elapsed_ms,
        fault=answered.fault or ("it left the question open" if answered.leave_open else ""),
        inferences=answered.inferences,
    )
