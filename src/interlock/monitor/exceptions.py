"""Semantic exceptions for refusals that no guard made: an oracle's, a fault's, a discard's.

Source: AgentVisor, semantic exception (type, violated_rule, rationale, constraints, allowed_objective).
"""

from interlock.model.effects import Effect
from interlock.model.verdicts import ExceptionType, SemanticException, Verdict


def refused_by_oracle(effect: Effect, verdict: Verdict, oracle: str, reason: str) -> SemanticException:
    """Return what the agent is told when a deferred effect was refused at the scope's end."""
    return SemanticException(
        type=ExceptionType.PROVENANCE,
        violated_rule=f"deferred: {verdict.reason}",
        rationale=f"{oracle} did not release it" + (f": {reason}" if reason else ""),
        constraints=tuple(facet.reason for facet in effect.facets),
        allowed_objective="go on without this change, or have the task name it",
    )


def refused_with(effect: Effect, needed: str) -> SemanticException:
    """Return what the agent is told of an effect that falls with one that it needs."""
    return SemanticException(
        type=ExceptionType.PROVENANCE,
        violated_rule=f"needs {needed}",
        rationale=f"it cannot be merged without {needed}, which was not released",
        constraints=(f"`{effect.object}` stands or falls with {needed}",),
        allowed_objective="go on without both, or have the task name the other one",
    )
