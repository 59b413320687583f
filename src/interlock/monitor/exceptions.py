"""Semantic exceptions for refusals that no guard made: an oracle's, and those that fall with another.

Source: AgentVisor, semantic exception (type, violated_rule, rationale, constraints, allowed_objective).
"""

from interlock import policy as rules
from interlock.model.effects import Effect
from interlock.model.verdicts import ExceptionType, SemanticException, Verdict


def refused_by_oracle(effect: Effect, verdict: Verdict, oracle: str, reason: str) -> SemanticException:
    """Return what the agent is told when a deferred effect was refused at the scope's end."""
    why = [facet.reason for facet in effect.facets[:1]] + [verdict.reason, f"{oracle} did not release it"]
    return rules.exception_for(effect, verdict, "; ".join(why) + (f": {reason}" if reason else ""))


def refused_with(effect: Effect, needed: str) -> SemanticException:
    """Return what the agent is told of an effect that falls with one that it needs."""
    return SemanticException(
        type=ExceptionType.PROVENANCE,
        violated_rule=f"needs {needed}",
        rationale=f"it cannot be merged without {needed}, which was not released",
        constraints=(f"`{effect.object}` stands or falls with {needed}",),
        allowed_objective="go on without both, or have the task name the other one",
    )
