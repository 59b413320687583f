"""A request that a lens recognises is vouched for as a tool's call is: by what steers it, and by what asks for it."""

import json
from collections.abc import Iterator

from interlock.model.effects import Effect
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.derivations.names import LENS_ACTION
from interlock.policy.lenses.recognising import recognise
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.calling import characterise_call
from interlock.policy.tools.choosing import derive_call
from interlock.policy.tools.roles import READ, ToolRole, type_of

WHOLE_PARTS = ("body", "params", "variables")
"""Parts of a request that may be empty as a whole."""


def derive_action(policy: Policy, knowledge: Knowledge, effect: Effect) -> Derivation | None:
    """Return a derivation of the URL of a request from what steers its action, None where something is missing.

    Holds: what a lens says of a request never vouches for its host.
    """
    request = effect.request
    recognised = recognise(policy.lenses, request) if request is not None else None
    if recognised is None or recognised[1].unread or recognised[0] != effect.action:
        return None
    call, _action = recognised
    role = policy.tools.find(call.tool)
    if role is None or _clears(role, call):
        return None
    found, missing = derive_call(policy, knowledge, characterise_call(policy, knowledge, call, effect.id))
    if missing or not (found or role.asks or role.effect == READ):
        return None
    url = next(value for value in effect.steering if value.role == "url")
    return Derivation(
        role=url.role,
        value=url.text,
        rule=LENS_ACTION,
        node=knowledge.task_node,
        start=0,
        end=0,
        premises=found,
    )


def _clears(role: ToolRole, call: ToolCall) -> bool:
    """Say whether a value is empty that is not declared as carried: it may clear what a service holds."""
    carried = tuple((name, "text") for name in role.carries)
    return any(not type_of(carried, name) for name in _empty(json.loads(call.arguments), ""))


def _empty(value: object, at: str) -> Iterator[str]:
    if value is None or (value in ({}, []) and at not in WHOLE_PARTS):
        yield at
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _empty(inner, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _empty(inner, f"{at}[]")
