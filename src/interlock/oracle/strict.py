"""The strict oracle: nobody is there to vouch, so what was deferred is refused."""

from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle.question import Question, sanity


class Strict:
    """Refuses whatever it is asked; the default where no terminal is."""

    name = "strict"

    def resolve(self, question: Question) -> OracleAnswered:
        """Refuse each deferred effect."""
        answers = tuple(
            Answer(
                effect_id=effect.id,
                decision=Decision.REFUSE,
                reason="nobody was asked",
            )
            for effect, _verdict in question.deferred
        )
        return sanity(OracleAnswered(oracle=self.name, answers=answers), question)
