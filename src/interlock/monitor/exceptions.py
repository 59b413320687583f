"""Semantic exceptions for refusals that no guard made: an oracle's, and those that fall with another.

Source: AgentVisor, semantic exception (type, violated_rule, rationale, constraints, allowed_objective).
"""

from interlock import policy as rules
from interlock.model.effects import Effect
from interlock.model.events import Answer, OracleAnswered
from interlock.model.redactions import PARTS, Redaction
from interlock.model.requests import INTERNAL_HOST
from interlock.model.verdicts import HUNKS, REDACTED, Decision, ExceptionType, SemanticException, Verdict
from interlock.monitor.state import Decided

_CHECKS = (ExceptionType.SUITABILITY, ExceptionType.TAINT, ExceptionType.INTEGRITY)


def refused_by_oracle(
    policy: rules.Policy | None, effect: Effect, verdict: Verdict, oracle: str, reason: str
) -> SemanticException:
    """Return what the agent is told when a deferred effect was refused."""
    why = [facet.reason for facet in effect.facets[:1]] + [verdict.reason, f"{oracle} did not release it"]
    told = "; ".join(why) + (f": {reason}" if reason else "")
    return rules.exception_for(effect, verdict, told, policy)


def refused_by_answer(
    policy: rules.Policy | None, item: Decided, event: OracleAnswered, answer: Answer | None, wrong: str = ""
) -> SemanticException:
    """Return what the agent is told of a deferred effect that an answer did not release.

    Takes: `wrong`, what makes a release no answer to it.
    Holds: where the oracle says which check failed, its exception is told as it is, and its reason is not.
    """
    if answer is not None and not wrong and not event.fault and answer.decision is not Decision.RELEASE:
        exception = answer.exception
        if exception is not None and exception.type in _CHECKS:
            return exception
    reason = wrong or event.fault or (answer.reason if answer is not None else "no answer")
    return refused_by_oracle(policy, item.effect, item.verdict, event.oracle, reason)


def refused_again(effect: Effect, past: SemanticException, corrections: int | None) -> SemanticException:
    """Return what the agent is told of an effect that is asked about no more.

    Takes: `past`, the last refusal of its kind; `corrections`, how many the policy allows, None for the same effect
    once more.
    """
    if corrections is None:
        why = "the same was refused before, and nothing of it was mended"
    elif corrections == 0:
        why = "an action of this kind was refused, and the policy allows no correction"
    else:
        times = "one correction" if corrections == 1 else f"{corrections} corrections"
        why = f"actions of this kind were refused, and the policy allows {times}"
    return SemanticException(
        type=past.type,
        violated_rule=past.violated_rule,
        rationale=f"{why}; nobody was asked again. It was refused because {past.rationale}",
        constraints=(f"`{effect.operation}` of `{effect.object}` was not released", *past.constraints),
        allowed_objective="go on with the task without it, and say in your answer what you left out",
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


def refused_after(effect: Effect, failed: str) -> SemanticException:
    """Return what is told of an effect that stays behind, since a request before it did not succeed."""
    return SemanticException(
        type=ExceptionType.STOP,
        violated_rule=f"after {failed}",
        rationale=f"the request {failed} before it did not succeed, and what follows keeps its order",
        constraints=(f"`{effect.object}` was not released",),
        allowed_objective="see what became of the earlier request, then decide whether to make this one again",
    )


def refused_conflict(effect: Effect, reason: str) -> SemanticException:
    """Return what is told of a change at a place that the host changed too."""
    told = "the host changed it since it was first read or touched here, and that is never overwritten"
    return SemanticException(
        type=ExceptionType.PROVENANCE,
        violated_rule="conflict",
        rationale=f"{told}: {reason}" if reason else told,
        constraints=(f"`{effect.object}` keeps what the host has there now",),
        allowed_objective="read the file again, and make the change on what it says now",
    )


def refused_hunks(effect: Effect, released: tuple[int, ...]) -> SemanticException:
    """Return what is told of a change of which some hunks alone were released."""
    which = ("hunks " if len(released) > 1 else "hunk ") + ", ".join(str(number) for number in released)
    return SemanticException(
        type=ExceptionType.PROVENANCE,
        violated_rule=HUNKS,
        rationale=f"of this change only {which} went through",
        constraints=(f"`{effect.object}` has no other part of the change",),
        allowed_objective="read the file again, and go on from what it says now",
    )


def refused_in_part(effect: Effect, redaction: Redaction) -> SemanticException:
    """Return what is told of a request that leaves redacted. Holds: nothing of what was cut."""
    counts = {part: len(redaction.of(part)) for part in PARTS}
    where = " and ".join(
        f"{count} {'place' if count == 1 else 'places'} of its {part}"
        for part, count in counts.items()
        if count
    )
    carried, clearance = effect.carried.name.lower(), effect.clearance.name.lower()
    return SemanticException(
        type=ExceptionType.PROVENANCE,
        violated_rule=REDACTED,
        rationale=f"it goes through redacted: `[redacted]` stands at {where} now",
        constraints=(
            f"data of level `{carried}` was cut out: this destination may hold `{clearance}`",
            "the rest of it leaves as it was written",
        ),
        allowed_objective="go on, and do not send what was cut out in another form",
    )


def refused_discarded(what: str = "") -> SemanticException:
    """Return what is told of what was dropped while the command lived. Takes: `what`, "" for all that was staged."""
    none = "nothing of it reached the host, and no request that waited was sent"
    gone = f"`{what}` did not leave" if what else none
    return SemanticException(
        type=ExceptionType.STOP,
        violated_rule="discarded",
        rationale="the user dropped what was staged and parked until now",
        constraints=(gone, "the files are as the host has them"),
        allowed_objective="look at the files again before going on with the task",
    )
