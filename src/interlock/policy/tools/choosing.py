"""Which steering value of a call comes from something trusted, and by which rule.

- `named-in-task`, `named-in-file`, `named-in-net`: a trusted text names it, by its type;
- `structured-leaf`: it is a leaf of the user's own state;
- `own-object`: the id of what a released call of this run made;
- `record-selected`: a typed field of the one record that the task names by another field or by the call's argument;
- `granted`: an oracle released the same before.
"""

from collections.abc import Iterator

from interlock.model.effects import Effect, Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.asking import find_ask
from interlock.policy.tools.calling import TOOL_ROLE, effect_of, steering_of
from interlock.policy.tools.knowing import Returned
from interlock.policy.tools.leaves import Leaf, declared_type, leaves_of, record_of
from interlock.policy.tools.roles import (
    DIRECTORY,
    EGRESS,
    ID_PREFIX,
    OBJECT_PREFIX,
    OWN,
    READ,
    Output,
    ToolRole,
)
from interlock.policy.tools.values import find_value, same_form

STRUCTURED = "structured-leaf"
OWN_OBJECT = "own-object"
RECORD = "record-selected"
GRANTED = "granted"
ASKED = "asked"
"""The role that is missing where the task asks for no such effect."""
_SELECTS = frozenset(("name", "email", "path", "date", "text", "iban", "amount"))
MIN_SELECTOR = 3


def derive_call(
    policy: Policy, knowledge: Knowledge, effect: Effect
) -> tuple[tuple[Derivation, ...], tuple[str, ...]]:
    """Return the derivations of a call's steering values, and the roles that have none."""
    from interlock.policy.grants import find_grant

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
    found: list[Derivation] = []
    missing: list[str] = []
    for role, type_, text in steering_of(tool, kind, leaves):
        derivation = derive_value(policy, knowledge, role, type_, text)
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
    if unasked or (not tool.asks and not found and kind != EGRESS):
        missing.append(ASKED)
    return tuple(found), tuple(dict.fromkeys(missing))


def _granted(role: str, value: str, node: int) -> Derivation:
    return Derivation(role=role, value=value, rule=GRANTED, node=node, start=0, end=0)


def _asked(knowledge: Knowledge, phrases: tuple[str, ...]) -> bool:
    return any(find_ask(source.text, phrases) for source in knowledge.sources if source.kind == "task")


def named(knowledge: Knowledge, role: str, kind: str, value: str) -> Derivation | None:
    """Return where a trusted text names a value."""
    for source in knowledge.sources:
        span = find_value(kind, value, source.text)
        if span is not None:
            return Derivation(
                role=role,
                value=value,
                rule=f"named-in-{source.kind}",
                node=source.node,
                start=source.offset + span[0],
                end=source.offset + span[1],
            )
    return None


def derive_value(policy: Policy, knowledge: Knowledge, role: str, kind: str, value: str) -> Derivation | None:
    """Return a derivation of one steering value, None where there is none."""
    found = named(knowledge, role, kind, value)
    if found is not None:
        return found
    for returned in knowledge.returned:
        tool = policy.tools.find(returned.tool)
        if tool is None:
            continue
        for at in _holding(tool.output, returned, kind, value):
            made = _vouched(knowledge, tool, returned, at, Value(role=role, text=value))
            if made is not None:
                return made
    return None


def _holding(output: Output, returned: Returned, kind: str, value: str) -> Iterator[tuple[Leaf, str]]:
    """Yield the leaves that hold a value as one of its types: by what is declared, else whatever is the user's own."""
    kinds = kind.split("|")
    for leaf in returned.leaves:
        declared = declared_type(output.fields, leaf)
        own = output.trust in (OWN, DIRECTORY) and not output.echo
        for type_ in kinds:
            fits = declared == type_ or (own and not declared and leaf.pointer != "")
            form = same_form(type_, value) if fits else ""
            if form and same_form(type_, leaf.text) == form:
                yield leaf, type_


def _vouched(
    knowledge: Knowledge, tool: ToolRole, returned: Returned, at: tuple[Leaf, str], value: Value
) -> Derivation | None:
    (leaf, kind), output = at, tool.output

    def made(rule: str, premises: tuple[Derivation, ...] = ()) -> Derivation:
        return Derivation(
            role=value.role,
            value=value.text,
            rule=rule,
            node=returned.node,
            start=0,
            end=len(leaf.text),
            pointer=leaf.pointer,
            premises=premises,
        )

    if tool.effect not in (READ, EGRESS):
        # What a write repeats is what it was given; the id of what it made is new.
        given = {each.text for each in leaves_of(returned.arguments, whole=True) or ()}
        new = kind.startswith(ID_PREFIX) and leaf.text not in given
        return made(OWN_OBJECT) if new else None
    if output.echo:
        return None
    records = {record_of(each) for each in returned.leaves}
    if output.trust == OWN and len(records) == 1 and "[]" not in leaf.field:
        return made(STRUCTURED)
    selector = _selector(knowledge, output, returned, leaf, records)
    return made(RECORD, (selector,)) if selector is not None else None


def _selector(
    knowledge: Knowledge, output: Output, returned: Returned, leaf: Leaf, records: set[str]
) -> Derivation | None:
    """Return why the task means this record and no other."""
    here = record_of(leaf)
    for other in returned.leaves:
        if record_of(other) != here or other.pointer == leaf.pointer:
            continue
        own = output.trust in (OWN, DIRECTORY)
        kind = declared_type(output.fields, other) or ("name" if own else "")
        if kind not in _SELECTS or sum(char.isalnum() for char in other.text) < MIN_SELECTOR:
            continue
        premise = named(knowledge, other.field, kind, other.text)
        if premise is None:
            continue
        twins = {
            record_of(each)
            for each in returned.leaves
            if each.field == other.field and same_form(kind, each.text) == same_form(kind, other.text)
        }
        if twins == {here}:
            return premise
    if len(records) != 1:
        return None
    for given in leaves_of(returned.arguments, whole=True) or ():
        if sum(char.isalnum() for char in given.text) >= MIN_SELECTOR:
            premise = named(knowledge, given.field, "name", given.text)
            if premise is not None:
                return premise
    return None
