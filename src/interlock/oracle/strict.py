"""The strict oracle: nobody is there to vouch, so what was deferred is refused, or leaves as the policy said ahead."""

from interlock.model.effects import Effect
from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle.question import Question, carries_too_much, sanity


class Strict:
    """Refuses whatever it is asked, but for what the policy has leave redacted; the default where no terminal is."""

    name = "strict"

    def resolve(self, question: Question) -> OracleAnswered:
        """Refuse each deferred effect; a request that carries too much leaves redacted where the policy says so."""
        answers = tuple(_answer(effect, question) for effect, _verdict in question.deferred)
        return sanity(OracleAnswered(oracle=self.name, answers=answers), question)


def _answer(effect: Effect, question: Question) -> Answer:
    if carries_too_much(effect) and question.redacts(effect):
        reason = "nobody was asked; the policy has it leave so"
        return Answer(effect_id=effect.id, decision=Decision.RELEASE, reason=reason, redact=True)
    return Answer(effect_id=effect.id, decision=Decision.REFUSE, reason="nobody was asked")
