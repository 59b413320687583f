"""Semantic exceptions for refusals that no guard made: an oracle's, and those that fall with another.

Source: AgentVisor, semantic exception (type, violated_rule, rationale, constraints, allowed_objective).
"""

from interlock import policy as rules
from interlock.model.effects import Effect
from interlock.model.requests import INTERNAL_HOST, Outcome
from interlock.model.verdicts import ExceptionType, SemanticException, Verdict


def refused_by_oracle(
    policy: rules.Policy | None, effect: Effect, verdict: Verdict, oracle: str, reason: str
) -> SemanticException:
    """Return what the agent is told when a deferred effect was refused."""
    why = [facet.reason for facet in effect.facets[:1]] + [verdict.reason, f"{oracle} did not release it"]
    told = "; ".join(why) + (f": {reason}" if reason else "")
    return rules.exception_for(effect, verdict, told, policy)


def refused_with(effect: Effect, needed: str) -> SemanticException:
    """Return what the agent is told of an effect that falls with one that it needs."""
    return SemanticException(
        type=ExceptionType.PROVENANCE,
        violated_rule=f"needs {needed}",
        rationale=f"it cannot be merged without {needed}, which was not released",
        constraints=(f"`{effect.object}` stands or falls with {needed}",),
        allowed_objective="go on without both, or have the task name the other one",
    )


def refused_placeholder(effect: Effect, subjects: tuple[str, ...]) -> SemanticException:
    """Return what the agent is told of a request that holds a placeholder whose subject is settled now."""
    where = ", ".join(f"http://{INTERNAL_HOST}/requests/{subject}" for subject in subjects)
    return SemanticException(
        type=ExceptionType.PROVENANCE,
        violated_rule="placeholder",
        rationale="it holds a placeholder in place of an answer that was not there when it was written",
        constraints=("a placeholder is no value: nothing that holds one leaves", f"the answer is at {where}"),
        allowed_objective="read the answer there, then make this request again with the real value",
    )


def refused_unanswered(effect: Effect, reason: str) -> SemanticException:
    """Return what the agent is told of a request that nobody answered for."""
    return SemanticException(
        type=ExceptionType.PROVENANCE,
        violated_rule="unanswered",
        rationale=f"nobody vouched for it: {reason}",
        constraints=(f"`{effect.operation}` of `{effect.object}` needs an answer that cannot be had now",),
        allowed_objective="go on with the task without it, and say in your answer what you left out",
    )


def refused_after(effect: Effect, failed: str, outcome: Outcome) -> SemanticException:
    """Return what is told of a parked request that was not sent, since one before it did not succeed."""
    return SemanticException(
        type=ExceptionType.STOP,
        violated_rule=f"after {failed}",
        rationale=f"the request {failed} before it ended as `{outcome.value}`, and requests leave in their order",
        constraints=(f"`{effect.object}` was not sent",),
        allowed_objective="see what became of the earlier request, then decide whether to make this one again",
    )
