"""`engine:URL`: an engine that speaks OPA's Data API (`POST /v1/data/…`); its rule gives a boolean or an object.

Source: the public documentation of OPA's REST API; the shape alone.
"""

import json
import re

from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.verdicts import Decision, Verdict
from interlock.oracle import strict_json
from interlock.oracle.engine.document import document
from interlock.oracle.engine.engine import Engine, Opinion
from interlock.oracle.exchanging import Came, ServiceError, address_of
from interlock.oracle.question import Question

_DATA = "/v1/data/"
_DECISION = re.compile(r"[0-9A-Za-z-]{1,64}")


def open_engine(url: str) -> Engine:
    """Open `engine:URL`. Raises: InputError, for a URL that cannot be a rule's in OPA's Data API."""
    address = address_of(url, what="`--oracle engine:`")
    if _DATA not in address.target or address.target.endswith("/"):
        raise InputError(
            "`--oracle engine:` needs the URL of a rule, with `/v1/data/` in it",
            hint="as in engine:http://localhost:8181/v1/data/interlock/decision",
        )
    return Engine(f"engine:{url}", address, Opa())


class Opa:
    """The words of OPA's Data API."""

    def written(self, question: Question, effect: Effect, verdict: Verdict) -> bytes:
        """Return `{"input": …}` with the input document of the effect."""
        return json.dumps({"input": document(question, effect, verdict)}).encode()

    def read(self, came: Came) -> Opinion:
        """Read `{"result": …}`: a boolean, or an object with `allow` and perhaps `reason`; none decides nothing."""
        try:
            answer = strict_json.read(came.body)
        except ValueError:
            raise ServiceError("the engine's answer is no JSON") from None
        if not isinstance(answer, dict):
            raise ServiceError("the engine's answer is no object")
        told = answer.get("decision_id")
        mark = f" (decision {told})" if isinstance(told, str) and _DECISION.fullmatch(told) else ""
        if "result" not in answer:
            return Opinion(decision=Decision.DEFER, reason=f"the engine's rule is undefined for it{mark}")
        allow, reason = _allowed(answer["result"])
        decision = Decision.RELEASE if allow else Decision.REFUSE
        return Opinion(decision=decision, reason=(reason or ("allowed" if allow else "not allowed")) + mark)


def _allowed(result: object) -> tuple[bool, str]:
    if isinstance(result, bool):
        return result, ""
    if isinstance(result, dict):
        allow, reason = result.get("allow"), result.get("reason", "")
        if isinstance(allow, bool) and isinstance(reason, str):
            return allow, reason
    raise ServiceError("the engine's rule is neither a boolean nor an object with a boolean `allow`")
