"""Oracles for a panel, each with its one mind, which remember what they were asked."""

from collections.abc import Callable, Mapping

from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle import Question

Saying = Callable[[Effect], tuple[Answer, ...]]


class Member:
    """Says of each effect what it is told to.

    Takes: `words`, effect id -> `release`, `refuse`, `defer`, `silent`, `twice`, `redact`, or `release 1,2` for hunks; `else_`,
    of every other effect; `fails`, how it fails as a whole: `fault`, `raises`, `breaks`, `leaves`, `unasked`.
    """

    def __init__(
        self, name: str, words: Mapping[str, str] | None = None, *, else_: str = "refuse", fails: str = ""
    ) -> None:
        self.name = name
        self.asked: list[tuple[str, ...]] = []
        self._words = dict(words or {})
        self._else = else_
        self._fails = fails

    def resolve(self, question: Question) -> OracleAnswered:
        self.asked.append(tuple(effect.id for effect, _verdict in question.deferred))
        if self._fails == "raises":
            raise InputError("it cannot be asked")
        if self._fails == "breaks":
            raise ValueError("secret content")
        if self._fails == "leaves":
            return OracleAnswered(oracle=self.name, answers=(), leave_open=True)
        answers = tuple(
            answer for effect, _verdict in question.deferred for answer in self._answers(effect.id)
        )
        if self._fails == "unasked":
            answers = (*answers, Answer(effect_id="e999", decision=Decision.RELEASE, reason="not asked"))
        return OracleAnswered(
            oracle=self.name, answers=answers, fault="it failed" if self._fails == "fault" else ""
        )

    def _answers(self, effect_id: str) -> tuple[Answer, ...]:
        word, _, hunks = self._words.get(effect_id, self._else).partition(" ")
        reason = f"{word} says {self.name}"
        match word:
            case "silent":
                return ()
            case "defer":
                return (Answer(effect_id=effect_id, decision=Decision.DEFER, reason=reason),)
            case "twice":
                one = Answer(effect_id=effect_id, decision=Decision.RELEASE, reason=reason)
                return (one, one)
            case "redact":
                return (Answer(effect_id=effect_id, decision=Decision.RELEASE, reason=reason, redact=True),)
            case "release":
                parts = tuple(int(number) for number in hunks.split(",") if number)
                return (Answer(effect_id=effect_id, decision=Decision.RELEASE, reason=reason, hunks=parts),)
        return (Answer(effect_id=effect_id, decision=Decision.REFUSE, reason=reason),)
