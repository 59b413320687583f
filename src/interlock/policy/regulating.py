"""The regulation guard: a disclosure that nothing else refuses is judged by who gets what about whom, and why.

Static rules decide first, and nobody lifts what they refuse. What they let through waits for the judge, or for a
person, with the flows in its check. Source: KNOX §4.2; DESIGN §5, guard 6; the static rules, ours.
"""

from collections.abc import Sequence

from interlock.model.disclosures import Flow
from interlock.model.effects import Effect
from interlock.model.records import changed
from interlock.model.verdicts import (
    Check,
    CheckOutcome,
    Decision,
    ExceptionType,
    Guard,
    SemanticException,
    Verdict,
)
from interlock.policy.declaration import Policy
from interlock.policy.disclosing import Disclosed, TooMany, derive, discloses
from interlock.policy.provenance import Knowledge

JUDGE, UNREAD, UNDECLARED, MANY = (
    "regulation:judge",
    "regulation:unread",
    "regulation:undeclared",
    "regulation:too-many",
)
_GO_ON = "go on with the task without telling this, and say in your answer what you left out"
_NOTHING = "no data that the policy declares is known to stand in it"


def regulated(
    policy: Policy, knowledge: Knowledge, effects: Sequence[Effect], verdicts: tuple[Verdict, ...]
) -> tuple[Verdict, ...]:
    """Return the verdicts with what regulation says of each disclosure that is not refused anyhow.

    Holds: a release stays one only where no declared data can be in it; a refusal stays as it is.
    """
    return tuple(
        verdict if verdict.decision is Decision.REFUSE else _regulated(policy, knowledge, effect, verdict)
        for effect, verdict in zip(effects, verdicts, strict=True)
    )


def _regulated(policy: Policy, knowledge: Knowledge, effect: Effect, verdict: Verdict) -> Verdict:
    applied = applied_to(policy, knowledge)
    if policy.regulation is None:
        if not discloses(policy, effect) or effect.tool is None:
            return verdict
        names = ", ".join(applied)
        return _waits(
            verdict,
            UNDECLARED,
            f"the plan says that {names} apply, and the policy does not say whose data is what",
        )
    try:
        found = derive(policy, knowledge, effect)
    except TooMany:
        return _refused(verdict, MANY, "it would tell more data to more parties than is looked through", ())
    if found is None:
        return verdict
    flows = tuple(dict.fromkeys(one.flow for one in found.flows))
    breach = next((one for one in found.flows if one.breach), None)
    if breach is not None:
        return _refused(verdict, breach.breach, _why(breach), (breach.flow,))
    if found.unread:
        return _waits(verdict, UNREAD, "it cannot be told whether it holds data that the policy declares")
    if not flows:
        if verdict.decision is Decision.DEFER:
            return verdict
        check = Check(guard=Guard.REGULATION, outcome=CheckOutcome.PASS, rules=(), reason=_NOTHING)
        return changed(verdict, checks=(*verdict.checks, check))
    more = f", and {len(flows) - 1} more like it" if len(flows) > 1 else ""
    return _waits(
        verdict, JUDGE, f"{flows[0]}{more}: it needs a judgement by {', '.join(applied)}", flows, applied
    )


def applied_to(policy: Policy, knowledge: Knowledge) -> tuple[str, ...]:
    """Return the ids of the regulations that apply: the policy's, then the plan's."""
    ours = policy.regulation.apply if policy.regulation is not None else ()
    planned = knowledge.manifest.regulations if knowledge.manifest is not None else ()
    return tuple(dict.fromkeys((*ours, *planned)))


def told(effect: Effect, verdict: Verdict, rationale: str) -> SemanticException | None:
    """Return what the agent is told of a disclosure that an oracle refused; None where regulation did not hold it."""
    check = verdict.checks[-1] if verdict.checks else None
    if check is None or check.guard is not Guard.REGULATION or check.outcome is not CheckOutcome.UNDECIDED:
        return None
    return _exception(check.rules[0], rationale or check.reason)


def _why(one: Disclosed) -> str:
    return f"{one.flow}: {one.why}"


def _waits(
    verdict: Verdict,
    rule: str,
    reason: str,
    flows: tuple[Flow, ...] = (),
    applied: tuple[str, ...] = (),
) -> Verdict:
    if verdict.decision is Decision.DEFER:
        reason = f"{verdict.reason}; and {reason}"
    check = Check(
        guard=Guard.REGULATION,
        outcome=CheckOutcome.UNDECIDED,
        rules=(rule, *applied),
        reason=reason,
        flows=flows,
    )
    return changed(verdict, decision=Decision.DEFER, checks=(*verdict.checks, check))


def _refused(verdict: Verdict, rule: str, reason: str, flows: tuple[Flow, ...]) -> Verdict:
    check = Check(
        guard=Guard.REGULATION, outcome=CheckOutcome.BLOCK, rules=(rule,), reason=reason, flows=flows
    )
    return Verdict(
        effect_id=verdict.effect_id,
        decision=Decision.REFUSE,
        checks=(*verdict.checks, check),
        derivations=verdict.derivations,
        exception=_exception(rule, reason),
    )


def _exception(rule: str, reason: str) -> SemanticException:
    return SemanticException(
        type=ExceptionType.REGULATION,
        violated_rule=rule,
        rationale=reason,
        constraints=(
            "data of this kind is told to nobody but on the terms that the operator declares",
            "neither another wording nor another channel changes what is told",
        ),
        allowed_objective=_GO_ON,
    )
