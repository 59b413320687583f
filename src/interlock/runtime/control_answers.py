"""What an oracle in another terminal said, as the control protocol writes and reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.errors import InputError, IntegrityError
from interlock.model.events import Answer, OracleAnswered
from interlock.model.verdicts import Decision, SemanticException
from interlock.runtime.control_fields import Fields, count_of

if TYPE_CHECKING:
    from interlock.runtime.control_protocol import AnswerNow, ResolveNow

REASON_CHARACTERS = 1000


def told(request: ResolveNow | AnswerNow) -> dict[str, object]:
    """Return what an oracle said as fields of a request; what is empty is left out."""
    from interlock.monitor.codec import plain

    fields: dict[str, object] = {
        "oracle": request.oracle,
        "answers": [_answer(one) for one in request.answers],
    }
    if request.fault:
        fields["fault"] = request.fault
    for name, items in (("votes", request.votes), ("inferences", request.inferences)):
        if items:
            fields[name] = plain(items)
    return fields


def said(fields: Fields) -> OracleAnswered:
    """Read what an oracle said. Raises: InputError."""
    oracle = fields.text("oracle")
    answers = _answers(fields.items("answers"))
    fault = fields.text("fault", "")[:REASON_CHARACTERS]
    votes, inferences = fields.items("votes"), fields.items("inferences")
    told = _of_ledger({"votes": votes, "inferences": inferences}, "votes and calls of models")
    return OracleAnswered(
        oracle=oracle, answers=answers, fault=fault, votes=told.votes, inferences=told.inferences
    )


def _of_ledger(fields: dict[str, object], what: str) -> OracleAnswered:
    """Read records that are written as the ledger writes them."""
    from interlock.monitor.codec import event_from_payload

    try:
        event = event_from_payload({"event": "oracle-answered", "oracle": "", "answers": [], **fields})
    except IntegrityError as error:
        raise InputError(f"the request: {what}: {error.message}") from None
    assert isinstance(event, OracleAnswered)
    return event


def _answers(items: list[object]) -> tuple[Answer, ...]:
    answers: dict[str, Answer] = {}
    for item in items:
        fields = Fields(item, "an answer")
        effect_id = fields.text("effect")
        decision = fields.text("decision")
        if decision not in (Decision.RELEASE.value, Decision.REFUSE.value):
            raise InputError("an answer: `decision` is neither release nor refuse")
        answer = Answer(
            effect_id=effect_id,
            decision=Decision(decision),
            reason=fields.text("reason", "")[:REASON_CHARACTERS],
            hunks=tuple(count_of(one, "an answer: a hunk's number") for one in fields.items("hunks")),
            merge=fields.flag("merge"),
            redact=fields.flag("redact"),
            exception=_exception(fields.optional("exception")),
        )
        fields.end()
        if 0 in answer.hunks:
            raise InputError("an answer: hunks are counted from 1")
        if effect_id in answers:
            raise InputError("the request answers an effect more than once")
        answers[effect_id] = answer
    return tuple(answers.values())


def _exception(value: object) -> SemanticException | None:
    if value is None:
        return None
    answer = {"effect_id": "", "decision": Decision.REFUSE.value, "reason": "", "exception": value}
    return _of_ledger({"answers": [answer]}, "an exception").answers[0].exception


def _answer(answer: Answer) -> dict[str, object]:
    fields: dict[str, object] = {"effect": answer.effect_id, "decision": answer.decision.value}
    if answer.reason:
        fields["reason"] = answer.reason
    if answer.hunks:
        fields["hunks"] = list(answer.hunks)
    if answer.merge:
        fields["merge"] = True
    if answer.redact:
        fields["redact"] = True
    if answer.exception is not None:
        from interlock.monitor.codec import plain

        fields["exception"] = plain(answer.exception)
    return fields
