"""One terminal for all sessions: a person is asked one question at a time."""

from __future__ import annotations

from threading import Lock

from interlock.model.events import OracleAnswered
from interlock.oracle import Oracle, Question
from interlock.oracle.asking import Way, is_withdrawn, resolve_unless, way_of

_LOOKS_S = 0.1


def one_at_a_time(oracle: Oracle) -> Oracle:
    """Return an oracle that sessions may share; one that needs no terminal stays as it is."""
    return _InTurn(oracle) if way_of(oracle) is Way.TERMINAL else oracle


class _InTurn:
    """Puts the questions of several sessions to one person. Holds: one that is taken back does not wait its turn."""

    way = Way.TERMINAL

    def __init__(self, oracle: Oracle) -> None:
        self.name = oracle.name
        self._oracle = oracle
        self._turn = Lock()

    def resolve(self, question: Question) -> OracleAnswered:
        with self._turn:
            return self._oracle.resolve(question)

    def resolve_unless(self, question: Question, withdrawn: int | None) -> OracleAnswered:
        while not self._turn.acquire(timeout=_LOOKS_S):
            if is_withdrawn(withdrawn):
                return OracleAnswered(oracle=self.name, answers=(), leave_open=True)
        try:
            return resolve_unless(self._oracle, question, withdrawn)
        finally:
            self._turn.release()
