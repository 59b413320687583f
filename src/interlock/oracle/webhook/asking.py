"""What a desk is asked, and the reading of its answer: both bound to one question by its mark and digest."""

import json
from collections.abc import Sequence
from hashlib import sha256

from interlock.model.effects import Effect
from interlock.model.errors import InterlockError
from interlock.model.events import Answer
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision, Verdict
from interlock.oracle import strict_json
from interlock.oracle.engine.document import document
from interlock.oracle.exchanging import ServiceError
from interlock.oracle.question import Question

VERSION = 1
SHOWN_CHARACTERS = 32 * 1024
ALL_SHOWN_CHARACTERS = 512 * 1024
"""How much of one difference, and of all of a question's, a desk is shown."""
_REASON = 500
_WORDS = ("release", "merge", "redact", "refuse")


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A question as it was put. Takes: `payload`, its bytes; `effects`, the ids that it asks about."""

    mark: str
    payload: bytes
    effects: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Return SHA-256 of the payload in hex, to which its answer is bound."""
        return sha256(self.payload).hexdigest()


def put(
    question: Question,
    asked: Sequence[tuple[Effect, Verdict]],
    *,
    mark: str,
    issued_at: int,
    expires_at: int,
) -> Put:
    """Return the question's payload, version 1. Takes: times in seconds since 1970, UTC."""
    room = ALL_SHOWN_CHARACTERS
    effects = []
    for effect, verdict in asked:
        told = document(question, effect, verdict)
        text = _shown(question, effect, min(room, SHOWN_CHARACTERS))
        room -= len(text)
        effects.append({"effect": told["effect"], "waits": told["waits"], "shown": text})
    record = {
        "version": VERSION,
        "mark": mark,
        "issued_at": issued_at,
        "expires_at": expires_at,
        "task": _text(question.task),
        "now": question.now,
        "effects": effects,
    }
    payload = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    return Put(mark=mark, payload=payload, effects=tuple(effect.id for effect, _verdict in asked))


def _shown(question: Question, effect: Effect, characters: int) -> str:
    if characters <= 0:
        return "(not shown: the question is too long)\n"
    try:
        text = question.diff(effect)
    except InterlockError as error:
        text = f"(no difference: {error.message})\n"
    except Exception as error:  # noqa: BLE001  (a difference that breaks must not end the question)
        text = f"(no difference: {type(error).__name__})\n"
    text = _text(text)
    return text if len(text) <= characters else text[:characters] + "\n(cut off here)\n"


def read_answer(payload: bytes, asked: Put, *, now: int) -> tuple[Answer, ...]:
    """Return the answers of a payload that the desk signed.

    Takes: `now`, seconds since 1970.
    Raises: ServiceError, unless it is exactly an answer, version 1, to this question, about its effects, and still
    holds.
    """
    try:
        record = strict_json.read(payload)
    except ValueError:
        record = None
    if not isinstance(record, dict) or record.get("version") != VERSION:
        raise ServiceError("the desk's answer is of no version that is known")
    if not {"version", "mark", "question", "expires_at", "answers"} <= record.keys() <= _FIELDS:
        raise ServiceError("the desk's answer lacks a field, or has one too many")
    if record["mark"] != asked.mark or record["question"] != asked.digest:
        raise ServiceError("the desk answered another question")
    expires_at, by, answers = record["expires_at"], record.get("by", ""), record["answers"]
    if type(expires_at) is not int or not isinstance(by, str) or not isinstance(answers, list):
        raise ServiceError("a field of the desk's answer is of the wrong type")
    if expires_at <= now:
        raise ServiceError("the desk's answer has expired")
    whose = f" (by {by[:80]})" if by else ""
    mark = f" (signed answer {sha256(payload).hexdigest()[:16]})"
    return tuple(_answer(item, asked, whose + mark) for item in answers)


_FIELDS = {"version", "mark", "question", "expires_at", "answers", "by"}


def _answer(item: object, asked: Put, whose: str) -> Answer:
    match item:
        case {"effect": str(effect_id), "decision": str(word), **rest} if rest.keys() <= {"reason"}:
            reason = rest.get("reason", "")
            if effect_id not in asked.effects:
                raise ServiceError("the desk answered about an effect that it was not asked about")
            if word not in _WORDS or not isinstance(reason, str):
                raise ServiceError(f"the desk's answer is none of {', '.join(_WORDS)}")
            return Answer(
                effect_id=effect_id,
                decision=Decision.REFUSE if word == "refuse" else Decision.RELEASE,
                reason=(reason[:_REASON] or ("refused" if word == "refuse" else "released")) + whose,
                merge=word == "merge",
                redact=word == "redact",
            )
    raise ServiceError("the desk's answer holds what is no answer")


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
