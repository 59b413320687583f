"""The oracle of another terminal: its questions wait for `interlock review`, and nobody is asked here."""

from interlock.model.events import OracleAnswered
from interlock.oracle.asking import Way
from interlock.oracle.question import Question, sanity


class Elsewhere:
    """Answers nothing itself: a question in mid-run stays open for another terminal, and a scope at its end is held.

    Takes: `deadline_s`, how long a question in mid-run may stay open, None for as long as the command lives.
    """

    name = "review"
    way = Way.ELSEWHERE

    def __init__(self, *, deadline_s: float | None = None) -> None:
        self.deadline_s = deadline_s

    def resolve(self, question: Question) -> OracleAnswered:
        """Leave the scope open; what cannot be left open is refused."""
        if question.now:
            fault = "nobody could be asked in another terminal"
            return sanity(OracleAnswered(oracle=self.name, answers=(), fault=fault), question)
        return OracleAnswered(oracle=self.name, answers=(), leave_open=True)
