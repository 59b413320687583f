"""A tool call becomes an effect: what steers it, what it carries, who may hold that."""

from interlock.model.effects import Channel, Effect, Facet, Reach, Value
from interlock.model.labels import Confidentiality
from interlock.model.tools import ToolCall
from interlock.policy.declaration import Policy
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.leaves import Leaf, leaves_of
from interlock.policy.tools.roles import (
    EGRESS,
    OBJECT_PREFIX,
    OPERATION_PREFIX,
    READ,
    SEND,
    WRITE,
    ToolRole,
    type_of,
)
from interlock.policy.tools.values import acting

UNREADABLE = "unreadable-call"
TOOL_ROLE = "tool"


def characterise_call(policy: Policy, knowledge: Knowledge, call: ToolCall, effect_id: str) -> Effect:
    """Return the effect that a call is.

    Holds: total; a tool that the policy does not declare, and arguments that are no JSON object, are never vouched for.
    """
    tool = policy.tools.find(call.name)
    leaves = leaves_of(call.arguments, whole=True)
    carried = knowledge.level_in(call.arguments)
    if tool is None or leaves is None:
        facets: tuple[Facet, ...] = ()
        if leaves is None:
            facets = (Facet(kind=UNREADABLE, reason="its arguments cannot be read as a JSON object"),)
        return Effect(
            id=effect_id,
            channel=Channel.TOOL,
            operation=OPERATION_PREFIX + (tool.effect if tool else SEND),
            object=OBJECT_PREFIX + call.name,
            reach=Reach.BLOCKING,
            steering=(Value(role=TOOL_ROLE, text=call.name),),
            carried=carried,
            clearance=Confidentiality.PUBLIC,
            facets=facets,
            tool=call,
        )
    kind = effect_of(tool, leaves)
    steering = tuple(Value(role=role, text=text) for role, _, text in steering_of(tool, kind, leaves))
    # What a model announced the agent makes itself: it cannot be made later for it.
    parks = tool.parks and kind not in (READ, EGRESS) and not call.exchange
    return Effect(
        id=effect_id,
        channel=Channel.TOOL,
        operation=OPERATION_PREFIX + kind,
        object=OBJECT_PREFIX + call.name,
        reach=Reach.PARKABLE if parks else Reach.BLOCKING,
        steering=steering,
        carried=carried,
        clearance=_clearance(policy, tool, kind, steering),
        tool=call,
    )


def effect_of(tool: ToolRole, leaves: tuple[Leaf, ...]) -> str:
    """Return what kind of effect a call is: without anyone who would see it, a write."""
    if tool.internal_without and not any(
        leaf.field == name or leaf.field.startswith((f"{name}[", f"{name}."))
        for leaf in leaves
        for name in tool.internal_without
    ):
        return WRITE
    return tool.effect


def steering_of(tool: ToolRole, kind: str, leaves: tuple[Leaf, ...]) -> tuple[tuple[str, str, str], ...]:
    """Return what needs a derivation: role, type and text.

    Holds: an argument that is not declared steers; so does a link or an address in what a call carries to others.
    """
    found: list[tuple[str, str, str]] = []
    carries = tuple((name, "text") for name in tool.carries)
    for leaf in leaves:
        declared = type_of(tool.steers, leaf.field) or type_of(tool.acts, leaf.field)
        if declared:
            found.append((leaf.field, declared, leaf.text))
        elif not type_of(carries, leaf.field):
            found.append((leaf.field, "text", leaf.text))
        elif kind not in (READ, WRITE):
            found += [(leaf.field, each, text) for each, text in acting(leaf.text)]
    return tuple(dict.fromkeys(found))


def _clearance(policy: Policy, tool: ToolRole, kind: str, steering: tuple[Value, ...]) -> Confidentiality:
    if kind in (READ, WRITE):
        return Confidentiality.CRITICAL
    known = [policy.clearance_of(value.text) for value in steering]
    named = [level for level in known if level is not None]
    least = min(named) if named and len(named) == len(known) else Confidentiality.PUBLIC
    return max(least, tool.clearance)
