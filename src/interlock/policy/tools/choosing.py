"""Which steering value of a call comes from something trusted, and by which rule.

- `named-in-task`, `named-in-file`, `named-in-net`: a trusted text names it, by its type;
- `structured-leaf`: it is a leaf of the user's own state;
- `own-object`: the id of what a released call of this run made;
- `record-selected`: a typed field of the one record that the task names by another field or by the call's argument;
- `granted`: an oracle released the same before.
"""

from interlock.model.effects import Effect, Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.derivations.names import NAMED_IN_TASK
from interlock.policy.grants import find_grant
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.asking import find_ask
from interlock.policy.tools.binding import meant_elsewhere
from interlock.policy.tools.calling import TOOL_ROLE, effect_of, steering_of
from interlock.policy.tools.covering import COVERED, cover, made_before
from interlock.policy.tools.days import DAY, name_day
from interlock.policy.tools.delegating import delegate_value
from interlock.policy.tools.extremes import select_extreme
from interlock.policy.tools.first_names import select_by_first_name
from interlock.policy.tools.leaves import leaves_of
from interlock.policy.tools.made_here import find_made
from interlock.policy.tools.named import named
from interlock.policy.tools.own_choice import choose_own
from interlock.policy.tools.prefixes import select_by_prefix
from interlock.policy.tools.roles import EGRESS, OBJECT_PREFIX, READ, ToolRole
from interlock.policy.tools.same_site import follow_link
from interlock.policy.tools.selecting import select

GRANTED = "granted"
ASKED = "asked"
"""The role that is missing where the task asks for no such effect."""


def derive_call(
    policy: Policy, knowledge: Knowledge, effect: Effect
) -> tuple[tuple[Derivation, ...], tuple[str, ...]]:
    """Return the derivations of a call's steering values, and the roles that have none."""
    tool = policy.tools.find(effect.object.removeprefix(OBJECT_PREFIX))
    leaves = leaves_of(effect.tool.arguments, whole=True) if effect.tool else None
    if tool is None or leaves is None or effect.facets:
        grant = (
            None
            if effect.facets
            else find_grant(knowledge.grants, effect, TOOL_ROLE, effect.steering[0].text)
        )
        if grant is None:
            return (), (TOOL_ROLE,)
        return (_granted(TOOL_ROLE, effect.steering[0].text, grant.node),), ()
    kind = effect_of(tool, leaves)
    if kind == READ:
        return (), ()
    steering = steering_of(tool, kind, leaves)
    # An argument that is not declared steers, and then these two are calls like others.
    if not steering and tool.inert:
        return (), ()
    if not steering and tool.follows:
        return (), () if follows(policy, knowledge, tool) else (ASKED,)
    found: list[Derivation] = []
    missing: list[str] = []
    for role, type_, text in steering:
        derivation = derive_value(policy, knowledge, role, type_, text)
        # What the task's words choose among an answer's records is what they mean; what they name may be elsewhere.
        said = derivation is not None and derivation.rule in (NAMED_IN_TASK, DAY)
        if said and meant_elsewhere(policy, knowledge, tool, steering, (role, type_, text)):
            derivation = None
        if (
            derivation is not None
            and derivation.rule == COVERED
            and made_before(policy, knowledge, tool, role, text)
        ):
            derivation = None
        for rule in (choose_own, follow_link) if derivation is None else ():
            derivation = derivation or rule(policy, knowledge, tool, Value(role=role, text=text), type_)
        if derivation is None and policy.tools.delegations:
            derivation = delegate_value(policy, knowledge, tool, leaves, Value(role=role, text=text))
        if derivation is None:
            grant = find_grant(knowledge.grants, effect, role, text)
            derivation = _granted(role, text, grant.node) if grant is not None else None
        if derivation is None:
            missing.append(role)
        else:
            found.append(derivation)
    granted = bool(found) and all(each.rule == GRANTED for each in found)
    unasked = bool(tool.asks) and not granted and not _asked(knowledge, tool.asks)
    # Nothing steers it and no word asks for it: then nothing vouches.
    bare = not tool.asks and not found and kind != EGRESS
    if unasked or bare or tool.inert or tool.follows:
        missing.append(ASKED)
    return tuple(found), tuple(dict.fromkeys(missing))


def follows(policy: Policy, knowledge: Knowledge, tool: ToolRole) -> bool:
    """Say whether a second step completes a call of this run: at most one step for each call that was let through."""
    passed = [policy.tools.find(call.name) for call in knowledge.passed]
    first = sum(each is not None and each.name in tool.follows for each in passed)
    return not knowledge.passed_lost and first > sum(each is tool for each in passed)


def _granted(role: str, value: str, node: int) -> Derivation:
    return Derivation(role=role, value=value, rule=GRANTED, node=node, start=0, end=0)


def _asked(knowledge: Knowledge, phrases: tuple[str, ...]) -> bool:
    return any(find_ask(source.text, phrases) for source in knowledge.sources.of_task())


_RULES = (name_day, select, select_by_prefix, select_by_first_name, select_extreme, cover, find_made)
"""All but the first choose from what a tool gave back."""


def derive_value(policy: Policy, knowledge: Knowledge, role: str, kind: str, value: str) -> Derivation | None:
    """Return a derivation of one steering value, None where there is none."""
    found = named(knowledge, role, kind, value)
    if found is not None:
        return found
    one = Value(role=role, text=value)
    for rule in _RULES if knowledge.returned else (name_day,):
        found = rule(policy, knowledge, one, kind)
        if found is not None:
            return found
    return None
