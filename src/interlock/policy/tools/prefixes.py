"""The task says how a name begins, and one name alone does."""

import re
from collections.abc import Iterator

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.named import task_text, word_in_task
from interlock.policy.tools.roles import DIRECTORY, EGRESS, OWN, READ, ToolRole
from interlock.policy.tools.selecting import at_leaf, holding, lost_any, typed_leaves
from interlock.policy.tools.values import same_form

PREFIX = "prefix-selected"
PREFIX_ROLE = "prefix"
NAME = "name"
MIN_PREFIX = 3
_CUE = re.compile(
    r"\b(?:start(?:s|ing)?|begin(?:s|ning)?)\s+with\s+[\"'“‘`]?([^\W_][\w-]*)|\bprefix\s+[\"'“‘`]?([^\W_][\w-]*)",
    re.IGNORECASE,
)
_FIRST = re.compile(r"([^\W\d_]{3,})[ \t]+\S")


def select_by_prefix(policy: Policy, knowledge: Knowledge, value: Value, kind: str) -> Derivation | None:
    """Return where the task names the beginning of a name: after `starting with`, or as a person's first name.

    Holds: of all names that the answers of this tool list as the same field, no other begins so.
    """
    text = task_text(knowledge)
    if NAME not in kind.split("|") or not text:
        return None
    whole = [each for each in policy.tools.tools if _lists(each) and not lost_any(policy, knowledge, each)]
    for returned in knowledge.returned if whole else ():
        tool = policy.tools.find(returned.tool)
        if tool is None or all(tool is not each for each in whole):
            continue
        for leaf, _ in holding(tool.output, returned, NAME, value.text):
            for start, end in _beginnings(text, value.text):
                head = text[start:end].lower()
                listed = {name for name in _names(policy, knowledge, tool, kind) if _begins(name, head)}
                word = word_in_task(knowledge, PREFIX_ROLE, (start, end))
                if listed == {same_form(NAME, value.text)} and word is not None:
                    return at_leaf(value, PREFIX, returned, leaf, (word,))
    return None


def _lists(tool: ToolRole) -> bool:
    output = tool.output
    return tool.effect in (READ, EGRESS) and output.trust in (OWN, DIRECTORY) and not output.echo


def _names(policy: Policy, knowledge: Knowledge, tool: ToolRole, kind: str) -> Iterator[str]:
    for returned in knowledge.returned:
        if policy.tools.find(returned.tool) is tool:
            yield from (
                same_form(NAME, leaf.text)
                for leaf, type_ in typed_leaves(tool.output, returned, kind)
                if type_ == NAME
            )


def _begins(name: str, head: str) -> bool:
    return name.startswith(head)


def _beginnings(text: str, name: str) -> Iterator[tuple[int, int]]:
    for found in _CUE.finditer(text):
        group = 1 if found.group(1) else 2
        if len(found.group(group)) >= MIN_PREFIX and name.lower().startswith(found.group(group).lower()):
            yield found.span(group)
    first = _FIRST.match(name)
    if first is not None:
        for found in re.finditer(rf"(?<![\w.@-]){re.escape(first.group(1))}(?![\w@]|[.-]\w)", text):
            yield found.span()
