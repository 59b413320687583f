"""Derivations of what steers a request: the host, and for what changes something or streams, the URL.

The rules, each small enough to be checked again from the record alone:
- `published`: the operator shows this port to the run;
- `model-provider`: an inference call to a provider that the policy names or that is well known;
- `named-in-policy`: an entry of the policy's `network` fits, or `sign` names the namespace of a signature;
- `named-in-task`, `named-in-file`, `named-in-net`: the principal's words, or a file or a host that the policy
  trusts, name it;
- `lens-action`: a lens recognises the request as an action that the task asks for, and all that steers it is named;
- `granted`: an oracle released the same operation on the same value before.
A text that names a host vouches for reading there; for anything else it has to name the URL, or one above it, and for
what deletes the URL itself.
"""

import re
from functools import partial

from interlock.model.effects import Effect, Value
from interlock.model.requests import AGENT_SCHEME, NetRequest
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.derivations import names
from interlock.policy.grants import find_grant
from interlock.policy.naming import find_named, plain_labels
from interlock.policy.network import is_read, method_of
from interlock.policy.provenance import Knowledge

READ = "net.read"
WRITE = "net.write"
MODEL = "net.model"
STREAM = "net.stream"
MESSAGE = "net.message"
CONNECT = "net.connect"
HOST_ROLE = "host"
URL_ROLE = "url"
PUBLISHED = "published"
MODEL_PROVIDER = "model-provider"
NAMED_IN_POLICY = "named-in-policy"
NAMED_IN = "named-in-"
GRANTED = "granted"
DELETING = ("DELETE",)
"""Methods that take away what stands at a URL: whoever names the URL above it does not speak of that."""


def operation_of(policy: Policy, request: NetRequest) -> str:
    """Return what a request is to the rules."""
    if request.protocol == "opaque" or request.scheme == "tcp" or request.method == "CONNECT":
        return CONNECT
    if policy.network.is_model_call(request):
        return MODEL
    if request.scheme in ("ws", "wss") or request.body_size_bytes < 0:
        return STREAM
    return READ if is_read(request) else WRITE


def host_text(request: NetRequest, *, with_port: bool = False) -> str:
    """Return a request's host as its role `host` has it: with the port where it is not the scheme's own."""
    host = f"[{request.host}]" if ":" in request.host else request.host
    default = {"http": 80, "ws": 80, "https": 443, "wss": 443, AGENT_SCHEME: 0}.get(request.scheme)
    return f"{host}:{request.port}" if with_port or request.port != default else host


def url_text(request: NetRequest) -> str:
    """Return a request's URL as its role `url` has it: without the query."""
    return f"{request.scheme}://{host_text(request)}{request.path}"


def derive_net(policy: Policy, knowledge: Knowledge, effect: Effect, value: Value) -> Derivation | None:
    """Return a derivation of one steering value of a net effect, None where there is none.

    Holds: deterministic; an effect with a facet has none.
    """
    request = effect.request
    if request is None or effect.facets:
        return None
    operation = effect.operation if effect.message is None else operation_of(policy, request)
    expected = (
        host_text(request, with_port=operation == CONNECT) if value.role == HOST_ROLE else url_text(request)
    )
    if not request.host or value.text != expected:
        return None
    rule = _by_policy(policy, request, operation, value.role)
    if rule:
        return Derivation(
            role=value.role, value=value.text, rule=rule, node=knowledge.task_node, start=0, end=0
        )
    if operation != CONNECT and policy.network.declared:
        found = _by_text(knowledge, value, whole=request.method.upper() in DELETING)
        if found is None and effect.action is not None and value.role == URL_ROLE:
            from interlock.policy.lenses.vouching import derive_action

            found = derive_action(policy, knowledge, effect)
        if found is not None:
            return found
    grant = find_grant(knowledge.grants, effect, value.role, value.text, operation)
    if grant is None:
        return None
    return Derivation(role=value.role, value=value.text, rule=GRANTED, node=grant.node, start=0, end=0)


def _by_policy(policy: Policy, request: NetRequest, operation: str, role: str) -> str:
    """Return the rule by which the policy itself vouches for a role's value, `""` for none."""
    if signs(policy, request):
        return NAMED_IN_POLICY
    network = policy.network
    if network.published(request) is not None:
        return PUBLISHED
    if operation == MODEL:
        return MODEL_PROVIDER if role == HOST_ROLE else ""
    if operation == CONNECT:
        return NAMED_IN_POLICY if network.opaque_route(request.host, request.port) else ""
    if operation != READ and role == HOST_ROLE:
        return NAMED_IN_POLICY if network.names(request.host, request.port) else ""
    rule = network.rule_for(request.host, request.port, method_of(request), request.path)
    return NAMED_IN_POLICY if rule is not None else ""


def signs(policy: Policy, request: NetRequest) -> bool:
    """Say whether a request is for a signature in a namespace that the operator names under `sign`."""
    return request.scheme == AGENT_SCHEME and request.path.split("/")[1] in policy.sign


def _by_text(knowledge: Knowledge, value: Value, *, whole: bool = False) -> Derivation | None:
    find = partial(find_named, role=value.role, value=value.text, whole=whole)
    labels = ".".join(plain_labels(value.role, value.text))
    found = knowledge.sources.first(find, labels, value.role, value.text, "whole" if whole else "")
    if found is None:
        return None
    return Derivation(
        role=value.role,
        value=value.text,
        rule=NAMED_IN + found.item.kind,
        node=found.item.node,
        start=found.item.offset + found.start,
        end=found.item.offset + found.end,
        pointer=found.item.pointer,
        form=_form(value, found.item.text[found.start : found.end]),
    )


def _form(value: Value, span: str) -> str:
    """Return the form by which a word that names a host or a URL does so."""
    before, slashes, rest = span.partition("://")
    if value.role == HOST_ROLE:
        return names.URL_HOST if slashes and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", before) else names.HOST
    path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")[2]
    return names.URL if path == value.text.partition("://")[2].partition("/")[2] else names.URL_PREFIX


def is_named(policy: Policy, knowledge: Knowledge, request: NetRequest) -> bool:
    """Say whether the operator or a trusted text names a request's host, for whatever purpose."""
    network = policy.network
    return (
        network.published(request) is not None
        or network.names(request.host, request.port)
        or network.is_model_host(request.host, request.port)
        or network.opaque_route(request.host, request.port) is not None
        or _by_text(knowledge, Value(role=HOST_ROLE, text=host_text(request))) is not None
    )
