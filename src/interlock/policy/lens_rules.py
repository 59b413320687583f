"""Whether a policy may refuse a tool call by a rule or by the operator's role, whatever is declared of the tool."""

import json
from functools import lru_cache
from typing import Any

from interlock.policy.declaration import Policy
from interlock.policy.presets import TEXTS
from interlock.policy.vocabulary import TOOL_ACTIONS


def may_forbid_calls(policy: Policy) -> bool:
    """Say whether a call of a tool that is not declared may be refused outright.

    Holds: errs towards yes; the rules of a preset, which are about files and hosts, do not count.
    """
    if policy.operator.tools is not None or policy.operator.operations is not None:
        return True
    return _forbids(policy.cedar, policy.preset)


@lru_cache(maxsize=8)
def _forbids(cedar: str, preset: str) -> bool:
    if "forbid" not in cedar:
        return False
    import cedarpy

    rules: dict[str, Any] = json.loads(cedarpy.policies_to_json_str(cedar))["staticPolicies"]
    own = TEXTS.get(preset, "")
    for rule in rules.values():
        name = rule.get("annotations", {}).get("id") or ""
        of_preset = f'@id("{name}")' in own
        if rule["effect"] == "forbid" and not of_preset and _meets_a_tool(rule["action"]):
            return True
    return False


def _meets_a_tool(scope: dict[str, Any]) -> bool:
    """Say whether the scope of a rule may hold a call of a tool: `==` and `in` name their actions."""
    named = [scope["entity"]] if "entity" in scope else scope.get("entities")
    if not named:
        return True
    return any(entity.get("id") in TOOL_ACTIONS for entity in named)
