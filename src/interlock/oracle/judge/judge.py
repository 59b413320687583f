"""The judge as an oracle: each flow of a disclosure is put to a model with the provisions that fit it best.

Source: KNOX §4.2: compliant lets it go, non-compliant refuses, not-applicable waits for a person; that what is not
decided goes on to the next in a chain, and that the judge overrules no other guard, ours.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from interlock.model.disclosures import Flow
from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.inferences import Inference, Judgement
from interlock.model.verdicts import Check, CheckOutcome, Decision, Guard, Verdict
from interlock.oracle.asking import Way
from interlock.oracle.judge.answering import Judged, read_answer
from interlock.oracle.judge.template import (
    COMPLIANT,
    NON_COMPLIANT,
    schema_for,
    template_digest,
    write_prompt,
)
from interlock.oracle.models import Budget, ModelClient, ModelError, Request, recorded
from interlock.oracle.question import Question, sanity
from interlock.oracle.shown import shown as visibly
from interlock.regulations import RegulationText, find, open_regulation

RULE = "regulation:judge"
"""The rule of a check that waits for a judgement; behind it stand the ids of the regulations."""
PROVISIONS = 8
_ANSWER_TOKENS = 640
_DEADLINE_S = 120.0
_HALF = re.compile("[\ud800-\udfff]")


class Judge:
    """Asks a model whether regulations permit what an effect would disclose.

    Takes: `word`, the model's name in the user's file; `deadline_s`, how long one call may take.
    Holds: an effect is released only where the regulation guard alone holds it, and the model finds every one of its
    flows compliant by a provision that it was shown; what is not decided is left undecided, never released.
    """

    way = Way.AWAY

    def __init__(
        self, client: ModelClient, *, word: str, budget: Budget | None = None, deadline_s: float | None = None
    ) -> None:
        self.name = f"judge:{word}"
        self._client = client
        self._budget = Budget() if budget is None else budget
        self._deadline_s = _DEADLINE_S if deadline_s is None else deadline_s

    def resolve(self, question: Question) -> OracleAnswered:
        """Judge each deferred disclosure."""
        budget = self._budget_for(question)
        asked: dict[tuple[Flow, tuple[str, ...]], list[str]] = {}
        for effect, verdict in question.deferred:
            check = check_of(verdict)
            for flow in check.flows if check is not None else ():
                assert check is not None
                asked.setdefault((flow, check.rules[1:]), []).append(effect.id)
        said: dict[tuple[Flow, tuple[str, ...]], Judged] = {}
        inferences: list[Inference] = []
        for (flow, names), effects in asked.items():
            said[(flow, names)], inference = self.judge(flow, names, effects=effects, budget=budget)
            if inference is not None:
                inferences.append(inference)
        answers = [_answer(effect, verdict, said) for effect, verdict in question.deferred]
        answered = OracleAnswered(oracle=self.name, answers=tuple(answers), inferences=tuple(inferences))
        return answered if _undecided(answers) else sanity(answered, question)

    def judge(
        self,
        flow: Flow,
        names: Sequence[str],
        *,
        effects: Sequence[str] = (),
        budget: Budget | None = None,
        case: str = "",
    ) -> tuple[Judged, Inference | None]:
        """Judge one flow under regulations by their ids. Takes: `case`, a text of the case, of a bench alone.

        Returns: what was said, and the record of the call, None where none was made.
        """
        try:
            texts = [open_regulation(name) for name in names]
        except InputError as error:
            return Judged(nonsense=error.message), None
        found = find(
            texts,
            f"{case} {flow.sender} {flow.recipient} {flow.subject} {flow.information} {flow.principle}",
            PROVISIONS,
        )
        room = self._client.context_tokens - _ANSWER_TOKENS - 64
        prompt = write_prompt(flow, found, room_tokens=room, case=case) if found else None
        if prompt is None:
            why = (
                "no provision of it speaks of such a flow"
                if not found
                else "no provision fits into the prompt"
            )
            return Judged(nonsense=why), None
        request = Request(
            messages=prompt.messages,
            schema=schema_for(prompt.shown),
            schema_name="judgement",
            max_tokens=_ANSWER_TOKENS,
        )
        outcome, inference = recorded(
            self._client,
            request,
            budget=self._budget if budget is None else budget,
            deadline_s=self._deadline_s,
            oracle=self.name,
            trimmed=prompt.trimmed,
        )
        if isinstance(outcome, ModelError):
            judged = Judged(nonsense=f"{outcome.kind}: {outcome.message}")
        else:
            judged = read_answer(outcome.text, prompt.shown)
        return judged, replace(inference, judged=_record(flow, texts, prompt.shown, judged, effects))

    def _budget_for(self, question: Question) -> Budget:
        if isinstance(question.budget, Budget):
            return question.budget
        spent = self._budget
        if not question.now:
            # A scope's end is asked about once: the next scope has the whole budget again.
            self._budget = spent.renewed()
        return spent


def check_of(verdict: Verdict) -> Check | None:
    """Return the check by which a verdict waits for a judgement, None where it does not."""
    found = [one for one in verdict.checks if one.guard is Guard.REGULATION and one.rules[:1] == (RULE,)]
    check = found[-1] if found else None
    return check if check is not None and check.flows and verdict.decision is Decision.DEFER else None


def _answer(effect: Effect, verdict: Verdict, said: dict[tuple[Flow, tuple[str, ...]], Judged]) -> Answer:
    check = check_of(verdict)
    if check is None:
        return _left(effect, "no regulation holds it: that is not for a judge to say")
    judged = [said[(flow, check.rules[1:])] for flow in check.flows]
    breach = next((one for one in judged if one.label == NON_COMPLIANT), None)
    if breach is not None:
        reason = f"found non-compliant with {breach.provision}"
        return Answer(effect_id=effect.id, decision=Decision.REFUSE, reason=reason)
    open_ = next((one for one in judged if one.label != COMPLIANT or one.nonsense), None)
    if open_ is not None:
        return _left(effect, open_.nonsense or "found not-applicable: a person has to look at it")
    provisions = ", ".join(dict.fromkeys(one.provision for one in judged))
    if any(one.outcome is CheckOutcome.UNDECIDED and one is not check for one in verdict.checks):
        return _left(effect, f"found compliant by {provisions}, but another guard holds it too")
    return Answer(effect_id=effect.id, decision=Decision.RELEASE, reason=f"found compliant by {provisions}")


def _left(effect: Effect, reason: str) -> Answer:
    return Answer(effect_id=effect.id, decision=Decision.DEFER, reason=reason)


def _undecided(answers: Sequence[Answer]) -> bool:
    """Say whether something is left to whoever is next: `sanity` would make a refusal of that, here too early."""
    return any(one.decision is Decision.DEFER for one in answers)


def _record(
    flow: Flow,
    texts: Sequence[RegulationText],
    shown: tuple[str, ...],
    judged: Judged,
    effects: Sequence[str],
) -> Judgement:
    return Judgement(
        effects=tuple(effects),
        flow=flow,
        texts=tuple((one.id, one.digest) for one in texts),
        shown=shown,
        template=template_digest(),
        label=judged.label,
        provision=judged.provision,
        # A model may write half characters, which no ledger holds.
        thought=visibly(_HALF.sub("\ufffd", judged.thought)),
        nonsense=judged.nonsense,
    )
