"""The operator leaves it to the agent which of the user's own things a call is about, where the task asks for that kind
of call: which item leaves the cart, which of the user's own repositories gets a star.

Whatever steers the agent can then choose among these things, and name no other.
"""

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.asking import find_ask
from interlock.policy.tools.leaves import declared_type
from interlock.policy.tools.named import task_text, word_in_task
from interlock.policy.tools.roles import DIRECTORY, EGRESS, READ, ToolRole, type_of
from interlock.policy.tools.selecting import at_leaf
from interlock.policy.tools.values import same_form

CHOSEN = "own-choice"
ASK_ROLE = "asks"


def choose_own(
    policy: Policy, knowledge: Knowledge, tool: ToolRole, value: Value, kind: str
) -> Derivation | None:
    """Return why a value is one of the user's own things among which the agent may choose for this call.

    Holds: only a field that the policy declares as of this type, never one of a listing that others fill.
    """
    if not type_of(tuple((name, name) for name in tool.chooses), value.role):
        return None
    premises: tuple[Derivation, ...] = ()
    if tool.asks:
        span = find_ask(task_text(knowledge), tool.asks)
        word = word_in_task(knowledge, ASK_ROLE, span) if span is not None else None
        if word is None:
            return None
        premises = (word,)
    for returned in knowledge.returned:
        lister = policy.tools.find(returned.tool)
        if lister is None or lister.effect not in (READ, EGRESS):
            continue
        if lister.output.trust == DIRECTORY or lister.output.echo:
            continue
        for leaf in returned.leaves:
            type_ = declared_type(lister.output.fields, leaf)
            form = same_form(type_, value.text) if type_ and type_ in kind.split("|") else ""
            if form and form == same_form(type_, leaf.text):
                return at_leaf(value, CHOSEN, returned, leaf, premises)
    return None
