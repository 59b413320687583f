"""The second reading of a grant: the node is an oracle's answer that released the same before."""

from interlock.model.events import GrantAction
from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.derivations.facts import Facts, Fault, Proposal, json_leaves
from interlock.policy.derivations.net_read import net_roles


def granted(facts: Facts, derivation: Derivation, _kind: str) -> Fault | None:
    """An oracle released a request to the same host with the same value, or a call that all the same steers.

    That no grant was taken back since, the fold says.
    """
    if derivation.form or derivation.pointer:
        return Fault.RULE
    if derivation.premises:
        return Fault.PREMISE
    if facts.kind(derivation.node) != "oracle":
        return Fault.NODE
    if (derivation.start, derivation.end) != (0, 0):
        return Fault.SPAN
    released = facts.trail.released[derivation.node]
    given = [proposal for effect, proposal in facts.passed() if effect in released]
    return None if any(_same(facts, derivation, one) for one in given) else Fault.NODE


def _same(facts: Facts, derivation: Derivation, before: Proposal) -> bool:
    now = facts.proposal
    if isinstance(before, ToolCall) and isinstance(now, ToolCall):
        return before.name == now.name and _steers(facts, before) == _steers(facts, now)
    if not isinstance(before, NetRequest) or not isinstance(now, NetRequest):
        return False
    if before.host != now.host:
        return False
    if derivation.value in net_roles(facts.policy, before).get(derivation.role, ()):
        return True
    # The principal changed the folder of paths that a grant holds for.
    folders = [one.below for one in facts.trail.changed_grants if one.action is not GrantAction.REVOKE]
    same_origin = (before.scheme, before.port) == (now.scheme, now.port)
    return same_origin and any(
        now.path == at or now.path.startswith(at.removesuffix("/") + "/") for at in folders
    )


def _steers(facts: Facts, call: ToolCall) -> list[tuple[str, str]]:
    """Return the leaves of a call that are not declared as carried."""
    tool = facts.policy.tools.find(call.name)
    carried = tool.carries if tool is not None else ()
    leaves = json_leaves(call.arguments) or ()
    kept = [(at, text) for at, text in leaves if at.split("/")[1:2] and at.split("/")[1] not in carried]
    return sorted(kept)
