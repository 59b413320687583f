"""A request to the gateway, checked: whose it is, and for which upstream. What is not for it is told so.

Holds: a page in a browser can reach the loopback too, under a name of its own (DNS rebinding) or from its own origin;
neither is taken.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import replace
from urllib.parse import urlsplit

from interlock.boundary.net.settings import Place
from interlock.boundary.net.sides import RawHeaders, RequestHead
from interlock.gateway.upstreams import ANTHROPIC, GEMINI, RESERVED, Upstream, Upstreams
from interlock.model.records import dataclass

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SESSION_FIELD = b"x-interlock-session"
_TOKEN_FIELD = b"x-interlock-token"
_OURS = frozenset((_SESSION_FIELD, _TOKEN_FIELD))
_KEY_FIELDS = (b"x-api-key", b"x-goog-api-key", b"api-key", b"authorization")
_KEY_DIGITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Who may come in.

    Takes: `hosts`, names and literals that may stand in the host field; `token`, what each request has to show, `""`
    for nothing; `placeholders`, by upstream, what stands for the gateway's own key where it has one.
    """

    hosts: frozenset[str]
    token: str
    placeholders: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A request that is not taken."""

    status: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A request that goes on. Takes: `session`, whose run it is of; `head` and `place`, as the upstream gets it."""

    session: str
    upstream: Upstream
    head: RequestHead
    place: Place


def read(head: RequestHead, upstreams: Upstreams, door: Door) -> Taken | Turned:
    """Check a request's head, and write it anew for its upstream."""
    if head.elsewhere or head.authority_host not in door.hosts:
        return Turned(status=421, detail="the host field names another host than this gateway")
    origin = _value(head.headers, b"origin")
    if origin and not _own_origin(origin, door.hosts):
        return Turned(status=403, detail="it comes from a page of another origin")
    key = _key(head)
    if door.token:
        shown = _value(head.headers, _TOKEN_FIELD) or key
        if not hmac.compare_digest(shown.encode(), door.token.encode()):
            return Turned(status=401, detail="the gateway's token is missing or another one")
    path, _, query = head.target.partition("?")
    session = _value(head.headers, _SESSION_FIELD)
    first, _, rest = path.removeprefix("/").partition("/")
    prefixed = first == RESERVED
    if prefixed:
        session, _, rest = rest.partition("/")
        path = f"/{rest}"
    if (session or prefixed) and not _SESSION.fullmatch(session):
        return Turned(
            status=400, detail="a session's name is of letters, digits, dots, dashes and underscores"
        )
    found = upstreams.find(path, head.headers)
    if found is None:
        return Turned(status=404, detail="no upstream of this gateway answers such a path")
    upstream, path = found
    if not session:
        digits = hashlib.sha256(key.encode()).hexdigest()[:_KEY_DIGITS]
        session = f"key-{digits}" if key else "default"
    headers = tuple(one for one in head.headers if one[0] not in _OURS and one[0] != b"origin")
    placeholder = door.placeholders.get(upstream.name)
    if placeholder is not None:
        headers, query = _with_key(headers, upstream, placeholder), _without_key(query)
    elif door.token and key and hmac.compare_digest(key.encode(), door.token.encode()):
        return Turned(
            status=401, detail="the upstream's own key is missing: the agent sent the gateway's token alone"
        )
    sent = replace(
        head,
        scheme="https" if upstream.tls else "http",
        authority_host=upstream.host,
        port=upstream.port,
        target=upstream.path + path + (f"?{query}" if query else ""),
        headers=headers,
    )
    place = Place(host=upstream.host, port=upstream.port, tls=upstream.tls, published=not upstream.tls)
    return Taken(session=session, upstream=upstream, head=sent, place=place)


def _own_origin(origin: str, hosts: frozenset[str]) -> bool:
    try:
        return (urlsplit(origin).hostname or "") in hosts
    except ValueError:
        return False


def _value(headers: RawHeaders, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def _key(head: RequestHead) -> str:
    """Return the key that an agent shows, `""` for none."""
    for name in _KEY_FIELDS:
        if value := _value(head.headers, name):
            scheme, _, rest = value.partition(" ")
            return rest.strip() if name == b"authorization" and scheme.lower() == "bearer" else value
    for part in head.target.partition("?")[2].split("&"):
        name_, _, shown = part.partition("=")
        if name_ == "key":
            return shown
    return ""


def _with_key(headers: RawHeaders, upstream: Upstream, key: str) -> RawHeaders:
    rest = tuple(one for one in headers if one[0] not in _KEY_FIELDS)
    if upstream.kind == ANTHROPIC:
        return (*rest, (b"x-api-key", key.encode()))
    if upstream.kind == GEMINI:
        return (*rest, (b"x-goog-api-key", key.encode()))
    return (*rest, (b"authorization", b"Bearer " + key.encode()))


def _without_key(query: str) -> str:
    return "&".join(part for part in query.split("&") if part.partition("=")[0] != "key")
