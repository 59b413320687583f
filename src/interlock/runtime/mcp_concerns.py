"""Which messages at the proxy are decided as MCP: of which hosts, of which kind, and which methods that are no tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock import policy as rules
from interlock.boundary.mcp.conversing import ANSWERS, READS, is_method, name_of
from interlock.boundary.mcp.messages import Message, Notification, Request
from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision
from interlock.policy.lens import Audit
from interlock.policy.lens_rules import may_forbid_calls

if TYPE_CHECKING:
    from interlock.monitor import State
    from interlock.policy import Policy
    from interlock.runtime.mcp_lanes import Lanes

_KNOWN = frozenset(name_of(method) for method in (*READS, *ANSWERS))


def concerns(policy: Policy, default: Audit, host: str, name: str) -> bool:
    """Say whether calls of a host's tools are decided.

    Takes: `default`, what is where the policy does not say; `name`, `""` for any of them.
    """
    audit = policy.lens.audit if policy.lens.audit is not None else default
    if audit is Audit.NONE:
        return False
    if audit is Audit.ALL or may_forbid_calls(policy) or any(one.name == host for one in policy.mcp):
        return True
    if name and policy.tools.find(f"{host}/{name}") is not None:
        return True
    return any(one.name.startswith(f"{host}/") for one in policy.tools.tools)


def is_mcp(policy: Policy, request: NetRequest, message: Message, lanes: Lanes) -> bool:
    """Say whether a message of JSON-RPC is one of MCP's: other services speak that too."""
    if isinstance(message, Request | Notification) and is_method(message.method):
        return True
    named = any(one.name == request.host for one in policy.mcp) or any(
        one.name.startswith(f"{request.host}/") for one in policy.tools.tools
    )
    return named or lanes.is_spoken(request) or any(name.startswith("mcp-") for name, _ in request.headers)


def decides_method(state: State, call: ToolCall) -> bool:
    """Say whether a method that is no tool is put to the core: a known one passes, unless the policy says otherwise."""
    policy, knowledge = state.policy, state.knowledge
    if policy is None or call.tool not in _KNOWN or policy.tools.find(call.name) is not None:
        return True
    if knowledge is None or not may_forbid_calls(policy):
        return False
    effect = rules.characterise_call(policy, knowledge, call, "e0")
    (verdict,) = rules.decide(policy, knowledge, (effect,))
    return verdict.decision is Decision.REFUSE
