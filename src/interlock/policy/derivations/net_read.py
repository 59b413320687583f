"""The second reading of a request: what steers it, and what the policy itself says of it."""

from interlock.model.records import changed
from interlock.model.requests import NetRequest
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.derivations import names
from interlock.policy.derivations.facts import Facts, Fault, json_leaves
from interlock.policy.derivations.leaves_read import field_of, kinds_of, type_at

_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443, "ssh-agent": 0}


def net_roles(_policy: Policy, request: NetRequest) -> dict[str, tuple[str, ...]]:
    """Return the roles of a request with the writings of their values; of an opaque one with its port."""
    host = f"[{request.host}]" if ":" in request.host else request.host
    ported = f"{host}:{request.port}"
    if request.method == "CONNECT" or request.protocol == "opaque" or request.scheme == "tcp":
        return {"host": (ported,)}
    written = host if _PORTS.get(request.scheme) == request.port else ported
    return {"host": (written,), "url": (f"{request.scheme}://{written}{request.path}",)}


def by_policy(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """The policy publishes the port, names the provider of the model, the host, or the namespace of a signature."""
    request = facts.proposal
    if not isinstance(request, NetRequest) or derivation.form or derivation.pointer:
        return Fault.RULE
    if derivation.premises:
        return Fault.PREMISE
    if derivation.node != facts.task_node:
        return Fault.NODE
    if (derivation.start, derivation.end) != (0, 0):
        return Fault.SPAN
    network = facts.policy.network
    if derivation.rule == names.PUBLISHED:
        holds = network.published(request) is not None
    elif derivation.rule == names.MODEL_PROVIDER:
        holds = kind == "host" and network.is_model_call(request)
    else:
        named = network.names(request.host, request.port)
        opaque = network.opaque_route(request.host, request.port) is not None
        signed = request.scheme == "ssh-agent" and request.path.split("/")[1] in facts.policy.sign
        holds = named or opaque or signed
    return None if holds else Fault.RULE


def lens_action(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """A lens of the policy recognises the request, and all that steers its action has a derivation that holds."""
    request = facts.proposal
    if not isinstance(request, NetRequest) or kind != "url" or derivation.form or derivation.pointer:
        return Fault.RULE
    if derivation.node != facts.task_node:
        return Fault.NODE
    if (derivation.start, derivation.end) != (0, 0):
        return Fault.SPAN
    from interlock.policy.lenses.recognising import recognise

    recognised = recognise(facts.policy.lenses, request)
    if recognised is None or recognised[1].unread:
        return Fault.RULE
    call = recognised[0]
    inner = changed(facts, proposal=call)
    if not _steering(facts.policy, call) <= {(one.role, one.value) for one in derivation.premises}:
        return Fault.PREMISE
    for one in derivation.premises:
        kinds = kinds_of(facts.policy, call, one.role, one.value)
        if not kinds or inner.recheck(one, "|".join(kinds)) is not None:
            return Fault.PREMISE
    return None


def _steering(policy: Policy, call: ToolCall) -> frozenset[tuple[str, str]]:
    tool, leaves = policy.tools.find(call.name), json_leaves(call.arguments)
    if tool is None or leaves is None:
        return frozenset((("tool", call.name),))
    if tool.effect == "read":
        return frozenset()
    declared, carried = (*tool.steers, *tool.acts), tuple((name, "text") for name in tool.carries)
    fields = ((field_of(pointer, call.arguments), text) for pointer, text in leaves)
    return frozenset(
        (field, text) for field, text in fields if type_at(declared, field) or not type_at(carried, field)
    )
