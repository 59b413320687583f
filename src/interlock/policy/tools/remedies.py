"""What might have vouched for a call: words for the task, or a delegation; whether it would, the decision says."""

from collections.abc import Iterator

from interlock.model.effects import Effect
from interlock.model.labels import Confidentiality
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.leaves import leaves_of
from interlock.policy.tools.roles import EGRESS, ID_PREFIX, OBJECT_PREFIX, READ, ToolRole, type_of
from interlock.policy.tools.values import SHAPES, held, same_form

MOST_DELEGATIONS = 20


def task_words(policy: Policy, effect: Effect) -> str:
    """Return words by which a task would ask for a call and name its values, `""` where no words would do."""
    tool = policy.tools.find(effect.object.removeprefix(OBJECT_PREFIX))
    if tool is None or effect.facets:
        return ""
    words = [tool.asks[0]] if tool.asks else []
    for value in effect.steering:
        kind = type_of((*tool.steers, *tool.acts), value.role)
        if kind.startswith(ID_PREFIX):
            words.append(f"{kind.removeprefix(ID_PREFIX)} id {value.text}")
        else:
            words.append(
                f'"{value.text}"' if kind in ("name", "filename", "choice", "text", "") else value.text
            )
    return " ".join(words)


def delegations(policy: Policy, knowledge: Knowledge, effect: Effect) -> Iterator[tuple[str, str]]:
    """Yield delegations, as YAML with one line of why, to a source that was read and holds a value of a call."""
    tool = policy.tools.find(effect.object.removeprefix(OBJECT_PREFIX))
    found: list[tuple[str, str]] = []
    for value in effect.steering if tool is not None and not effect.facets else ():
        assert tool is not None
        kinds = [
            kind for kind in type_of((*tool.steers, *tool.acts), value.role).split("|") if kind in SHAPES
        ]
        for source, said in _holding(policy, knowledge, kinds, value.text):
            role = value.role.replace("[]", "")
            yaml = f'delegate:\n  - {{tool: {source.name}, source: "{said}", roles: [{tool.name}.{role}]}}\n'
            found.append((yaml, f"what `{source.name}` read from `{said}` says so"))
    yield from list(dict.fromkeys(found))[:MOST_DELEGATIONS]


def clearances(policy: Policy, effect: Effect) -> Iterator[tuple[str, str]]:
    """Yield, as YAML with one line of why, that those to whom a call goes may have what it carries."""
    if effect.carried <= effect.clearance or not effect.steering:
        return
    level = effect.carried.name.lower()
    unknown = [
        value.text
        for value in effect.steering
        if (policy.clearance_of(value.text) or Confidentiality.PUBLIC) < effect.carried
    ]
    if all(text.isprintable() and not set('"\\') & set(text) for text in unknown):
        entries = "".join(f'  - {{name: "{text}", clearance: {level}}}\n' for text in dict.fromkeys(unknown))
        yield f"parties:\n{entries}", f"those to whom it goes may have what is `{level}`"


def _holding(
    policy: Policy, knowledge: Knowledge, kinds: list[str], value: str
) -> Iterator[tuple[ToolRole, str]]:
    for returned in knowledge.returned if kinds else ():
        reader = policy.tools.find(returned.tool)
        if reader is None or reader.effect not in (READ, EGRESS):
            continue
        there = any(
            form == same_form(kind, value)
            for kind in kinds
            for leaf in returned.leaves
            for form, _, _ in held(kind, leaf.text)
        )
        for given in (leaves_of(returned.arguments, whole=True) or ()) if there else ():
            if given.text.isprintable() and not set('"\\') & set(given.text):
                yield reader, given.text
