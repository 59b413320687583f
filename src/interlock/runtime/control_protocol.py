"""The words between `interlock apply`, `discard` or `stop` and the living monitor of a run: one JSON object a line.

A request is `{"v": 1, "verb": …}` with the fields of its record; the monitor answers with any number of
`{"note": TEXT}` and then one `{"ok": true, …}` or `{"error": {code, message, hint, exit_status}}`. Both ends read
strictly: an unknown field, a missing one or a value of another type is an error and never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import assert_never

from interlock.model.errors import BoundaryError, InputError, IntegrityError, InterlockError, StuckError
from interlock.model.events import Answer, GrantAction, OnConflict
from interlock.model.records import dataclass
from interlock.model.verdicts import Decision

VERSION = 1
REQUEST_BYTES = 64 * 1024
ANSWERS_BYTES = 1024 * 1024
"""The longest line of a request that answers a review; of any other, `REQUEST_BYTES`."""
REPLY_BYTES = 16 * 1024 * 1024
NOTE_CHARACTERS = 1000
ORACLES = ("principal", "strict")
"""Who can resolve without a terminal: the principal, whose word this request is, or nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyNow:
    """Resolve what is staged while the command lives. Takes: as `events.ResolutionAsked`."""

    selection: tuple[str, ...] = ()
    oracle: str = ORACLES[0]
    on_conflict: OnConflict = OnConflict.ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardNow:
    """Drop all that is staged while the command lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopNow:
    """End the command, and leave what it did held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeNow:
    """Say what would be deferred if it were resolved now; nothing is resolved yet."""

    selection: tuple[str, ...] = ()
    on_conflict: OnConflict = OnConflict.ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveNow:
    """Resolve what was proposed, by a person's answers.

    Takes: `proposal`, the mark that the monitor gave the proposal; `oracle`, who answered; `fault`, why it could not
    (then nothing of what was deferred is released); `selection` and `on_conflict` as they were proposed.
    """

    proposal: str
    oracle: str
    answers: tuple[Answer, ...]
    fault: str = ""
    selection: tuple[str, ...] = ()
    on_conflict: OnConflict = OnConflict.ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsNow:
    """Say what of the living command waits for an answer, and what is parked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerNow:
    """Answer one question of the living command. Takes: `question`, its mark; the rest as in `ResolveNow`."""

    question: str
    oracle: str
    answers: tuple[Answer, ...]
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantNow:
    """Change a grant. Takes: as `events.GrantChanged`."""

    grant: str
    action: GrantAction
    below: str = ""


ControlRequest = (
    ApplyNow | DiscardNow | StopNow | ProposeNow | ResolveNow | QuestionsNow | AnswerNow | GrantNow
)


class Fields:
    """A JSON object that is read field by field, each once; `end` refuses what is left.

    Takes: `where`, what the object is, for messages.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise InputError(f"{where}: a JSON object is needed")
        self._left: dict[str, object] = dict(value)
        self._where = where

    def take(self, name: str) -> object:
        """Return a field of any type. Raises: InputError, if it is missing."""
        if name not in self._left:
            raise InputError(f"{self._where}: the field `{name}` is missing")
        return self._left.pop(name)

    def optional(self, name: str) -> object:
        """Return a field of any type, None where it is left out."""
        return self._left.pop(name, None)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; one that cannot be written as UTF-8 is none."""
        if default is not None and name not in self._left:
            return default
        return _text(self.take(name), f"{self._where}: `{name}`")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty where it is left out."""
        return tuple(_text(item, f"{self._where}: `{name}`") for item in self.items(name))

    def items(self, name: str) -> list[object]:
        """Return a list, empty where it is left out."""
        value = self._left.pop(name, [])
        if not isinstance(value, list):
            raise InputError(f"{self._where}: `{name}` must be a list")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean, False where it is left out."""
        value = self._left.pop(name, False)
        if not isinstance(value, bool):
            raise InputError(f"{self._where}: `{name}` must be true or false")
        return value

    def count(self, name: str, default: int | None = None) -> int:
        """Return a whole number that is not negative."""
        value = self._left.pop(name, default) if default is not None else self.take(name)
        return _count(value, f"{self._where}: `{name}`")

    def first_of(self, *names: str) -> str:
        """Return which of these fields there is, the last where there is none."""
        return next((name for name in names if name in self._left), names[-1])

    def rest(self) -> Mapping[str, object]:
        """Return all that was not read."""
        rest, self._left = self._left, {}
        return rest

    def end(self) -> None:
        """Refuse what was not read."""
        if self._left:
            raise InputError(f"{self._where}: there is no field `{min(self._left)}`")


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where} must be text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} is no text that can be recorded") from None
    return value


def _count(value: object, where: str) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise InputError(f"{where} must be a whole number")
    return value


def read_request(line: bytes) -> ControlRequest:
    """Read a request, strictly.

    Raises: InputError for anything that `write_request` would not write.
    """
    fields = Fields(_json(line, "the request"), "the request")
    if (version := fields.take("v")) != VERSION or isinstance(version, bool):
        raise InputError(
            f"the run's monitor speaks version {VERSION} of the control protocol, and the request another",
            hint="use the Interlock that started the run",
        )
    verb = fields.text("verb")
    request: ControlRequest
    match verb:
        case "apply":
            request = ApplyNow(
                selection=fields.texts("selection"), oracle=_oracle(fields), on_conflict=_on_conflict(fields)
            )
        case "discard":
            request = DiscardNow()
        case "stop":
            request = StopNow()
        case "propose":
            request = ProposeNow(selection=fields.texts("selection"), on_conflict=_on_conflict(fields))
        case "resolve":
            request = ResolveNow(
                proposal=fields.text("proposal"),
                oracle=fields.text("oracle"),
                answers=_answers(fields.items("answers")),
                fault=fields.text("fault", "")[:NOTE_CHARACTERS],
                selection=fields.texts("selection"),
                on_conflict=_on_conflict(fields),
            )
        case "questions":
            request = QuestionsNow()
        case "answer":
            request = AnswerNow(
                question=fields.text("question"),
                oracle=fields.text("oracle"),
                answers=_answers(fields.items("answers")),
                fault=fields.text("fault", "")[:NOTE_CHARACTERS],
            )
        case "grant":
            request = GrantNow(
                grant=fields.text("grant"), action=_grant_action(fields), below=fields.text("below", "")
            )
        case _:
            raise InputError("the request has a verb that the run's monitor does not know")
    fields.end()
    if len(line) > REQUEST_BYTES and not isinstance(request, ResolveNow | AnswerNow):
        raise InputError(TOO_LONG, hint=SHORTER)
    return request


TOO_LONG = "the request to the run's monitor is too long"
SHORTER = "name folders in place of their files"


def write_request(request: ControlRequest) -> dict[str, object]:
    """Return a request as JSON values; a field that has its default is left out."""
    match request:
        case ApplyNow():
            fields: dict[str, object] = {"verb": "apply", "oracle": request.oracle, **_scope(request)}
        case DiscardNow():
            fields = {"verb": "discard"}
        case StopNow():
            fields = {"verb": "stop"}
        case ProposeNow():
            fields = {"verb": "propose", **_scope(request)}
        case ResolveNow():
            fields = {
                "verb": "resolve",
                "proposal": request.proposal,
                "oracle": request.oracle,
                "answers": [_answer(one) for one in request.answers],
                **({"fault": request.fault} if request.fault else {}),
                **_scope(request),
            }
        case QuestionsNow():
            fields = {"verb": "questions"}
        case AnswerNow():
            fields = {
                "verb": "answer",
                "question": request.question,
                "oracle": request.oracle,
                "answers": [_answer(one) for one in request.answers],
                **({"fault": request.fault} if request.fault else {}),
            }
        case GrantNow():
            fields = {"verb": "grant", "grant": request.grant, "action": request.action.value}
            fields |= {"below": request.below} if request.below else {}
        case _:
            assert_never(request)
    return {"v": VERSION, **fields}


def _scope(request: ApplyNow | ProposeNow | ResolveNow) -> dict[str, object]:
    selected: dict[str, object] = {"selection": list(request.selection)} if request.selection else {}
    return {**selected, "on_conflict": request.on_conflict.value}


def _oracle(fields: Fields) -> str:
    name = fields.text("oracle", ORACLES[0])
    if name not in ORACLES:
        raise InputError(
            "the request names an oracle that a living run cannot use", hint="review it: --review"
        )
    return name


def _grant_action(fields: Fields) -> GrantAction:
    try:
        return GrantAction(fields.text("action"))
    except ValueError:
        raise InputError(
            "the request: `action` is none of " + ", ".join(one.value for one in GrantAction)
        ) from None


def _on_conflict(fields: Fields) -> OnConflict:
    try:
        return OnConflict(fields.text("on_conflict", OnConflict.ASK.value))
    except ValueError:
        raise InputError(
            "the request: `on_conflict` is none of " + ", ".join(one.value for one in OnConflict)
        ) from None


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
            reason=fields.text("reason", "")[:NOTE_CHARACTERS],
            hunks=tuple(_count(one, "an answer: a hunk's number") for one in fields.items("hunks")),
            merge=fields.flag("merge"),
        )
        fields.end()
        if 0 in answer.hunks:
            raise InputError("an answer: hunks are counted from 1")
        if effect_id in answers:
            raise InputError("the request answers an effect more than once")
        answers[effect_id] = answer
    return tuple(answers.values())


def _answer(answer: Answer) -> dict[str, object]:
    fields: dict[str, object] = {"effect": answer.effect_id, "decision": answer.decision.value}
    if answer.reason:
        fields["reason"] = answer.reason
    if answer.hunks:
        fields["hunks"] = list(answer.hunks)
    if answer.merge:
        fields["merge"] = True
    return fields


def _json(line: bytes, where: str) -> object:
    try:
        return json.loads(line, object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        raise InputError(f"{where} is no JSON") from None


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a field is there twice")
    return record


def write_line(value: Mapping[str, object]) -> bytes:
    """Return a value as one line."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def write_error(error: BaseException) -> dict[str, object]:
    """Return an error as the final answer; of a fault of Interlock its type alone is told."""
    if not isinstance(error, InterlockError):
        error = InterlockError(f"the run's monitor failed: {type(error).__name__}")
    return {
        "error": {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "exit_status": error.exit_status,
        }
    }


_CLASSES = {one.exit_status: one for one in (InputError, BoundaryError, IntegrityError, StuckError)}


def read_reply(line: bytes) -> str | Mapping[str, object]:
    """Read a line of an answer.

    Returns: a note's text; or the final answer without its `ok`.
    Raises: the error that the monitor answered with, by its class; InputError for a line that is no answer.
    """
    fields = Fields(_json(line, "the answer of the run's monitor"), "the answer of the run's monitor")
    match fields.first_of("note", "error", "ok"):
        case "note":
            note = fields.text("note")
            fields.end()
            return note
        case "error":
            inner = Fields(fields.take("error"), "the error of the run's monitor")
            fields.end()
            raise _error(inner)
        case _:
            if not fields.flag("ok"):
                raise InputError("the answer of the run's monitor: `ok` is not true")
            return fields.rest()


def _error(fields: Fields) -> InterlockError:
    code, message, hint = fields.text("code"), fields.text("message"), fields.text("hint")
    exit_status = fields.count("exit_status")
    fields.end()
    error = _CLASSES.get(exit_status, InterlockError)(message, hint=hint)
    error.code, error.exit_status = code, exit_status
    return error
