"""The second reading of a request: what steers it, and what the policy itself says of it."""

from interlock.model.requests import NetRequest
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.derivations import names
from interlock.policy.derivations.facts import Facts, Fault

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
