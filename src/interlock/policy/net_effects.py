"""Requests become effects: what they do, where they go, what they carry, and what is odd about them.

What a request carries is judged by value where it could be read (its URL, its fields, a body of text): the level of the
sensitive values that stand in it. Where it could not (a body that is no text, too long, or that streams, and opaque
bytes) anything that was read may be in it, so it carries the level of the trajectory's label.
Source: KAIROS, the blocking request and its carried data; the levels, ours.
"""

import re

from interlock.model.effects import Channel, Effect, Facet, Reach, Value
from interlock.model.labels import Confidentiality
from interlock.model.requests import Credential, NetMessage, NetRequest, PushKind, RefUpdate
from interlock.policy.declaration import Policy
from interlock.policy.net_derivation import (
    CONNECT,
    HOST_ROLE,
    MESSAGE,
    MODEL,
    READ,
    STREAM,
    URL_ROLE,
    WRITE,
    host_text,
    is_named,
    operation_of,
    signs,
    url_text,
)
from interlock.policy.network import method_of
from interlock.policy.provenance import Knowledge

FOREIGN = "foreign-credential"
RAW_ADDRESS = "raw-address"
PLAIN_CREDENTIAL = "plain-http-credential"
REMOTE_TOOL = "remote-tool"
REWRITES_HISTORY = "rewrites-history"
FACETS = (FOREIGN, RAW_ADDRESS, PLAIN_CREDENTIAL, REMOTE_TOOL, REWRITES_HISTORY)
"""What takes provenance away from a request: nobody but an oracle can release it then."""

_REMOTE_REASON = "it has the model's provider itself connect to a place that the request names"
_DROPPING = frozenset({PushKind.FORCED, PushKind.DELETE, PushKind.UNKNOWN})
_URL_ROLES = frozenset({WRITE, STREAM})


def characterise_request(policy: Policy, knowledge: Knowledge, request: NetRequest, effect_id: str) -> Effect:
    """Return the effect that a request is."""
    operation = operation_of(policy, request)
    clearance = _clearance(policy, request, operation)
    action = None
    if policy.lenses and operation in (READ, WRITE):
        from interlock.policy.lenses.recognising import recognise

        recognised = recognise(policy.lenses, request)
        action = recognised[0] if recognised is not None else None
    steering = [Value(role=HOST_ROLE, text=host_text(request, with_port=operation == CONNECT))]
    if operation in _URL_ROLES:
        steering.append(Value(role=URL_ROLE, text=url_text(request)))
    return Effect(
        id=effect_id,
        channel=Channel.NET,
        operation=operation,
        object=request.url,
        reach=Reach.PARKABLE if operation == WRITE and policy.network.parks(request) else Reach.BLOCKING,
        steering=tuple(steering),
        carried=_carried(knowledge, request, operation, clearance),
        clearance=clearance,
        facets=tuple(_facets(policy, knowledge, request, operation)),
        request=request,
        action=action,
    )


def characterise_message(
    policy: Policy, knowledge: Knowledge, stream: Effect, message: NetMessage, effect_id: str
) -> Effect:
    """Return the effect that a part of an open stream is.

    Takes: `stream`, the effect that opened it. What is odd about it was decided with it; what the part carries, and
    where it would have a model's provider connect to, is not.
    """
    facets: tuple[Facet, ...] = ()
    if stream.operation == MODEL and message.text:
        from interlock.model.inference import leads_out

        if leads_out(message.text):
            facets = (Facet(kind=REMOTE_TOOL, reason=_REMOTE_REASON),)
    carried = knowledge.unknown_level if message.size_bytes or message.text else Confidentiality.PUBLIC
    if message.text is not None:
        carried = max(carried, _level_of(knowledge, stream.clearance, [message.text]))
        carried = max(carried, _trail_level(knowledge, stream.clearance, stream.request, message))
    elif message.size_bytes:
        carried = max(carried, knowledge.label.confidentiality)
    return Effect(
        id=effect_id,
        channel=Channel.NET,
        operation=MESSAGE,
        object=stream.object,
        reach=Reach.BLOCKING,
        steering=stream.steering,
        carried=carried,
        clearance=stream.clearance,
        facets=facets,
        request=stream.request,
        message=message,
    )


def _carried(
    knowledge: Knowledge, request: NetRequest, operation: str, clearance: Confidentiality
) -> Confidentiality:
    label = max(knowledge.label.confidentiality, knowledge.unknown_level)
    if operation == CONNECT:
        return label
    viewed = bool(request.views) and request.views_whole
    unread = request.body_text is None and request.body_size_bytes != 0 and not viewed
    level = label if unread else knowledge.unknown_level
    if not knowledge.sensitive:
        return level
    return max(
        level,
        _level_of(knowledge, clearance, [readable(request), *request.views]),
        _trail_level(knowledge, clearance, request, None),
    )


def _level_of(knowledge: Knowledge, clearance: Confidentiality, texts: list[str]) -> Confidentiality:
    # What the destination may hold in any case is looked at plainly: a call of the model repeats the conversation.
    plainly = clearance >= knowledge.sensitive.highest
    return knowledge.sensitive.level_in_parts(texts, plainly=plainly)


def _trail_level(
    knowledge: Knowledge, clearance: Confidentiality, request: NetRequest | None, message: NetMessage | None
) -> Confidentiality:
    if request is None or not knowledge.sensitive.trails or clearance >= knowledge.sensitive.highest:
        return Confidentiality.PUBLIC
    return knowledge.sensitive.trail_level(destination_of(request.host), pieces_of(request, message))


def destination_of(host: str) -> str:
    """Return whose a host is, as far as its name tells: its last two labels, or the address."""
    return host if is_literal(host) else ".".join(host.split(".")[-2:])


def pieces_of(request: NetRequest, message: NetMessage | None) -> list[tuple[str, str]]:
    """Return the parts of a request, or of a message, in which a longer value may leave bit by bit."""
    from urllib.parse import parse_qsl, unquote

    if message is not None:
        return [("message", message.text or "")]
    below = request.host.rpartition("." + destination_of(request.host))[0]
    made = [("host", below.replace(".", "")), ("path", unquote(request.path).rpartition("/")[2])]
    made += [(f"query {name}", value) for name, value in parse_qsl(request.query)[:8]]
    made += [(f"header {name}", value) for name, value in request.headers[:64]]
    return [*made, ("body", request.body_text or "")]


def readable(request: NetRequest) -> str:
    """Return all of a request's text, each part as it stands; encodings are undone where it is searched."""
    parts = [request.path, request.query, re.sub(r"[/?#]", " ", request.path)]
    parts += [request.host, request.host.replace(".", " "), request.host.replace(".", "")]
    parts += [value for _, value in request.headers]
    if request.body_text:
        parts.append(request.body_text)
    return "\n".join(parts)


def _clearance(policy: Policy, request: NetRequest, operation: str) -> Confidentiality:
    """Return what a destination may be given: the highest of what the operator's declarations give it."""
    network = policy.network
    # A provider sees what the agent sees; where the operator published a port, the far side is the operator's own, and
    # an ssh-agent gets a digest and shows it to nobody.
    if operation == MODEL or network.published(request) is not None or signs(policy, request):
        return Confidentiality.CRITICAL
    level = policy.clearance_of(request.host) or Confidentiality.PUBLIC
    if operation == CONNECT:
        route = network.opaque_route(request.host, request.port)
        return max(level, route.clearance) if route else level
    rule = network.rule_for(request.host, request.port, method_of(request), request.path)
    return max(level, rule.clearance) if rule else level


def _facets(policy: Policy, knowledge: Knowledge, request: NetRequest, operation: str) -> list[Facet]:
    found: list[Facet] = []
    if request.credential is Credential.FOREIGN:
        reason = "it carries another account's key than the one that belongs to this host"
        found.append(Facet(kind=FOREIGN, reason=reason))
    if is_literal(request.host) and not is_named(policy, knowledge, request):
        found.append(Facet(kind=RAW_ADDRESS, reason="it goes to an address that nobody named"))
    if (
        request.credential is not Credential.NONE
        and request.scheme in ("http", "ws")
        and policy.network.published(request) is None
        and not (request.credential is Credential.BOUND and policy.network.bares(request))
    ):
        found.append(
            Facet(kind=PLAIN_CREDENTIAL, reason="it carries a key over a connection that is not encrypted")
        )
    dropped = [one for one in request.pushes if one.kind in _DROPPING]
    if dropped:
        found.append(Facet(kind=REWRITES_HISTORY, reason=_pushed(dropped[0])))
    if operation == MODEL:
        from interlock.policy.models import remote_tool

        if remote_tool(request):
            found.append(Facet(kind=REMOTE_TOOL, reason=_REMOTE_REASON))
    return found


def _pushed(update: RefUpdate) -> str:
    ref = (update.ref.removeprefix("refs/heads/") or "a reference")[:80]
    if update.kind is PushKind.DELETE:
        return f"it deletes `{ref}` on the server"
    if update.kind is PushKind.FORCED:
        return (
            f"it drops commits from `{ref}` on the server: {update.old[:12]} is no part of {update.new[:12]}"
        )
    if not update.old:
        return "it cannot be read which references it changes on the server"
    return f"it may drop commits from `{ref}` on the server: nothing shows that {update.old[:12]} stays in its history"


def is_literal(host: str) -> bool:
    """Say whether a canonical host is an IP literal."""
    return ":" in host or host.rpartition(".")[2].isdigit()
