"""The decision of one effect: the guards in their order, the first that decides wins; what fails refuses.

The order: stop, the role and rules, system calls, the trajectory, provenance, regulation. What a manifest adds stands
in `policy.guarding`; without one nothing of it is looked at.
Source: DESIGN §5; KAIROS, the three questions.
"""

from collections.abc import Sequence

from interlock.model.effects import Channel, Effect
from interlock.model.labels import Integrity
from interlock.model.verdicts import (
    QUIET,
    Check,
    CheckOutcome,
    Decision,
    Derivation,
    ExceptionType,
    Guard,
    SemanticException,
    Verdict,
)
from interlock.policy import net_words
from interlock.policy.declaration import Policy
from interlock.policy.derivation import derive
from interlock.policy.net_derivation import derive_net
from interlock.policy.operator import ROLE
from interlock.policy.provenance import Knowledge
from interlock.policy.rules import Finding, Request, Rule, evaluate, is_ours, rules_of
from interlock.policy.telling import GO_ON, GO_ON_NET
from interlock.policy.tools.pinning import PINNED

_NOT_FORBIDDEN = Check(guard=Guard.RULES, outcome=CheckOutcome.PASS, rules=(), reason="no rule forbids it")
_SHOWN_NAMES = 12
_FAULTS = {Guard.RULES: ExceptionType.RULE, Guard.REGULATION: ExceptionType.REGULATION}


def decide(policy: Policy, knowledge: Knowledge, effects: Sequence[Effect]) -> tuple[Verdict, ...]:
    """Decide effects, each for itself.

    Returns: one verdict an effect, in order.
    Holds: pure and total; whatever fails makes a REFUSE that says which part failed; the verdict on one
    effect does not depend on its neighbours.
    """
    if not effects:
        return ()
    derived: list[tuple[tuple[Derivation, ...], tuple[str, ...]] | None] = []
    requests: list[Request] = []
    numbers: list[int | None] = []
    for effect in effects:
        try:
            found = _derive_all(policy, knowledge, effect)
            request = _request(policy, knowledge, effect, derived=not found[1])
        except BaseException as failure:  # fail closed: one bad effect is refused
            if not is_ours(failure):
                raise
            derived.append(None)
            numbers.append(None)
            continue
        derived.append(found)
        numbers.append(len(requests))
        requests.append(request)
    try:
        findings = evaluate(policy.cedar, requests)
        forbids = any(finding.forbids for finding in findings)
        known = {rule.id: rule for rule in rules_of(policy.cedar)} if forbids else {}
    except BaseException as failure:  # fail closed: rules that cannot be read refuse all
        if not is_ours(failure):
            raise
        findings = [Finding(fault=f"the rules could not be read ({type(failure).__name__})")] * len(requests)
        known = {}
    verdicts: list[Verdict] = []
    guarded = knowledge.manifest is not None or knowledge.stops is not None
    for effect, origin, number in zip(effects, derived, numbers, strict=True):
        if guarded and (stop := _stopped(knowledge, effect)) is not None:
            verdicts.append(stop)
        elif outside := policy.operator.outside(effect):
            verdicts.append(_unsuited(policy, effect, outside))
        elif origin is None or number is None:
            verdicts.append(
                _faulted(effect, Guard.PROVENANCE, "the origin of its values could not be worked out")
            )
        else:
            doubted = "" if effect.tool is None else knowledge.pins.doubt(effect.tool)
            planned = knowledge if guarded else None
            verdict = _conclude(effect, origin, findings[number], known, doubted, planned=planned)
            verdicts.append(_hushed(policy, effect, verdict))
    return _regulated(policy, knowledge, effects, _tied(policy, knowledge, effects, tuple(verdicts)))


def _stopped(knowledge: Knowledge, effect: Effect) -> Verdict | None:
    """Refuse what comes after a stop; None where nothing is stopped."""
    from interlock.policy.guarding import refused, stopped

    found = stopped(knowledge, effect)
    return None if found is None or found.exception is None else refused(effect, (), found)


def _regulated(
    policy: Policy, knowledge: Knowledge, effects: Sequence[Effect], verdicts: tuple[Verdict, ...]
) -> tuple[Verdict, ...]:
    """Refuse or defer what would be released and may not be disclosed so (`regulation`)."""
    manifest = knowledge.manifest
    if policy.regulation is None and (manifest is None or not manifest.regulations):
        return verdicts
    from interlock.policy.regulating import regulated

    try:
        return regulated(policy, knowledge, effects, verdicts)
    except BaseException as failure:  # fail closed: what cannot be judged is refused
        if not is_ours(failure):
            raise
        fault = f"whether it may be disclosed could not be worked out ({type(failure).__name__})"
        return tuple(
            one if one.decision is Decision.REFUSE else _faulted(effect, Guard.REGULATION, fault)
            for effect, one in zip(effects, verdicts, strict=True)
        )


def _tied(
    policy: Policy, knowledge: Knowledge, effects: Sequence[Effect], verdicts: tuple[Verdict, ...]
) -> tuple[Verdict, ...]:
    """Defer what would be released and is not what the model's calls tell of, where the policy wants that (`lens`)."""
    if not policy.lens.defers or not any(one.decision is Decision.RELEASE for one in verdicts):
        return verdicts
    from interlock.policy.announced_ties import Ties, with_ties

    try:
        return with_ties(Ties(policy, knowledge), effects, verdicts)
    except BaseException as failure:  # fail closed: what cannot be tied is refused
        if not is_ours(failure):
            raise
        fault = f"it could not be tied to a call of the model's ({type(failure).__name__})"
        return tuple(
            _faulted(effect, Guard.PROVENANCE, fault) if one.decision is Decision.RELEASE else one
            for effect, one in zip(effects, verdicts, strict=True)
        )


def _hushed(policy: Policy, effect: Effect, verdict: Verdict) -> Verdict:
    """Refuse what would be deferred where the operator wants nobody to be asked (`network.quiet`)."""
    request = effect.request
    if verdict.decision is not Decision.DEFER or request is None or not policy.network.quiets(request):
        return verdict
    reason = f"{verdict.reason}; nobody is asked about this host"
    check = Check(guard=Guard.PROVENANCE, outcome=CheckOutcome.BLOCK, rules=(QUIET,), reason=reason)
    return Verdict(
        effect_id=effect.id,
        decision=Decision.REFUSE,
        checks=(*verdict.checks[:-1], check),
        exception=SemanticException(
            type=ExceptionType.PROVENANCE,
            violated_rule=QUIET,
            rationale=reason,
            constraints=(f"requests to `{request.host}` that the task does not need are not sent",),
            allowed_objective=GO_ON_NET,
        ),
    )


def _derive_all(
    policy: Policy, knowledge: Knowledge, effect: Effect
) -> tuple[tuple[Derivation, ...], tuple[str, ...]]:
    """Return the derivations, and the roles of the steering values that have none."""
    if effect.channel is Channel.TOOL:
        from interlock.policy.tools.choosing import derive_call

        return derive_call(policy, knowledge, effect)
    found: list[Derivation] = []
    missing: list[str] = []
    for value in effect.steering:
        if effect.channel is Channel.NET:
            derivation = derive_net(policy, knowledge, effect, value)
        else:
            derivation = derive(knowledge, effect, value)
        if derivation is None:
            missing.append(value.role)
        else:
            found.append(derivation)
    return tuple(found), tuple(missing)


def _request(policy: Policy, knowledge: Knowledge, effect: Effect, *, derived: bool) -> Request:
    change, request = effect.change, effect.request
    root, path = (change.place.root, change.place.path) if change else ("", effect.object)
    size = after.size_bytes if (after := change.after if change else None) else 0
    if request is not None:
        path = request.path
        size = effect.message.size_bytes if effect.message else request.body_size_bytes
    placeholders = request.placeholders if request else ()
    if effect.tool is not None:
        path, size = effect.tool.name, len(effect.tool.arguments)
        placeholders = effect.tool.placeholders
    if effect.message is not None:
        placeholders = effect.message.placeholders
    before = change.before if change else None
    return Request(
        action=effect.operation,
        resource=effect.object,
        context={
            "after": after.type.value if after else "none",
            "before": before.type.value if before else "none",
            "carried": int(effect.carried),
            "channel": effect.channel.value,
            "clearance": int(effect.clearance),
            "credential": request.credential.value if request else "",
            "derived": derived,
            "executable": bool(effect.facets),
            "facets": sorted({facet.kind for facet in effect.facets}) if effect.facets else [],
            "hazards": sorted({hazard.value for hazard in change.hazards}) if change else [],
            "host": request.host if request else "",
            "lens": effect.action.tool if effect.action else "",
            "method": request.method if request else "",
            "name": path.rpartition("/")[2],
            "operation": effect.operation.partition(".")[2],
            "path": path,
            "placeholder": bool(placeholders),
            "port": request.port if request else 0,
            "published": request is not None and policy.network.published(request) is not None,
            "query": request.query if request else "",
            "root": root,
            "scheme": request.scheme if request else "",
            "size": size,
            "source": change.source.path if change and change.source else "",
            "tainted": knowledge.label.integrity is Integrity.UNTRUSTED,
        },
    )


def _conclude(
    effect: Effect,
    origin: tuple[tuple[Derivation, ...], tuple[str, ...]],
    finding: Finding,
    known: dict[str, Rule],
    doubted: str,
    *,
    planned: Knowledge | None,
) -> Verdict:
    """Decide by what each guard says. Takes: `planned`, what is known, where a manifest's guards have a word."""
    derivations, missing = origin
    if finding.fault:
        return _faulted(effect, Guard.RULES, finding.fault)
    if finding.forbids:
        return _forbidden(effect, finding.forbids, known)
    past: tuple[Check, ...] = (_NOT_FORBIDDEN,)
    on_plan = False
    if planned is not None:
        from interlock.policy.guarding import by_manifest

        decided, past, on_plan = by_manifest(planned, effect, past)
        if decided is not None:
            return decided
    # The plan says where it goes, and nothing of what it carries, nor of what became of the place meanwhile.
    doubt = doubted or _doubt(effect, () if on_plan else missing, ("plan",) if on_plan else finding.permits)
    if on_plan and not doubt:
        return Verdict(effect_id=effect.id, decision=Decision.RELEASE, checks=past)
    if doubt:
        check = Check(
            guard=Guard.PROVENANCE,
            outcome=CheckOutcome.UNDECIDED,
            rules=(PINNED,) if doubted else (),
            reason=doubt,
        )
        return Verdict(
            effect_id=effect.id,
            decision=Decision.DEFER,
            checks=(*past, check),
            derivations=derivations,
        )
    how = ", ".join(sorted({derivation.rule for derivation in derivations})) or "nothing steers it"
    check = Check(
        guard=Guard.PROVENANCE,
        outcome=CheckOutcome.PASS,
        rules=finding.permits,
        reason=f"vouched for ({how}) and permitted",
    )
    return Verdict(
        effect_id=effect.id,
        decision=Decision.RELEASE,
        checks=(*past, check),
        derivations=derivations,
    )


def _doubt(effect: Effect, missing: tuple[str, ...], permits: tuple[str, ...]) -> str:
    """Return why nothing vouches for an effect, `""` where something does."""
    if effect.change is not None and effect.change.host_edit is not None:
        return f"the host changed it too since the agent first touched it ({effect.change.host_edit.value})"
    if missing and effect.channel is Channel.TOOL:
        from interlock.policy.tools import words

        return words.doubt(effect, missing)
    if missing and effect.channel is Channel.NET:
        return net_words.doubt(effect, missing)
    if missing:
        hazards = effect.change.hazards if effect.change else ()
        if hazards:
            return (
                f"it is a hazard ({', '.join(hazard.value for hazard in hazards)}) that nothing vouches for"
            )
        if effect.facets:
            return "it runs, or steers what runs, and the task does not name it"
        return f"no trusted source names its {' or '.join(missing)}"
    if effect.carried > effect.clearance:
        carried, clearance = effect.carried.name.lower(), effect.clearance.name.lower()
        return f"it carries data of level `{carried}`, its destination may hold `{clearance}`"
    return "" if permits else "no rule of the policy permits it"


def _forbidden(effect: Effect, ids: tuple[str, ...], known: dict[str, Rule]) -> Verdict:
    told = [known[rule_id] for rule_id in ids if rule_id in known]
    reason = next((rule.reason for rule in told if rule.reason), f"the rule `{ids[0]}` forbids it")
    check = Check(guard=Guard.RULES, outcome=CheckOutcome.BLOCK, rules=ids, reason=reason)
    return Verdict(
        effect_id=effect.id,
        decision=Decision.REFUSE,
        checks=(check,),
        exception=SemanticException(
            type=ExceptionType.RULE,
            violated_rule=ids[0],
            rationale=reason,
            constraints=(
                f"`{effect.operation}` of `{effect.object}` is forbidden for this run",
                "no answer of the user or of another agent lifts it",
            ),
            allowed_objective=next((rule.instead for rule in told if rule.instead), _go_on(effect)),
        ),
    )


def _unsuited(policy: Policy, effect: Effect, reason: str) -> Verdict:
    """Refuse what the operator's role does not hold: nothing in the task, and no rule, lifts that."""
    check = Check(guard=Guard.RULES, outcome=CheckOutcome.BLOCK, rules=(ROLE,), reason=reason)
    held = policy.operator.tools if effect.channel is Channel.TOOL else policy.operator.operations
    names = ", ".join(f"`{glob}`" for glob in (held or ())[:_SHOWN_NAMES])
    return Verdict(
        effect_id=effect.id,
        decision=Decision.REFUSE,
        checks=(check,),
        exception=SemanticException(
            type=ExceptionType.SUITABILITY,
            violated_rule=ROLE,
            rationale=reason,
            constraints=(
                f"`{effect.operation}` of `{effect.object}` is outside of this agent's role",
                *((f"the role holds {names}",) if names else ()),
                "no request of a user lifts it",
            ),
            allowed_objective="do what the task asks within the role, and say in your answer what you left out",
        ),
    )


def _go_on(effect: Effect) -> str:
    return GO_ON_NET if effect.channel is Channel.NET else GO_ON


def _faulted(effect: Effect, guard: Guard, fault: str) -> Verdict:
    reason = f"refused because the check failed: {fault}"
    return Verdict(
        effect_id=effect.id,
        decision=Decision.REFUSE,
        checks=(Check(guard=guard, outcome=CheckOutcome.BLOCK, rules=("fail-closed",), reason=reason),),
        exception=SemanticException(
            type=_FAULTS.get(guard, ExceptionType.PROVENANCE),
            violated_rule="fail-closed",
            rationale=reason,
            constraints=("trying again in the same way fails in the same way",),
            allowed_objective=_go_on(effect),
        ),
    )
