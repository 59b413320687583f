"""A hook asks the monitor of the run that its agent is inside of."""

from __future__ import annotations

import http.client
import json

from interlock.hooks.wire import HookedCall
from interlock.model.errors import InputError, StuckError
from interlock.model.requests import INTERNAL_HOST
from interlock.model.verdicts import ExceptionType, SemanticException

CALLS_PATH = "/calls"
_ANSWER_BYTES = 1024 * 1024


def ask_inside(call: HookedCall, *, deadline_s: float) -> SemanticException | None:
    """Ask whether a call may be made. Returns: None where it may, else what the agent is told.

    Takes: `deadline_s`, for the whole answer: a person may be asked.
    Raises: StuckError, where nobody answers in time; InputError, for an answer that is none. The call must not be made
    then.
    """
    body = json.dumps({"call": call.call_id, "tool": call.tool, "arguments": call.arguments}).encode()
    connection = http.client.HTTPConnection(INTERNAL_HOST, timeout=deadline_s)
    try:
        connection.request(
            "POST", CALLS_PATH, body, {"content-type": "application/json", "connection": "close"}
        )
        answer = connection.getresponse()
        said = answer.read(_ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise StuckError(f"the run's monitor does not answer: {why}", hint="try again") from error
    finally:
        connection.close()
    try:
        document = json.loads(said)
    except (ValueError, RecursionError):
        document = None
    match document:
        case {"decision": "pass"} if answer.status == 200:
            return None
        case {
            "decision": "refuse",
            "exception": {
                "type": str(kind),
                "violated_rule": str(rule),
                "rationale": str(rationale),
                "constraints": list(constraints),
                "allowed_objective": str(objective),
            },
        } if answer.status == 200 and all(isinstance(one, str) for one in constraints):
            try:
                return SemanticException(
                    type=ExceptionType(kind),
                    violated_rule=rule,
                    rationale=rationale,
                    constraints=tuple(constraints),
                    allowed_objective=objective,
                )
            except ValueError as error:
                raise InputError("the monitor's refusal is of no known type") from error
    raise InputError(
        "what answers is no monitor of Interlock that judges calls",
        hint="use the Interlock that started the run",
    )
