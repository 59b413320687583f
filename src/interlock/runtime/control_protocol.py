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
from interlock.model.events import Answer, GrantAction, OnConflict, Vote
from interlock.model.inferences import Inference
from interlock.model.records import dataclass
from interlock.runtime import control_answers
from interlock.runtime.control_fields import Fields

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
    (then nothing of what was deferred is released); `votes` and `inferences`, as in `OracleAnswered`; `selection` and
    `on_conflict` as they were proposed.
    """

    proposal: str
    oracle: str
    answers: tuple[Answer, ...]
    fault: str = ""
    votes: tuple[Vote, ...] = ()
    inferences: tuple[Inference, ...] = ()
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
    votes: tuple[Vote, ...] = ()
    inferences: tuple[Inference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantNow:
    """Change a grant. Takes: as `events.GrantChanged`."""

    grant: str
    action: GrantAction
    below: str = ""


ControlRequest = (
    ApplyNow | DiscardNow | StopNow | ProposeNow | ResolveNow | QuestionsNow | AnswerNow | GrantNow
)


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
            said = control_answers.said(fields)
            request = ResolveNow(
                proposal=fields.text("proposal"),
                oracle=said.oracle,
                answers=said.answers,
                fault=said.fault,
                votes=said.votes,
                inferences=said.inferences,
                selection=fields.texts("selection"),
                on_conflict=_on_conflict(fields),
            )
        case "questions":
            request = QuestionsNow()
        case "answer":
            said = control_answers.said(fields)
            request = AnswerNow(
                question=fields.text("question"),
                oracle=said.oracle,
                answers=said.answers,
                fault=said.fault,
                votes=said.votes,
                inferences=said.inferences,
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
                **control_answers.told(request),
                **_scope(request),
            }
        case QuestionsNow():
            fields = {"verb": "questions"}
        case AnswerNow():
            fields = {
                "verb": "answer",
                "question": request.question,
                **control_answers.told(request),
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
