"""Refusals told again: to an agent that has no channel of its own, and to whoever looks at a run later.

The same five fields everywhere (AgentVisor, semantic exception), numbered from 1 in the order in which they were told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from interlock.model.errors import InputError, IntegrityError, StuckError
from interlock.model.records import dataclass
from interlock.model.requests import INTERNAL_HOST
from interlock.model.verdicts import ExceptionType, SemanticException
from interlock.runtime.environment import NOTICES_URL

if TYPE_CHECKING:
    from interlock.runtime.performer import Resolution
    from interlock.verify import ReadNode

ALL_STAGED = "all that was staged"
"""What a scope that was dropped while the command lived is told as."""
_FIELDS = 7
_TIMEOUT_S = 5.0
_ANSWER_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One refusal. Takes: `effect`, its id, `""` for all of a scope; `subject`, its place or URL."""

    effect: str
    subject: str
    exception: SemanticException

    def plain(self) -> dict[str, object]:
        """Return it as JSON values."""
        exception = self.exception
        return {
            "effect": self.effect,
            "object": self.subject,
            "type": exception.type.value,
            "violated_rule": exception.violated_rule,
            "rationale": exception.rationale,
            "constraints": list(exception.constraints),
            "allowed_objective": exception.allowed_objective,
        }


class Told:
    """What a living run has told of refusals, in one order to which is only ever added."""

    def __init__(self) -> None:
        self._notices: list[Notice] = []
        self._seen = [0, 0]

    def until_now(self, resolution: Resolution) -> list[Notice]:
        """Return all of it: what is new comes after what was there, by the numbers of the effects."""
        new: list[Notice] = []
        for at, refused in enumerate((resolution.turned_away, resolution.refusals)):
            new += [
                Notice(effect=effect_id, subject=what, exception=exception)
                for effect_id, what, exception in refused[self._seen[at] :]
            ]
            self._seen[at] = len(refused)
        self._notices += sorted(new, key=lambda one: _turn(one.effect))
        return self._notices


def _turn(effect_id: str) -> float:
    number = effect_id.removeprefix("e")
    return int(number) if number.isdecimal() else math.inf  # of a whole scope, which ended after its effects


def of_run(path: str) -> tuple[Notice, ...]:
    """Return every refusal in a run's ledger, in its order.

    Raises: IntegrityError if the ledger is not what the fold gives.
    """
    from interlock.runtime.history import read

    return tuple(_recorded(read(path).nodes))


def _recorded(nodes: Iterable[ReadNode]) -> Iterator[Notice]:
    from interlock.monitor.exceptions import refused_discarded

    for node in nodes:
        payload = node.payload
        assert payload is not None
        cut = node.kind == "resolution" and "redacted" in payload and "exception" in payload
        if node.kind == "blocked" or cut:
            yield _recorded_notice(payload)
        elif payload.get("event") == "resolution-asked" and payload.get("discard"):
            yield Notice(effect="", subject=ALL_STAGED, exception=refused_discarded())


def _recorded_notice(payload: Mapping[str, object]) -> Notice:
    """Return the notice of a node that refuses an effect, or that cuts something out of it."""
    exception = payload["exception"]
    assert isinstance(exception, dict)
    try:
        return _notice({"effect": payload["effect"], "object": payload["object"], **exception})
    except InputError as error:
        raise IntegrityError(error.message) from error


def of_inside() -> tuple[Notice, ...]:
    """Ask the boundary for the refusals of the run that this process is inside of.

    Raises: StuckError, where it does not answer; InputError, for an answer that is none.
    """
    import http.client
    import json

    connection = http.client.HTTPConnection(INTERNAL_HOST, timeout=_TIMEOUT_S)
    try:
        connection.request(
            "GET", NOTICES_URL.removeprefix(f"http://{INTERNAL_HOST}"), headers={"Connection": "close"}
        )
        answer = connection.getresponse()
        body = answer.read(_ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise StuckError(
            f"the run's monitor does not answer at {NOTICES_URL}: {why}",
            hint="try again; a person outside can see the refusals: interlock notices last",
        ) from error
    finally:
        connection.close()
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    notices = document.get("notices") if isinstance(document, dict) else None
    if answer.status != 200 or not isinstance(notices, list):
        raise InputError(
            f"what answers at {NOTICES_URL} is no monitor of Interlock",
            hint="call it inside a run, or name the run",
        )
    return tuple(_notice(item) for item in notices)


def _notice(item: object) -> Notice:
    """Read a refusal, strictly. Raises: InputError."""
    match item:
        case {
            "effect": str(effect),
            "object": str(what),
            "type": str(kind),
            "violated_rule": str(rule),
            "rationale": str(rationale),
            "constraints": list(constraints),
            "allowed_objective": str(objective),
        } if _is_whole(item) and all(isinstance(one, str) for one in constraints):
            try:
                exception = SemanticException(
                    type=ExceptionType(kind),
                    violated_rule=rule,
                    rationale=rationale,
                    constraints=tuple(constraints),
                    allowed_objective=objective,
                )
            except ValueError:
                raise InputError("a refusal is of no known type") from None
            return Notice(effect=effect, subject=what, exception=exception)
    raise InputError("a refusal cannot be read")


def _is_whole(item: object) -> bool:
    return isinstance(item, dict) and len(item) == _FIELDS
