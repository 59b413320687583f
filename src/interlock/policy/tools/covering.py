"""The task asks for all of something: then every element of that enumeration is what it means."""

import re
from functools import lru_cache

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.knowing import Returned
from interlock.policy.tools.leaves import leaves_of
from interlock.policy.tools.named import named_in_task, task_text, word_in_task
from interlock.policy.tools.roles import DIRECTORY, EGRESS, OWN, READ, ToolRole
from interlock.policy.tools.selecting import at_leaf, holding
from interlock.policy.tools.values import same_form

COVERED = "whole-enumeration"
ALL_ROLE = "all"
_ALL = r"\b(?:all|each|every)\b(?:\s+(?:of|the|my|our|their|its|these|those|other)\b){0,3}\s+(?:\w+\s+)?"
# `all users who are new` is a part of them, and which part the agent would say.
_PART = re.compile(
    r"\s+(?:who|that|which|whose|with|without|except|but|apart|if|where|when|not|older|newer|other)\b", re.I
)
_NOT = re.compile(r"\b(?:not|n't|never|n’t)\s+(?:\w+\s+)?$", re.I)


def cover(policy: Policy, knowledge: Knowledge, value: Value, kind: str) -> Derivation | None:
    """Return why the task means every element of an answer, and so this one."""
    text = task_text(knowledge)
    if not text:
        return None
    for returned in knowledge.returned:
        tool = policy.tools.find(returned.tool)
        if tool is None or tool.effect not in (READ, EGRESS) or tool.output.echo or not tool.output.covers:
            continue
        span = find_cover(text, tool.output.covers)
        word = word_in_task(knowledge, ALL_ROLE, span) if span is not None else None
        limits = _limits(policy, knowledge, tool, returned) if word is not None else None
        if word is None or limits is None:
            continue
        for leaf, _ in holding(tool.output, returned, kind, value.text):
            return at_leaf(value, COVERED, returned, leaf, (word, *limits))
    return None


def made_before(policy: Policy, knowledge: Knowledge, tool: ToolRole, role: str, value: str) -> bool:
    """Say whether a call of a tool was let through with the same value, or may have been: each of all means once."""
    wanted = same_form("name", value)
    return knowledge.passed_lost or any(
        leaf.field == role and same_form("name", leaf.text) == wanted
        for call in knowledge.passed
        if policy.tools.find(call.name) is tool
        for leaf in leaves_of(call.arguments, whole=True) or ()
    )


@lru_cache(maxsize=64)
def find_cover(text: str, nouns: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the span by which a text asks for all of something, None where it asks for a part or for none."""
    for noun in nouns:
        for found in re.finditer(rf"{_ALL}{re.escape(noun)}s?\b", text, re.IGNORECASE):
            if not _PART.match(text, found.end()) and not _NOT.search(text[: found.start()]):
                return found.span()
    return None


def _limits(
    policy: Policy, knowledge: Knowledge, tool: ToolRole, returned: Returned
) -> tuple[Derivation, ...] | None:
    """Return where the task names what the answer was limited to; None where the agent chose the limit.

    An argument that the task leaves open, one of a listing of which it names nothing, limits nothing.
    """
    found: list[Derivation] = []
    kinds = dict(tool.steers)
    for given in leaves_of(returned.arguments, whole=True) or ():
        kind = kinds.get(given.field, "name")
        premise = named_in_task(knowledge, given.field, kind, given.text)
        if premise is not None:
            found.append(premise)
        elif not _left_open(policy, knowledge, given.text, kind):
            return None
    return tuple(found)


def _left_open(policy: Policy, knowledge: Knowledge, text: str, kind: str) -> bool:
    for returned in knowledge.returned:
        tool = policy.tools.find(returned.tool)
        if tool is None or tool.output.trust not in (OWN, DIRECTORY) or tool.output.echo:
            continue
        if leaves_of(returned.arguments, whole=True):
            continue
        for leaf, _ in holding(tool.output, returned, kind, text):
            listed = (each.text for each in returned.leaves if each.field == leaf.field)
            return all(named_in_task(knowledge, "", kind, each) is None for each in listed)
    return False
