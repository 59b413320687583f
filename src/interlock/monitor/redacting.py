"""Requests that an oracle releases without what is sensitive in them: cut, decided anew, on record before they leave.

What is cut is worked out from the record alone, when the answer comes: replay finds the same cuts.
"""

from interlock import policy as rules
from interlock.model import events as ev
from interlock.model.nodes import NodeKind
from interlock.model.redactions import Redacted
from interlock.model.verdicts import Decision, SemanticException
from interlock.monitor.codec import plain
from interlock.monitor.exceptions import refused_by_oracle, refused_in_part
from interlock.monitor.state import Decided, State
from interlock.monitor.writing import Writing


def redacted(
    state: State, out: Writing, item: Decided, event: ev.OracleAnswered, answered: int
) -> Redacted | SemanticException:
    """Redact a request that an oracle released so, and write down what is cut; or return why it is refused.

    Takes: `answered`, the node of the answer.
    Holds: what comes out carries no more than its destination may hold, and no rule forbids it.
    """
    assert state.policy is not None
    assert state.knowledge is not None
    try:
        found = rules.redact(state.policy, state.knowledge, item.effect)
    except rules.CannotRedact as error:
        why = f"it was to leave redacted, and cannot: {error}"
        return refused_by_oracle(state.policy, item.effect, item.verdict, event.oracle, why)
    if found.verdict.decision is Decision.REFUSE:
        assert found.verdict.exception is not None
        return found.verdict.exception
    made = found.redacted
    request = made.effect.request
    assert request is not None
    out.node(
        NodeKind.RESOLUTION,
        answered,
        "monitor",
        {
            "effect": item.effect.id,
            "object": item.effect.object,
            "redacted": [plain(cut) for cut in made.redaction.cuts],
            "body_digest": made.redaction.body_digest,
            "body_size_bytes": made.redaction.body_size_bytes,
            "query": request.query,
            "carried": int(made.effect.carried),
            "decided": found.verdict.decision.value,
            "exception": plain(refused_in_part(item.effect, made.redaction)),
        },
        verdict=Decision.RELEASE.value,
    )
    return made


def redacted_as_told(made: Redacted) -> tuple[str, str, SemanticException]:
    """Return what tells the agent that its request leaves redacted: effect id, object, exception."""
    return made.effect.id, made.before.object, refused_in_part(made.before, made.redaction)
