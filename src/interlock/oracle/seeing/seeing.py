"""The seeing oracle: one call of a model for a scope, which is shown what was read, as evidence.

Whatever it says is read strictly and then bounded like any oracle's answer. It can be talked into a release of what was
deferred, since it reads what an attacker wrote; it can do nothing else.
Source: KAIROS, the bounded oracle.
"""

from collections.abc import Callable, Sequence

from interlock.model.effects import Effect
from interlock.model.errors import InterlockError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.inferences import Inference
from interlock.model.records import changed
from interlock.model.verdicts import Decision
from interlock.oracle.asking import Way
from interlock.oracle.context import Context, Step
from interlock.oracle.models import Budget, ModelClient, ModelError, Request, recorded
from interlock.oracle.objections import Objection, objection
from interlock.oracle.question import Question, is_conflict, sanity
from interlock.oracle.seeing.prompting import Held, texts_of, write_prompt
from interlock.oracle.seeing.quoting import draw_key
from interlock.oracle.seeing.reading import read_answer, schema_for
from interlock.oracle.shown import shown

EVIDENCE_BYTES = 48_000
"""What evidence and steps take of a prompt at most, also where the model could read more."""
_DEADLINE_S = 120.0
_ANSWER_TOKENS = 64
_ENTRY_TOKENS, _LEAST_ENTRY_TOKENS = 120, 48
_BYTES_A_TOKEN = 3
_TOO_LONG = "a value that steers it is too long to be shown to a model"
_UNSHOWN = "what it would write or send did not fit beside the rest, so nobody saw it"
_COPIED = "its reason stands word for word in what it was shown as evidence, so nobody judged"
_SHORTEST_COPY = 8
_CONFLICT = "the host changed it too, and no model merges that: ask a person"


class Seeing:
    """Asks a model, and shows it the content that the agent read.

    Takes: `word`, the model's name in the user's file; `key_source`, which gives the key of a call's delimiters, not to
    be guessed by whoever wrote the content; `deadline_s`, how long one call may take.
    Holds: a call that fails, an answer that is not exactly what was asked for, and an effect that could not be shown
    refuse.
    """

    way = Way.AWAY

    def __init__(
        self,
        client: ModelClient,
        *,
        word: str,
        budget: Budget | None = None,
        key_source: Callable[[], str] | None = None,
        deadline_s: float | None = None,
        evidence_bytes: int = EVIDENCE_BYTES,
    ) -> None:
        self.name = f"seeing:{word}"
        self._client = client
        self._budget = Budget() if budget is None else budget
        self._key_source = _random_key if key_source is None else key_source
        self._deadline_s = _DEADLINE_S if deadline_s is None else deadline_s
        self._evidence_bytes = evidence_bytes

    def resolve(self, question: Question) -> OracleAnswered:
        """Ask about all deferred effects in one call."""
        if not question.now and question.budget is None:
            # A scope's end is asked about once: what its questions in mid-run spent is left out of the next scope.
            spent, self._budget = self._budget, self._budget.renewed()
        else:
            spent = question.budget if isinstance(question.budget, Budget) else self._budget
        open_ = [
            effect
            for effect, verdict in question.deferred
            if verdict.decision is Decision.DEFER and not is_conflict(effect)
        ]
        closed = [
            _refusal(effect.id, _CONFLICT) for effect, _verdict in question.deferred if is_conflict(effect)
        ]
        if not open_:
            return sanity(OracleAnswered(oracle=self.name, answers=tuple(closed)), question)
        if question.context is None:
            return self._fault("what happened in the run cannot be shown to a model", question)
        context = question.context()
        held = [
            Held(effect=effect, step=context.proposed[effect.id], content=_content(effect, question))
            for effect in open_
            if effect.id in context.proposed
        ]
        closed += [
            Answer(
                effect_id=effect.id, decision=Decision.REFUSE, reason="its values cannot be shown to a model"
            )
            for effect in open_
            if effect.id not in context.proposed
        ]
        closed += [_refusal(one.effect.id, _TOO_LONG) for one in held if one.is_too_long]
        held = [one for one in held if not one.is_too_long]
        if not held:
            return sanity(OracleAnswered(oracle=self.name, answers=tuple(closed)), question)
        return self._asked(context, held, closed, question, spent)

    def _asked(
        self,
        context: Context,
        held: Sequence[Held],
        closed: Sequence[Answer],
        question: Question,
        budget: Budget,
    ) -> OracleAnswered:
        ids = tuple(one.effect.id for one in held)
        tokens = self._client.context_tokens
        max_tokens = min(_ANSWER_TOKENS + _ENTRY_TOKENS * len(ids), tokens // 2)
        if max_tokens < _ANSWER_TOKENS + _LEAST_ENTRY_TOKENS * len(ids):
            return self._fault(f"{len(ids)} effects are too many for one answer of this model", question)
        room_bytes = _BYTES_A_TOKEN * (tokens - max_tokens - _ANSWER_TOKENS)
        inferences: list[Inference] = []
        unshown: frozenset[str] = frozenset()
        for room in (room_bytes, room_bytes // 2):
            prompt = write_prompt(
                context,
                held,
                key=draw_key(self._key_source, texts_of(context, held)),
                now=question.now,
                room_bytes=room,
                evidence_bytes=self._evidence_bytes,
            )
            if prompt is None:
                why = (
                    f"task, policy and held effects alone are more than this model can read ({tokens} tokens)"
                )
                return self._fault(why, question, inferences)
            unshown = prompt.unshown
            request = Request(
                messages=prompt.messages,
                schema=schema_for(ids),
                schema_name="decisions",
                max_tokens=max_tokens,
            )
            outcome, inference = recorded(
                self._client,
                request,
                budget=budget,
                deadline_s=self._deadline_s,
                oracle=self.name,
                trimmed=prompt.left_out,
            )
            inferences.append(inference)
            if not (isinstance(outcome, ModelError) and outcome.kind == "context"):
                break
        if isinstance(outcome, ModelError):
            return self._fault(f"{outcome.kind}: {outcome.message}", question, inferences)
        reading = read_answer(outcome.text, ids)
        if reading.fault:
            return self._fault(reading.fault, question, inferences)
        steps = {one.effect.id: one.step for one in held}
        said = []
        for answer in reading.answers:
            if answer.decision is Decision.RELEASE and answer.effect_id in unshown:
                said.append(_refusal(answer.effect_id, _UNSHOWN))
            elif answer.decision is Decision.RELEASE and _is_copied(answer.reason, context, held):
                said.append(_refusal(answer.effect_id, _COPIED))
            else:
                said.append(_told(answer, steps[answer.effect_id], context))
        answered = OracleAnswered(oracle=self.name, answers=(*said, *closed), inferences=tuple(inferences))
        return sanity(answered, question)

    def _fault(self, fault: str, question: Question, inferences: Sequence[Inference] = ()) -> OracleAnswered:
        answered = OracleAnswered(oracle=self.name, answers=(), fault=fault, inferences=tuple(inferences))
        return sanity(answered, question)


def _told(answer: Answer, step: Step, context: Context) -> Answer:
    """Make the reason fit to show, and say of a refusal what the agent may hear: words of ours alone."""
    # The model read what an attacker wrote: its own words are for the ledger and the person.
    answer = changed(answer, reason=shown(answer.reason))
    if answer.decision is Decision.RELEASE:
        return answer
    origins = [one.origin for one in step.arguments if one.steers and not one.origin.rule]
    if any(origin.kind not in ("", "task") for origin in origins):
        code = Objection.FROM_CONTENT
    elif any(origin.kind == "" for origin in origins):
        code = Objection.UNKNOWN_SOURCE
    else:
        code = Objection.NOT_ASKED
    return changed(answer, exception=objection(code, context.task if context.task_trusted else ""))


def _is_copied(reason: str, context: Context, held: Sequence[Held]) -> bool:
    """Say whether a reason stands in the content: a weak model says an answer back that was prepared for it there."""
    words = reason.strip()
    said_by_the_user = (context.task, context.system, *context.policy)
    return len(words) >= _SHORTEST_COPY and any(
        words in text for text in texts_of(context, held) if text not in said_by_the_user
    )


def _refusal(effect_id: str, reason: str) -> Answer:
    return Answer(effect_id=effect_id, decision=Decision.REFUSE, reason=reason)


def _content(effect: Effect, question: Question) -> str:
    """Return what an effect would write, where its values do not tell it already."""
    if effect.change is None:
        return ""
    try:
        return question.diff(effect)
    except InterlockError:
        return "(it cannot be shown as text)"


def _random_key() -> str:
    from secrets import token_hex

    return token_hex(4)
