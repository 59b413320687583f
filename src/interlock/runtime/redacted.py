"""A request as a review shows it redacted: what would be cut out stands in marks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from interlock import policy as rules
from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.redactions import BODY, QUERY, Cut
from interlock.model.verdicts import Decision
from interlock.policy.network import method_of

if TYPE_CHECKING:
    from interlock.monitor import State

OPEN, CLOSE = "[-", "-]"


def marked_text(state: State, effect: Effect) -> str:
    """Return a request's query and body, what would be cut out of them in `[-…-]`.

    Raises: InputError, if it cannot be redacted, or would be refused then.
    """
    assert state.policy is not None
    assert state.knowledge is not None
    hint = "release it as it is, or refuse it"
    try:
        found = rules.redact(state.policy, state.knowledge, effect)
    except rules.CannotRedact as error:
        raise InputError(str(error), hint=hint) from error
    if found.verdict.decision is Decision.REFUSE:
        raise InputError(f"it would be refused then: {found.verdict.reason}", hint=hint)
    request, redaction = effect.request, found.redacted.redaction
    assert request is not None
    parts = ((QUERY, "?" + request.query, 1), (BODY, request.body_text or "", 0))
    return "\n".join(
        _marked(text, redaction.of(part), before) for part, text, before in parts if text.strip("?")
    )


def leaves_by_policy(state: State, effect: Effect) -> bool:
    """Say whether the policy has a request leave redacted where nobody is asked, and vouches for what is left of it."""
    assert state.policy is not None
    assert state.knowledge is not None
    request, network = effect.request, state.policy.network
    if request is None:
        return False
    rule = network.rule_for(request.host, request.port, method_of(request), request.path)
    if rule is None or not rule.redact:
        return False
    try:
        found = rules.redact(state.policy, state.knowledge, effect)
    except rules.CannotRedact:
        return False
    return found.verdict.decision is Decision.RELEASE


def _marked(text: str, cuts: Iterable[Cut], before: int) -> str:
    """Takes: `before`, how many bytes stand before those that the cuts count."""
    raw = text.encode("utf-8", "surrogatepass")
    made = []
    at = 0
    for cut in cuts:
        start, end = cut.start + before, cut.end + before
        made += [raw[at:start], OPEN.encode(), raw[start:end], CLOSE.encode()]
        at = end
    return b"".join((*made, raw[at:])).decode("utf-8", "surrogatepass")
