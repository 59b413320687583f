"""Whose key a request carries, and the real value in place of a secret's placeholder.

A key is known again by the part of it that names its account, as far as it can be told: the access key id of a signed
request, issuer and subject of a token that says them, the password of basic credentials, else the whole value. Nothing
of a key is kept but its digest.
"""

import base64
import binascii
import dataclasses
import functools
import hashlib
import json
import re
from urllib.parse import quote, unquote_to_bytes

from interlock.boundary.net.names import canonical_literal
from interlock.boundary.net.plan import BoundSecret, NetPlan, names_host
from interlock.boundary.net.sides import RawHeaders, RequestHead
from interlock.model.errors import InputError
from interlock.model.requests import Credential, Headers

_KEY_FIELDS = frozenset(
    (
        b"authorization",
        b"x-api-key",
        b"api-key",
        b"apikey",
        b"x-goog-api-key",
        b"private-token",
        b"job-token",
        b"deploy-token",
        b"x-auth-token",
        b"x-auth-key",
        b"x-access-token",
        b"x-vault-token",
        b"x-github-token",
        b"x-gitlab-token",
        b"x-figma-token",
        b"x-shopify-access-token",
        b"dd-api-key",
        b"dd-application-key",
        b"ocp-apim-subscription-key",
        b"x-rapidapi-key",
        b"x-subscription-token",
        b"circle-token",
        b"x-honeycomb-team",
    )
)
"""Fields whose value says whose request it is."""

_COOKIES = frozenset((b"cookie", b"cookie2", b"set-cookie", b"set-cookie2"))

_SECRET_FIELD = re.compile(
    rb"(?:^|[-_])(?:api-?key|access-?key|auth|authorization|token|secret|passw(?:or)?d|credentials?|session(?:-?id)?|"
    rb"signature|jwt|assertion)(?:[-_]|$)"
)
"""Other fields whose value is hidden from the ledger, by their names."""

_PLAIN_FIELDS = frozenset(
    (
        b"www-authenticate",
        b"proxy-authenticate",
        b"access-control-allow-credentials",
        # npm sends both with every request: how one would log in, and a number of its own for the run.
        b"npm-auth-type",
        b"npm-session",
    )
)
"""Fields that are named like a secret and hold none."""

_KEY_PARAMETERS = frozenset(
    (
        "key",
        "apikey",
        "api_key",
        "api-key",
        "x-api-key",
        "access_token",
        "accesstoken",
        "auth_token",
        "oauth_token",
        "private_token",
        "token",
        "subscription-key",
    )
)
"""Parameters whose value says whose request it is."""

_SECRET_PARAMETER = re.compile(
    r"(?:^|[-_.])(?:(?:api|access|account|app|auth|client|encryption|license|private|secret|shared|signing|subscription)"
    r"[-_]?key|token|auth|secret|passw(?:or)?d|pwd|credentials?|session(?:-?id)?|sig|signature|jwt|assertion)$|token$|^code$"
)
_PAGE_PARAMETER = re.compile(r"^(?:next|page|continuation|sync|cursor|start)[-_]?token$|^x-amz-security")

_SIGNED_BY = re.compile(rb"""(?:Credential=|keyId="?|AWS )([^/,\s":]{4,256})""")
_LOOKS_LIKE_KEY = re.compile(rb"[A-Za-z0-9._~+/=-]{17}")
_FROM_FIELD = re.compile(rb'(?:username|consumer_key|oauth_token)="([^"]{1,512})"')


def digest(value: bytes) -> str:
    """Return what stands in the ledger for a value that must not."""
    return f"sha256:{hashlib.sha256(value).hexdigest()[:16]}"


def headers_for_ledger(headers: RawHeaders) -> Headers:
    """Return fields as text, the values of credential fields as digests; for requests and for answers."""
    return tuple(
        (
            name.decode("latin-1"),
            digest(value) if value and _hidden(name) else value.decode("latin-1"),
        )
        for name, value in headers
        if name != b"proxy-authorization"
    )


class Credentials:
    """Which keys were used with which host in this run.

    Holds: the keys of the first request with a key that passed to a host are its own; another one later is foreign, and
    until then none is: one that was refused says nothing. Where the policy binds a secret to the host, every other key
    is foreign.
    Raises: InputError, if a bound secret cannot stand in a header field.
    """

    def __init__(self, plan: NetPlan) -> None:
        for secret in plan.secrets:
            if not secret.placeholder or not secret.secret:
                raise InputError(f"the secret `{secret.name}` or its placeholder is empty")
            if any(ord(character) < 0x21 or ord(character) == 0x7F for character in secret.secret):
                # it would end a header field, or change what the field says
                raise InputError(
                    f"the secret `{secret.name}` holds white space or a control character",
                    hint="look for a line break at the end of the file or variable that it comes from",
                )
        self._plan = plan
        self._first: dict[str, frozenset[bytes]] = {}

    def seen(self, head: RequestHead) -> tuple[Credential, Headers]:
        """Classify a request as the agent sent it.

        Returns: whose key it carries, and its fields for the ledger (`proxy-authorization` is dropped: it is for no one
        beyond the boundary).
        """
        return self._classify(head), headers_for_ledger(head.headers)

    def passed(self, head: RequestHead) -> bool:
        """Take note of the keys of a request that may leave. Returns: whether others are foreign to its host by it."""
        if head.authority_host in self._first:
            return False
        keys = _keys(head)
        if not keys or self._classify(head) is not Credential.OWN:
            return False
        self._first[head.authority_host] = frozenset(_identity(key) for key in keys)
        return True

    def _classify(self, head: RequestHead) -> Credential:
        keys = _keys(head)
        secrets = self._bound_here(head)
        bound = [key for key in keys if any(_holds(key, secret) for secret in secrets)]
        others = [key for key in keys if key not in bound and not any(_is(key, secret) for secret in secrets)]
        if secrets and others:
            return Credential.FOREIGN
        if bound or (secrets and self._put_in_changes(head, secrets)):
            return Credential.BOUND
        if keys:
            first = self._first.get(head.authority_host)
            own = first is None or first.issuperset(_identity(key) for key in keys)
            return Credential.OWN if own else Credential.FOREIGN
        # a cookie changes from answer to answer, so that another one is no other account's sign
        hidden = any(name in _COOKIES or _hidden(name) for name, value in head.headers if value)
        return Credential.OWN if hidden else Credential.NONE

    def put_in(self, head: RequestHead) -> RequestHead:
        """Return the head to send: real secrets in place of their placeholders.

        Holds: a secret goes to the hosts that it is bound to alone, never in clear text but to a published port or
        loopback or where the operator said so (`plain_http`), and only into credential fields and key parameters: a
        field that a host repeats in its answer (`user-agent`, `referer`) would bring it back into the sandbox.
        """
        secrets = self._bound_here(head)
        if not secrets:
            return head
        headers = tuple(
            (name, _filled_field(value, secrets)) if _hidden(name) else (name, value)
            for name, value in head.headers
        )
        target = _filled_target(head.target, secrets)
        if headers == head.headers and target == head.target:
            return head
        return dataclasses.replace(head, headers=headers, target=target)

    def query_for_ledger(self, target: str) -> str:
        """Return a target's query without its `?`, the values of key parameters as digests."""
        query = target.partition("?")[2]
        if "=" not in query:
            return query
        parts = []
        for part in query.split("&"):
            name, equals, value = part.partition("=")
            if value and _hidden_parameter(_decoded(name)):
                value = digest(unquote_to_bytes(value.replace("+", " ")))
            parts.append(f"{name}{equals}{value}")
        return "&".join(parts)

    def _bound_here(self, head: RequestHead) -> tuple[BoundSecret, ...]:
        secrets = tuple(
            secret for secret in self._plan.secrets if names_host(secret.hosts, head.authority_host)
        )
        if secrets and head.scheme not in ("https", "wss") and not self._stays_near(head):
            return tuple(secret for secret in secrets if secret.plain_http)
        return secrets

    def _stays_near(self, head: RequestHead) -> bool:
        host = head.authority_host
        literal = canonical_literal(host)
        if (
            host == "localhost"
            or host.endswith(".localhost")
            or literal == "::1"
            or literal.startswith("127.")
        ):
            return True
        return any(route.host == host and route.host_port == head.port for route in self._plan.published)

    def _put_in_changes(self, head: RequestHead, secrets: tuple[BoundSecret, ...]) -> bool:
        return any(
            _filled_field(value, secrets) != value for name, value in head.headers if _hidden(name)
        ) or head.target != _filled_target(head.target, secrets)


def _keys(head: RequestHead) -> list[bytes]:
    keys = [value for name, value in head.headers if name in _KEY_FIELDS and value]
    return keys + [value for name, value in _parameters(head.target) if name in _KEY_PARAMETERS and value]


@functools.lru_cache(maxsize=2048)
def _hidden(name: bytes) -> bool:
    if name in _KEY_FIELDS or name in _COOKIES:
        return True
    if name in _PLAIN_FIELDS or name.startswith(b"sec-websocket-"):
        return False
    return _SECRET_FIELD.search(name) is not None


def _hidden_parameter(name: str) -> bool:
    if name in _KEY_PARAMETERS:
        return True
    if name.startswith("x-amz-security"):
        return True
    return _SECRET_PARAMETER.search(name) is not None and _PAGE_PARAMETER.search(name) is None


def _decoded(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace").lower()


def _parameters(target: str) -> list[tuple[str, bytes]]:
    query = target.partition("?")[2]
    if "=" not in query:
        return []
    found = []
    for part in query.split("&"):
        name, _, value = part.partition("=")
        found.append((_decoded(name), unquote_to_bytes(value.replace("+", " "))))
    return found


def _basic(value: bytes) -> tuple[bytes, bytes] | None:
    """Return user and password of basic credentials, None where the value is something else."""
    scheme, _, encoded = value.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    encoded = encoded.strip()
    try:
        plain = base64.b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    user, colon, password = plain.partition(b":")
    return (user, password) if colon else None


def _identity(value: bytes) -> bytes:
    """Return the digest of what names the account that a key belongs to."""
    return hashlib.sha256(_account(value)).digest()


def _account(value: bytes) -> bytes:
    pair = _basic(value)
    if pair is not None:
        return pair[1] or pair[0]
    signed = _SIGNED_BY.search(value) if b"=" in value or value.startswith(b"AWS ") else None
    signed = signed or (
        _FROM_FIELD.search(value) if value[:7].lower() in (b"digest ", b"oauth r", b"oauth o") else None
    )
    if signed:
        return signed[1]
    scheme, _, rest = value.partition(b" ")
    token = rest.strip() if rest and scheme.lower() in (b"bearer", b"token", b"oauth", b"apikey") else value
    return _subject(token) or token


def _subject(token: bytes) -> bytes:
    """Return issuer and subject of a JSON web token, so that one that was renewed is the same account's."""
    parts = token.split(b".")
    if len(parts) != 3 or not token.startswith(b"ey") or len(token) > 16384:
        return b""
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return b""
    if not isinstance(claims, dict) or not isinstance(claims.get("sub"), str):
        return b""
    return json.dumps([claims.get("iss"), claims["sub"]]).encode("ascii")


def _holds(key: bytes, secret: BoundSecret) -> bool:
    """Say whether a key is the placeholder, with no other key beside it that the host might take instead."""
    placeholder = secret.placeholder.encode("utf-8")
    pair = _basic(key)
    if pair is None:
        return placeholder in key and not _LOOKS_LIKE_KEY.search(key.replace(placeholder, b" "))
    user, password = pair
    if placeholder in password:
        return not _LOOKS_LIKE_KEY.search(password.replace(placeholder, b" "))
    return placeholder in user and not _LOOKS_LIKE_KEY.search(password)


def _is(key: bytes, secret: BoundSecret) -> bool:
    """Say whether a key is the bound one itself, which the agent must have from elsewhere."""
    return _account(key) == _account(secret.secret.encode("utf-8"))


def _filled(value: bytes, secrets: tuple[BoundSecret, ...]) -> bytes:
    # longest first: one placeholder may begin like another
    for secret in sorted(secrets, key=lambda secret: -len(secret.placeholder)):
        value = value.replace(secret.placeholder.encode("utf-8"), secret.secret.encode("utf-8"))
    return value


def _filled_field(value: bytes, secrets: tuple[BoundSecret, ...]) -> bytes:
    pair = _basic(value)
    if pair is None:
        return _filled(value, secrets)
    user, password = (_filled(part, secrets) for part in pair)
    return value if (user, password) == pair else b"Basic " + base64.b64encode(user + b":" + password)


def _filled_target(target: str, secrets: tuple[BoundSecret, ...]) -> str:
    path, mark, query = target.partition("?")
    if "=" not in query:
        return target
    parts = []
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        if value and _hidden_parameter(_decoded(name)):
            plain = unquote_to_bytes(value.replace("+", " "))
            filled = _filled(plain, secrets)
            value = value if filled == plain else quote(filled, safe="")
        parts.append(f"{name}{equals}{value}")
    return f"{path}{mark}{'&'.join(parts)}"
