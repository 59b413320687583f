"""The guards of a manifest beside the rules and provenance: what each says of an effect that it covers.

Holds: each is a pure function of the policy, what is known (the manifest and how far the run is in it) and the effect,
so that a replay checks it again; one that fails refuses.
Source: DESIGN §5, guards 1, 3, 4 and 6.
"""

from collections.abc import Callable

from interlock.model.effects import Effect
from interlock.model.records import dataclass
from interlock.model.verdicts import (
    Check,
    CheckOutcome,
    Decision,
    ExceptionType,
    Guard,
    SemanticException,
    Verdict,
)
from interlock.policy.provenance import Knowledge
from interlock.policy.rules import is_ours

TYPES = {
    Guard.STOP: ExceptionType.STOP,
    Guard.RULES: ExceptionType.RULE,
    Guard.SYSCALL: ExceptionType.SYSCALL,
    Guard.TRAJECTORY: ExceptionType.TRAJECTORY,
    Guard.PROVENANCE: ExceptionType.PROVENANCE,
    Guard.REGULATION: ExceptionType.REGULATION,
}
"""What a refusal of each guard's is told as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What one guard says of an effect that it covers.

    Takes: `check`, its finding; `exception`, what the agent is told, set if and only if the check blocks.
    """

    check: Check
    exception: SemanticException | None = None


def passed(guard: Guard, rule: str, reason: str) -> Guarded:
    """Return that a guard holds. Takes: `rule`, what decided, `""` for nothing by name."""
    return Guarded(check=_check(guard, CheckOutcome.PASS, rule, reason))


def undecided(guard: Guard, rule: str, reason: str) -> Guarded:
    """Return that a guard covers an effect and says neither yes nor no."""
    return Guarded(check=_check(guard, CheckOutcome.UNDECIDED, rule, reason))


def blocked(guard: Guard, rule: str, reason: str, *, constraints: tuple[str, ...], instead: str) -> Guarded:
    """Return that a guard refuses. Takes: `constraints` and `instead`, what the agent is told to keep to."""
    return Guarded(
        check=_check(guard, CheckOutcome.BLOCK, rule, reason),
        exception=SemanticException(
            type=TYPES[guard],
            violated_rule=rule,
            rationale=reason,
            constraints=constraints,
            allowed_objective=instead,
        ),
    )


def stopped(knowledge: Knowledge, effect: Effect) -> Guarded | None:
    """Return what the stop guard says, None where it covers nothing."""
    if knowledge.stops is None:
        return None
    from interlock.policy import stopping

    return _sure(Guard.STOP, lambda: stopping.stopped(knowledge, effect))


def confined(knowledge: Knowledge, effect: Effect) -> Guarded | None:
    """Return what the system-call guard says, None where it covers nothing."""
    manifest = knowledge.manifest
    if manifest is None or not manifest.authorises:
        return None
    from interlock.policy import authorised

    return _sure(Guard.SYSCALL, lambda: authorised.authorised(manifest, effect))


def followed(knowledge: Knowledge, effect: Effect) -> Guarded | None:
    """Return what the trajectory guard says, None where it covers nothing."""
    manifest = knowledge.manifest
    if manifest is None:
        return None
    from interlock.policy import trajectory

    return _sure(Guard.TRAJECTORY, lambda: trajectory.followed(manifest, knowledge.progress, effect))


def by_manifest(
    knowledge: Knowledge, effect: Effect, past: tuple[Check, ...]
) -> tuple[Verdict | None, tuple[Check, ...], bool]:
    """Return what the guards between the rules and provenance say.

    Takes: `past`, what the guards before them found.
    Returns: the refusal, where one decides; all findings so far; whether the plan vouches for the effect.
    Holds: it vouches for the place that a change is made at, and for nothing hazardous about what is made there.
    """
    on_plan = False
    for found in (confined(knowledge, effect), followed(knowledge, effect)):
        if found is None:
            continue
        if found.exception is not None:
            return refused(effect, past, found), past, False
        past = (*past, found.check)
        on_plan = found.check.guard is Guard.TRAJECTORY and found.check.outcome is CheckOutcome.PASS
    hazardous = effect.change is not None and bool(effect.change.hazards)
    return None, past, on_plan and not hazardous


def refused(effect: Effect, past: tuple[Check, ...], found: Guarded) -> Verdict:
    """Return the refusal by a guard that blocks. Takes: `past`, what the guards before it found."""
    return Verdict(
        effect_id=effect.id,
        decision=Decision.REFUSE,
        checks=(*past, found.check),
        exception=found.exception,
    )


def _sure(guard: Guard, found: Callable[[], Guarded | None]) -> Guarded | None:
    """Return what a guard says. Holds: one that fails refuses."""
    try:
        return found()
    except BaseException as failure:  # fail closed: a guard that cannot say anything lets nothing through
        if not is_ours(failure):
            raise
        return blocked(
            guard,
            "fail-closed",
            f"refused because the check failed: the {guard.value} guard ({type(failure).__name__})",
            constraints=("trying again in the same way fails in the same way",),
            instead="go on with the task without this action, and say in your answer what you left out",
        )


def _check(guard: Guard, outcome: CheckOutcome, rule: str, reason: str) -> Check:
    return Check(guard=guard, outcome=outcome, rules=(rule,) if rule else (), reason=reason)
