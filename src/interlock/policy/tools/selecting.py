"""A value is a leaf of an answer, and the task means this record of the answer and no other."""

from collections.abc import Iterable, Iterator
from functools import partial

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.derivations.filenames import spoken
from interlock.policy.derivations.names import FILE_STEM
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.knowing import Returned
from interlock.policy.tools.leaves import NAMES, Leaf, declared_type, leaves_of, record_of
from interlock.policy.tools.named import named
from interlock.policy.tools.roles import DIRECTORY, EGRESS, ID_PREFIX, OWN, READ, Output, ToolRole
from interlock.policy.tools.values import same_form

STRUCTURED = "structured-leaf"
OWN_OBJECT = "own-object"
RECORD = "record-selected"
_SELECTS = frozenset(("name", "filename", "email", "path", "date", "text", "iban", "amount"))
MIN_SELECTOR = 3
ELEMENT = "[]"


def select(policy: Policy, knowledge: Knowledge, value: Value, kind: str) -> Derivation | None:
    """Return why a field of an answer vouches for a value."""
    for returned in knowledge.returned:
        tool = policy.tools.find(returned.tool)
        if tool is None:
            continue
        for leaf, type_ in holding(tool.output, returned, kind, value.text):
            made = _vouched(knowledge, tool, returned, (leaf, type_), value)
            if made is not None:
                return made
    return None


def holding(output: Output, returned: Returned, kind: str, value: str) -> Iterator[tuple[Leaf, str]]:
    """Yield the leaves that hold a value as one of its types: by what is declared, else whatever is the user's own."""
    same: set[int] = set()
    types = {type_: form for type_ in kind.split("|") if (form := same_form(type_, value))}
    for type_, form in types.items():
        same.update(returned.forms.of(type_, returned.leaves, form))
    leaves = [returned.leaves[number] for number in sorted(same)]
    for leaf, type_ in _typed(output, leaves, kind):
        if type_ in types and same_form(type_, leaf.text) == types[type_]:
            yield leaf, type_


def typed_leaves(output: Output, returned: Returned, kind: str) -> Iterator[tuple[Leaf, str]]:
    """Yield the leaves that count as one of some types, each with that type."""
    yield from _typed(output, returned.leaves, kind)


def _typed(output: Output, leaves: Iterable[Leaf], kind: str) -> Iterator[tuple[Leaf, str]]:
    own = output.trust in (OWN, DIRECTORY) and not output.echo
    for leaf in leaves:
        declared = declared_type(output.fields, leaf)
        for type_ in kind.split("|"):
            if declared == type_ or (own and not declared and leaf.pointer != ""):
                yield leaf, type_


def lost_any(policy: Policy, knowledge: Knowledge, tool: ToolRole) -> bool:
    """Say whether it is not known whole what a tool has answered: another value may stand in the rest."""
    return any(each.lost and policy.tools.find(each.tool) is tool for each in knowledge.returned)


def at_leaf(
    value: Value, rule: str, returned: Returned, leaf: Leaf, premises: tuple[Derivation, ...] = ()
) -> Derivation:
    """Return the derivation of a value that is a whole leaf of an answer."""
    return at_span(value, rule, returned, leaf, (0, len(leaf.text)), premises=premises)


def at_span(
    value: Value,
    rule: str,
    returned: Returned,
    leaf: Leaf,
    span: tuple[int, int],
    *,
    premises: tuple[Derivation, ...] = (),
) -> Derivation:
    """Return the derivation of a value that stands in a leaf of an answer."""
    start, end = span
    return Derivation(
        role=value.role,
        value=value.text,
        rule=rule,
        node=returned.node,
        start=start,
        end=end,
        pointer=leaf.pointer,
        premises=premises,
    )


def _vouched(
    knowledge: Knowledge, tool: ToolRole, returned: Returned, at: tuple[Leaf, str], value: Value
) -> Derivation | None:
    (leaf, kind), output = at, tool.output
    if tool.effect not in (READ, EGRESS):
        # What a write repeats is what it was given; the id of what it made is new.
        given = {each.text for each in leaves_of(returned.arguments, whole=True) or ()}
        new = kind.startswith(ID_PREFIX) and leaf.text not in given
        return at_leaf(value, OWN_OBJECT, returned, leaf) if new else None
    if output.echo:
        return None
    records = {record_of(each) for each in returned.leaves}
    many = ELEMENT in leaf.field or leaf.field.endswith(NAMES)
    if output.trust == OWN and len(records) == 1 and not many:
        return at_leaf(value, STRUCTURED, returned, leaf)
    selector = _selector(knowledge, output, returned, leaf, records)
    return at_leaf(value, RECORD, returned, leaf, (selector,)) if selector is not None else None


def _selector(
    knowledge: Knowledge, output: Output, returned: Returned, leaf: Leaf, records: set[str]
) -> Derivation | None:
    """Return why the task means this record and no other."""
    here = record_of(leaf)
    beside = tuple(other for other in returned.leaves if record_of(other) == here)
    # The elements of a bare list say nothing of each other.
    bare = all(other.field == leaf.field for other in beside)
    for other in () if bare else beside:
        if other.pointer == leaf.pointer:
            continue
        own = output.trust in (OWN, DIRECTORY)
        kind = declared_type(output.fields, other) or ("name" if own else "")
        if kind not in _SELECTS or sum(char.isalnum() for char in other.text) < MIN_SELECTOR:
            continue
        premise = named(knowledge, other.field, kind, other.text)
        if premise is None:
            continue
        alike = spoken if premise.form == FILE_STEM else partial(same_form, kind)
        twins = {
            record_of(each)
            for each in returned.leaves
            if each.field == other.field and alike(each.text) == alike(other.text)
        }
        if twins == {here}:
            return premise
    if len(records) != 1 or (bare and len(beside) > 1):
        return None
    for given in leaves_of(returned.arguments, whole=True) or ():
        if sum(char.isalnum() for char in given.text) >= MIN_SELECTOR:
            premise = named(knowledge, given.field, "name", given.text)
            if premise is not None:
                return premise
    return None
