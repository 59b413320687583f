"""The principal as oracle: who says `apply` has answered already."""

from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle.question import Question, sanity


class Principal:
    """Releases what it is asked; only for a command by which the user names what to commit."""

    name = "principal"

    def resolve(self, question: Question) -> OracleAnswered:
        """Release each deferred effect."""
        answers = tuple(
            Answer(effect_id=effect.id, decision=Decision.RELEASE, reason="the principal applied it")
            for effect, _ in question.deferred
        )
        return sanity(OracleAnswered(oracle=self.name, answers=answers), question)
