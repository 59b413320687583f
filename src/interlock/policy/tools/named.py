"""Where the words of a trusted text name a value of a call."""

from interlock.model.verdicts import Derivation
from interlock.policy.derivations.typed import Found, find_typed
from interlock.policy.provenance import Knowledge
from interlock.policy.sources import TASK, Source
from interlock.policy.tools.leaves import leaves_of


def named(knowledge: Knowledge, role: str, kind: str, value: str) -> Derivation | None:
    """Return where a trusted text names a value."""
    there = knowledge.sources.naming(kind, value)
    return None if there is None else _derivation(role, value, there.source, there.found)


def named_in_task(knowledge: Knowledge, role: str, kind: str, value: str) -> Derivation | None:
    """Return where the task itself names a value: what chooses has to be the principal's own word."""
    for source in knowledge.sources.of_task():
        found = find_typed(kind, value, source.text)
        if found is not None:
            return _derivation(role, value, source, found)
    return None


def _derivation(role: str, value: str, source: Source, found: Found) -> Derivation:
    return Derivation(
        role=role,
        value=value,
        rule=f"named-in-{source.kind}",
        node=source.node,
        start=source.offset + found.start,
        end=source.offset + found.end,
        pointer=source.pointer,
        form=found.form,
    )


def word_in_task(knowledge: Knowledge, role: str, span: tuple[int, int]) -> Derivation | None:
    """Return the derivation of the task's own words at a span of its text."""
    for source in knowledge.sources.of_task():
        start, end = span
        return Derivation(
            role=role,
            value=source.text[start:end],
            rule=f"named-in-{TASK}",
            node=source.node,
            start=source.offset + start,
            end=source.offset + end,
        )
    return None


def task_text(knowledge: Knowledge) -> str:
    """Return the principal's words, `""` where they are not trusted."""
    return next((source.text for source in knowledge.sources.of_task()), "")


def arguments_named(
    knowledge: Knowledge, types: tuple[tuple[str, str], ...], arguments: str
) -> tuple[Derivation, ...] | None:
    """Return where the task names each argument of a reading call, None where it does not name one of them.

    An argument that the agent chose may leave out whatever is in its way: such an answer enumerates nothing.
    """
    kinds = dict(types)
    found: list[Derivation] = []
    for leaf in leaves_of(arguments, whole=True) or ():
        premise = named_in_task(knowledge, leaf.field, kinds.get(leaf.field, "name"), leaf.text)
        if premise is None:
            return None
        found.append(premise)
    return tuple(found)
