"""The task calls somebody by a first name, and of all whom the user wrote to, one alone is called so.

Whom the user wrote to, the policy says: fields of records that a service marks as the user's own, as mail that they
sent. Who only wrote to the user, as anybody may, is none of them.
"""

import re
from collections.abc import Iterator

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.knowing import Returned
from interlock.policy.tools.leaves import Leaf, is_field, plain_field, record_of
from interlock.policy.tools.named import arguments_named, task_text, word_in_task
from interlock.policy.tools.roles import EGRESS, READ, Correspondents, ToolRole
from interlock.policy.tools.selecting import at_leaf, lost_any
from interlock.policy.tools.values import same_form

FIRST_NAME = "first-name"
WORD_ROLE = "first name"
EMAIL = "email"
LEAST = 3
_PART = re.compile(r"[A-Za-z]+")


def select_by_first_name(policy: Policy, knowledge: Knowledge, value: Value, kind: str) -> Derivation | None:
    """Return where the task calls by a first name whom an address belongs to.

    Holds: of all whom the user wrote to, as far as the answers tell, nobody else's address begins so; the agent did not
    choose what was asked for.
    """
    if EMAIL not in kind.split("|"):
        return None
    tools = [tool for tool in policy.tools.tools if _tells(tool)]
    if not tools or any(lost_any(policy, knowledge, tool) for tool in tools):
        return None
    span = find_first_name(task_text(knowledge), value.text)
    word = word_in_task(knowledge, WORD_ROLE, span) if span is not None else None
    if word is None:
        return None
    wanted = same_form(EMAIL, value.text)
    called = first_name(value.text)
    known = list(_correspondents(policy, knowledge))
    if {same_form(EMAIL, leaf.text) for _, _, leaf in known if first_name(leaf.text) == called} != {wanted}:
        return None
    for tool, returned, leaf in known:
        if same_form(EMAIL, leaf.text) != wanted:
            continue
        limits = arguments_named(knowledge, tool.steers, returned.arguments)
        if limits is not None:
            return at_leaf(value, FIRST_NAME, returned, leaf, (word, *limits))
    return None


def first_name(address: str) -> str:
    """Return the first part of an address in small letters where it may be a name, else `""`."""
    found = _PART.match(address)
    if (
        found is None
        or len(found.group()) < LEAST
        or address[found.end() : found.end() + 1] not in tuple("._@")
    ):
        return ""
    return found.group().lower()


def find_first_name(text: str, address: str) -> tuple[int, int] | None:
    """Return where a text calls somebody by the first name in an address: within a sentence, behind a word in small
    letters; None where it gives somebody of that name another surname."""
    name = first_name(address)
    if not name or not text:
        return None
    rest = re.split("[._]", address.partition("@")[0].lower())[1:]
    called = name.capitalize()
    for each in re.finditer(rf"(?<!\w){called}(?!\w) (\w[\w-]*)", text):
        if each[1][0].isupper() and each[1].lower() not in rest:
            return None
    for each in re.finditer(rf"(?<![\w@./-]){called}(?![\w@-]|[./]\w)", text):
        if re.search(r"(?<![\w'’.@/-])[a-z][a-z'’-]*,? \Z", text[max(0, each.start() - 80) : each.start()]):
            return each.span()
    return None


def _tells(tool: ToolRole) -> bool:
    return tool.output.correspondents is not None and tool.effect in (READ, EGRESS) and not tool.output.echo


def _correspondents(policy: Policy, knowledge: Knowledge) -> Iterator[tuple[ToolRole, Returned, Leaf]]:
    for returned in knowledge.returned:
        tool = policy.tools.find(returned.tool)
        told = tool.output.correspondents if tool is not None and _tells(tool) else None
        if tool is None or told is None:
            continue
        for leaf in returned.leaves:
            if is_field(told.fields, leaf) and _own(told, returned, record_of(leaf)):
                yield tool, returned, leaf


def _own(told: Correspondents, returned: Returned, record: str) -> bool:
    """Say whether a record is marked as the user's own: each field of `where`, once, with that text."""
    here = [leaf for leaf in returned.leaves if record_of(leaf) == record]
    return all(
        [leaf.text for leaf in here if plain_field(leaf.field) == plain_field(name)] == [text]
        for name, text in told.where
    )
