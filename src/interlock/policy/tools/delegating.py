"""A source to which the operator hands the choice of a value, where the task names that source.

- `delegated`: the value is the only one of its type in everything that was read from that source, and what else the
  delegation binds (an amount) stands there too;
- `received-whole`: the address that a reading call opens stands there as it is, so that it says nothing of what the
  agent knows but which of the addresses was chosen.
"""

from collections.abc import Iterator

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.knowing import Returned
from interlock.policy.tools.leaves import Leaf, leaves_of
from interlock.policy.tools.named import arguments_named
from interlock.policy.tools.roles import EGRESS, Delegation, ToolRole, type_of
from interlock.policy.tools.selecting import at_span
from interlock.policy.tools.values import SHAPES, acting, find_value, held, same_form

DELEGATED = "delegated"
WHOLE = "received-whole"
ANY_SOURCE = "*"


def delegate_value(
    policy: Policy, knowledge: Knowledge, tool: ToolRole, arguments: tuple[Leaf, ...], value: Value
) -> Derivation | None:
    """Return why a source that the operator and the task name vouches for a value.

    Holds: never for a call that parks, since how many there were is counted when they leave.
    """
    kind = type_of((*tool.steers, *tool.acts), value.role) or _carried(value.text)
    if tool.parks or not kind or knowledge.passed_lost:
        return None
    wanted = {same_form(one, value.text) for one in kind.split("|")} - {""}
    for given in policy.tools.delegations:
        if not _has_role(given, tool.name, value.role):
            continue
        for source, premises in _sources(policy, knowledge, given):
            # All that was read of it counts, whoever may be trusted: with a second value nobody knows which is meant.
            texts = [(one, leaf) for one in source for leaf in one.leaves]
            found = [(*at, one, leaf) for one, leaf in texts for at in held(kind, leaf.text)]
            forms = {form for form, _, _, _, _ in found}
            alone = len(forms) == 1 and _bound(tool, given, arguments, [leaf.text for _, leaf in texts])
            if not wanted & forms or not (tool.effect == EGRESS or alone):
                continue
            if _used(policy, knowledge, given, forms) >= given.effects:
                continue
            _, start, end, one, leaf = next(at for at in found if at[0] in wanted)
            rule = WHOLE if tool.effect == EGRESS else DELEGATED
            return at_span(value, rule, one, leaf, (start, end), premises=premises)
    return None


def _carried(value: str) -> str:
    """Return as what a value acts that stands in something carried."""
    return next((kind for kind, text in acting(value) if text == value), "")


def _has_role(given: Delegation, tool: str, role: str) -> bool:
    return bool(type_of(tuple((each, each) for each in given.roles), f"{tool}.{role}"))


def _sources(
    policy: Policy, knowledge: Knowledge, given: Delegation
) -> Iterator[tuple[tuple[Returned, ...], tuple[Derivation, ...]]]:
    """Yield each source of a delegation that was read and is known whole: its answers, and where the task names it."""
    reader = policy.tools.find(given.tool)
    answers = [each for each in knowledge.returned if policy.tools.find(each.tool) is reader]
    for arguments in dict.fromkeys(each.arguments for each in answers):
        source = tuple(each for each in answers if each.is_of(arguments))
        said = leaves_of(arguments, whole=True) or ()
        if reader is None or not said or any(each.lost for each in source):
            continue
        if given.source == ANY_SOURCE:
            premises = arguments_named(knowledge, reader.steers, arguments)
            if premises:
                yield source, premises
        elif any(each.text == given.source for each in said):
            yield source, ()


def _bound(tool: ToolRole, given: Delegation, arguments: tuple[Leaf, ...], texts: list[str]) -> bool:
    for name in given.bound:
        kind = type_of((*tool.steers, *tool.acts), name)
        for leaf in arguments:
            if type_of(((name, name),), leaf.field):
                kinds = kind or "amount|text"
                if not any(find_value(kinds, leaf.text, text) for text in texts):
                    return False
    return True


def _used(policy: Policy, knowledge: Knowledge, given: Delegation, forms: set[str]) -> int:
    """Return how many calls that were let through had a value of this source in one of these roles."""
    used = 0
    for call in knowledge.passed:
        tool = policy.tools.find(call.name)
        for leaf in (leaves_of(call.arguments, whole=True) or ()) if tool else ():
            assert tool is not None
            kinds = type_of((*tool.steers, *tool.acts), leaf.field)
            here = {same_form(one, leaf.text) for one in kinds.split("|") if one}
            here |= set() if kinds else {form for one in SHAPES for form, _, _ in held(one, leaf.text)}
            if _has_role(given, tool.name, leaf.field) and forms & here:
                used += 1
                break
    return used
