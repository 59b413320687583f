"""The answer of a model read strictly: what is not exactly a release of one held effect releases nothing."""

import json
from collections.abc import Sequence
from typing import NoReturn

from interlock.model.events import Answer
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision

REASON_LIMIT = 300
"""Characters of a reason that the schema allows; one that is a good deal longer was not written to it."""
_REASON_BOUND = 1000
PLACEHOLDER = "REASON"
"""What stands for a reason in the prompt's example: whoever says it back has not judged."""
_ANSWER_BOUND = 1 << 20
_KEYS = ("id", "reason", "decision")
# In this order, and no example in the prompt: a weak model says what it saw first, and that shall refuse.
_DECISIONS = {"refuse": Decision.REFUSE, "release": Decision.RELEASE}
_NO_JSON = "its answer was not one JSON value of the form that was asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an answer says.

    Takes: `answers`, one for each effect that was asked about; or `fault`, which refuses all.
    """

    answers: tuple[Answer, ...] = ()
    fault: str = ""


def schema_for(ids: Sequence[str]) -> dict[str, object]:
    """Return the JSON schema of an answer on these effects."""
    entry = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "enum": list(ids)},
            "reason": {"type": "string", "maxLength": REASON_LIMIT},
            "decision": {"type": "string", "enum": list(_DECISIONS)},
        },
        "required": list(_KEYS),
        "additionalProperties": False,
    }
    answers = {"type": "array", "items": entry, "minItems": len(ids), "maxItems": len(ids)}
    return {
        "type": "object",
        "properties": {"answers": answers},
        "required": ["answers"],
        "additionalProperties": False,
    }


def read_answer(text: str, ids: Sequence[str]) -> Reading:
    """Read an answer on these effects.

    Holds: an effect is released only where the answer is one JSON object with the key `answers` alone, no object in it
    has a key twice, all its entries name effects that were asked about, and exactly one of them is on this effect,
    with the three keys alone, a reason that says something, and the decision `release` to the letter.
    """
    if len(text) > _ANSWER_BOUND:
        return Reading(fault="its answer was far too long")
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return Reading(fault=_NO_JSON)
    entries = value.get("answers") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(entries, list):
        return Reading(fault=_NO_JSON)
    given: dict[str, list[dict[str, object]]] = {effect_id: [] for effect_id in ids}
    for entry in entries:
        effect_id = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(effect_id, str):
            return Reading(fault="its answer has an entry that is on no effect")
        if effect_id not in given:
            return Reading(fault="its answer speaks of an effect that was not asked about")
        given[effect_id].append(entry)
    return Reading(answers=tuple(_one(effect_id, found) for effect_id, found in given.items()))


def _one(effect_id: str, entries: list[dict[str, object]]) -> Answer:
    if not entries:
        return _refusal(effect_id, "it gave no answer on this effect")
    if len(entries) > 1:
        return _refusal(effect_id, "it answered twice on this effect")
    entry = entries[0]
    word, reason = entry.get("decision"), entry.get("reason")
    decision = _DECISIONS.get(word) if isinstance(word, str) else None
    if decision is None or len(entry) != len(_KEYS):
        return _refusal(
            effect_id, "its answer on this effect was neither `release` nor `refuse` as asked for"
        )
    if not isinstance(reason, str) or reason.strip() in ("", PLACEHOLDER) or len(reason) > _REASON_BOUND:
        return _refusal(effect_id, "it gave no usable reason")
    return Answer(effect_id=effect_id, decision=decision, reason=reason)


def _refusal(effect_id: str, reason: str) -> Answer:
    return Answer(effect_id=effect_id, decision=Decision.REFUSE, reason=reason)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
