"""How an oracle comes to its answer: at once, after a while, or by a person; and how a question is taken back."""

import select
from enum import IntEnum
from typing import Protocol, runtime_checkable

from interlock.model.events import OracleAnswered
from interlock.oracle.question import Oracle, Question


class Way(IntEnum):
    """What an answer costs whoever asks while the command runs."""

    AT_ONCE = 0
    AWAY = 1
    """It takes a while, and nobody at this terminal: the monitor goes on meanwhile."""
    TERMINAL = 2
    """It needs the person at the run's own terminal, so the command stands still."""
    ELSEWHERE = 3
    """It comes from another terminal, or never."""


@runtime_checkable
class Withdrawable(Protocol):
    """An oracle whose question can be taken back before it is answered."""

    def resolve_unless(self, question: Question, withdrawn: int | None) -> OracleAnswered:
        """Answer; or give up, with the scope left open, once the descriptor `withdrawn` can be read."""


def way_of(oracle: Oracle) -> Way:
    """Return how the oracle answers; one that does not say (`way`) answers at once."""
    way = getattr(oracle, "way", Way.AT_ONCE)
    return way if isinstance(way, Way) else Way.AT_ONCE


def together_of(oracle: Oracle) -> int:
    """Return how many questions may be before the oracle at a time; one, where it does not say (`together`)."""
    together = getattr(oracle, "together", 1)
    return together if isinstance(together, int) else 1


def resolve_unless(oracle: Oracle, question: Question, withdrawn: int | None) -> OracleAnswered:
    """Answer, and give up where the oracle can once `withdrawn` can be read."""
    if withdrawn is not None and isinstance(oracle, Withdrawable):
        return oracle.resolve_unless(question, withdrawn)
    return oracle.resolve(question)


def is_withdrawn(withdrawn: int | None, *, within_s: float = 0.0) -> bool:
    """Say whether the question was taken back, after waiting for that so long at most."""
    if withdrawn is None:
        return False
    return bool(select.select([withdrawn], [], [], max(within_s, 0.0))[0])
