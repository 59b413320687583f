"""The visor as an oracle: what was deferred is audited by a model that sees nothing of what was read.

One call audits a scope: the three checks of every effect together. Three calls an effect would cost three times the
prompt and three round trips for what a schema orders as well: the first check that fails ends an audit in either form.
Source: AgentVisor §4.2 (context isolation); that one call does all three, ours.
"""

import re
from collections.abc import Sequence

from interlock.model.effects import Effect
from interlock.model.events import Answer, OracleAnswered
from interlock.model.inferences import Inference
from interlock.model.verdicts import Decision
from interlock.oracle.asking import Way
from interlock.oracle.context import Context
from interlock.oracle.models import Budget, ModelClient, ModelError, Request, recorded
from interlock.oracle.question import Question, is_conflict, sanity
from interlock.oracle.visor.judging import answer_of, read_audits
from interlock.oracle.visor.prompting import schema_for, write_prompt
from interlock.oracle.visor.sanitising import Sanitised, sanitise

_DEADLINE_S = 120.0
_ANSWER_TOKENS, _AUDIT_TOKENS = 64, 320
MAX_AUDITS = 12
"""More effects than this are audited in several calls."""
_ID = re.compile(r"e[0-9]{1,9}")
_CONFLICT = "the host changed it too, and no model merges that: ask a person"


class Visor:
    """Asks a model that is blind to what was read.

    Takes: `word`, the model's name in the user's file; `deadline_s`, how long one call may take.
    Holds: an effect is released only where the model says that suitability, taint and integrity pass; a call that
    fails, an answer that is not what was asked for and an effect that cannot be told refuse.
    """

    way = Way.AWAY

    def __init__(
        self, client: ModelClient, *, word: str, budget: Budget | None = None, deadline_s: float | None = None
    ) -> None:
        self.name = f"visor:{word}"
        self._client = client
        self._budget = Budget() if budget is None else budget
        self._deadline_s = _DEADLINE_S if deadline_s is None else deadline_s

    def resolve(self, question: Question) -> OracleAnswered:
        """Audit each deferred effect."""
        budget = self._budget_for(question)
        open_: dict[str, Effect] = {}
        answers: list[Answer] = []
        for effect, verdict in question.deferred:
            if verdict.decision is not Decision.DEFER:
                continue
            if is_conflict(effect):
                answers.append(_refusal(effect.id, _CONFLICT))
            else:
                open_[effect.id] = effect
        if not open_:
            return sanity(OracleAnswered(oracle=self.name, answers=tuple(answers)), question)
        if question.context is None:
            fault = "what happened in the run cannot be told to a model"
            return sanity(OracleAnswered(oracle=self.name, answers=(), fault=fault), question)
        context = question.context()
        sanitised = sanitise(context, open_)
        ids = [
            effect_id for effect_id in open_ if effect_id in sanitised.proposed and _ID.fullmatch(effect_id)
        ]
        answers += [
            _refusal(effect_id, "its values cannot be told to a model")
            for effect_id in open_
            if effect_id not in ids
        ]
        inferences: list[Inference] = []
        for at in range(0, len(ids), MAX_AUDITS):
            group = ids[at : at + MAX_AUDITS]
            answers += self._audited(context, sanitised, group, budget, inferences)
        # With no word of the model at all, the whole answer is a fault: whoever is next in a panel is asked.
        silent = inferences and all(one.fault for one in inferences)
        answered = OracleAnswered(
            oracle=self.name,
            answers=tuple(answers),
            inferences=tuple(inferences),
            fault=answers[-1].reason if silent else "",
        )
        return sanity(answered, question)

    def _budget_for(self, question: Question) -> Budget:
        if isinstance(question.budget, Budget):
            return question.budget
        spent = self._budget
        if not question.now:
            # A scope's end is asked about once: the next scope has the whole budget again.
            self._budget = spent.renewed()
        return spent

    def _audited(
        self,
        context: Context,
        sanitised: Sanitised,
        ids: Sequence[str],
        budget: Budget,
        inferences: list[Inference],
    ) -> list[Answer]:
        """Audit a group in one call. Holds: whatever fails refuses the whole group, and says why."""
        tokens = self._client.context_tokens
        max_tokens = min(_ANSWER_TOKENS + _AUDIT_TOKENS * len(ids), tokens // 2)
        prompt = write_prompt(context, sanitised, ids, room_tokens=tokens - max_tokens - _ANSWER_TOKENS)
        if prompt is None:
            return _refusals(
                ids, f"instruction, task and proposals are more than this model can read ({tokens} tokens)"
            )
        request = Request(
            messages=prompt.messages, schema=schema_for(ids), schema_name="audits", max_tokens=max_tokens
        )
        outcome, inference = recorded(
            self._client,
            request,
            budget=budget,
            deadline_s=self._deadline_s,
            oracle=self.name,
            trimmed=prompt.trimmed,
        )
        inferences.append(inference)
        if isinstance(outcome, ModelError):
            return _refusals(ids, f"{outcome.kind}: {outcome.message}")
        audits = read_audits(outcome.text, ids)
        if isinstance(audits, str):
            return _refusals(ids, audits)
        task = context.task if context.task_trusted else ""
        return [answer_of(effect_id, audit, task) for effect_id, audit in audits.items()]


def _refusals(ids: Sequence[str], reason: str) -> list[Answer]:
    return [_refusal(effect_id, reason) for effect_id in ids]


def _refusal(effect_id: str, reason: str) -> Answer:
    return Answer(effect_id=effect_id, decision=Decision.REFUSE, reason=reason)
