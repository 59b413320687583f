"""What a policy declares of the network: destinations, providers of the model, opaque routes, published ports.

What widens trust is read narrowly (the port and the method count, `*.name` is every name below `name` and not
`name`); what narrows it, the level of what a host answers, is read widely (neither counts, and `*.name` takes
`name` in).
"""

import re
from dataclasses import field
from typing import TYPE_CHECKING

from interlock.model.labels import Confidentiality
from interlock.model.records import dataclass
from interlock.model.requests import NetRequest
from interlock.policy.net_paths import climbs, host_fits, paths_pattern

if TYPE_CHECKING:
    from interlock.policy.compensations import Compensation

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
ANY_METHOD = "*"
WEBSOCKET = "WS"
"""The word in an entry's `methods` that stands for opening a WebSocket, which is more than a GET."""
WEB_PORTS = (80, 443)
"""What an entry without a port means."""
_ENCRYPTED = ("https", "wss")
_OVERRIDES = frozenset({"x-http-method", "x-http-method-override", "x-method-override"})
_GIT_FETCH = "application/x-git-upload-pack-request"
_HOSTS_KEPT = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRule:
    """A destination that the operator names.

    Takes: `host`, a name, `*.name` or an IP literal; `port`, 0 for 80 and 443; `paths`, prefixes and globs, empty
    for all; `clearance`, what data may go there; `trusted`, whether what it answers vouches for values; `level`,
    of what it answers; `park`, methods whose answer the agent need not see; `redact`, whether what carries too much
    leaves redacted where nobody can be asked.
    """

    host: str
    port: int = 0
    methods: tuple[str, ...] = SAFE_METHODS
    paths: tuple[str, ...] = ()
    clearance: Confidentiality = Confidentiality.PUBLIC
    trusted: bool = False
    level: Confidentiality = Confidentiality.PUBLIC
    park: tuple[str, ...] = ()
    redact: bool = False

    def serves(self, port: int) -> bool:
        """Say whether the entry is of this port."""
        return port == self.port if self.port else port in WEB_PORTS

    def takes(self, path: str) -> bool:
        """Say whether the entry is of this path; narrow."""
        return not self.paths or (not climbs(path) and paths_pattern(self.paths).fullmatch(path) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPort:
    """A host that answers as a provider of the model; `port` 0 for 80 and 443."""

    host: str
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A host and port whose bytes pass unread; `host` may be `*.name`."""

    host: str
    port: int
    clearance: Confidentiality = Confidentiality.PUBLIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """A port that the sandbox sees on its loopback; `host` and `host_port` are where it leads."""

    port: int
    host: str
    host_port: int
    opaque: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret that the sandbox knows by a placeholder.

    Takes: `hosts`, names or `*.name` whose requests get the real value; `variable`, of the host's environment,
    that holds it; `shown_as`, the variable that the sandbox sees; `plain_http`, whether the operator lets the value
    leave over a connection that is not encrypted.
    """

    name: str
    hosts: tuple[str, ...]
    variable: str
    shown_as: str
    plain_http: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """A destination that nobody is asked about: what nothing vouches for there is refused at once.

    Takes: `host`, a name, `*.name` or an IP literal; `paths`, prefixes and globs, empty for all.
    """

    host: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLimits:
    """Bounds of the network boundary; 0 where the policy sets none."""

    request_body_bytes: int = 0
    connections: int = 0


class HostRules(tuple[HostRule, ...]):
    """Entries in their order; those of one host are found without a walk over all."""

    def __init__(self, rules: object = ()) -> None:
        self._exact: dict[str, list[tuple[int, HostRule]]] = {}
        self._below: dict[str, list[tuple[int, HostRule]]] = {}
        self._found: dict[str, tuple[HostRule, ...]] = {}
        for number, rule in enumerate(self):
            if rule.host.startswith("*."):
                self._below.setdefault(rule.host[2:], []).append((number, rule))
            else:
                self._exact.setdefault(rule.host, []).append((number, rule))
        self.any_level = any(rule.level > Confidentiality.PUBLIC for rule in self)

    def of(self, host: str) -> tuple[HostRule, ...]:
        """Return the entries that name a host, in their order; narrow."""
        known = self._found.get(host)
        if known is None:
            known = self._find(host)
            # The agent chooses the names: so many and no more are kept.
            if len(self._found) < _HOSTS_KEPT:
                self._found[host] = known
        return known

    def _find(self, host: str) -> tuple[HostRule, ...]:
        found = list(self._exact.get(host, ()))
        at = host.find(".") if self._below else -1
        while at >= 0:
            found += self._below.get(host[at + 1 :], ())
            at = host.find(".", at + 1)
        if len(found) > 1:
            found.sort(key=_order)
        return tuple(rule for _, rule in found)

    def level_of(self, host: str, path: str) -> Confidentiality:
        """Return the highest level that an entry gives to what a host answers; wide."""
        level = Confidentiality.PUBLIC
        if self.any_level:
            for rule in (*self.of(host), *(rule for _, rule in self._below.get(host, ()))):
                if rule.level > level and (
                    not rule.paths or climbs(path) or paths_pattern(rule.paths, wide=True).fullmatch(path)
                ):
                    level = rule.level
        return level


def _order(found: tuple[int, HostRule]) -> int:
    return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """All that a policy declares of the network.

    Takes: `declared`, whether the policy speaks of the network at all: else no words vouch for a request;
    `hosts`, the first entry that fits decides; `known_models`, whether the well-known providers of models are
    released to; `ask`, whether an oracle may be asked while a request waits.
    """

    declared: bool = True
    hosts: tuple[HostRule, ...] = ()
    models: tuple[HostPort, ...] = ()
    known_models: bool = False
    opaque: tuple[Opaque, ...] = ()
    publish: tuple[Publish, ...] = ()
    secrets: tuple[Secret, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    local_names: tuple[str, ...] = ()
    compensations: "tuple[Compensation, ...]" = ()
    ask: bool = True
    limits: NetworkLimits = field(default_factory=NetworkLimits)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", HostRules(self.hosts))

    @property
    def _rules(self) -> HostRules:
        assert isinstance(self.hosts, HostRules)
        return self.hosts

    def rule_for(self, host: str, port: int, method: str, path: str) -> HostRule | None:
        """Return the first entry that vouches for a request, None where there is none."""
        for rule in self._rules.of(host):
            if (
                (method in rule.methods or ANY_METHOD in rule.methods)
                and rule.serves(port)
                and rule.takes(path)
            ):
                return rule
        return None

    def names(self, host: str, port: int) -> bool:
        """Say whether an entry names a host at this port, whatever the method and the path."""
        return any(rule.serves(port) for rule in self._rules.of(host))

    def vouches_host(self, host: str, port: int) -> bool:
        """Say whether a host may be dialled before a request is decided: the operator or the known list names it."""
        if self.names(host, port) or self.is_model_host(host, port):
            return True
        return any((entry.host, entry.host_port) == (host, port) for entry in self.publish)

    @property
    def probed(self) -> tuple[str, ...]:
        """Return the hosts, names or `*.name`, that may be dialled before a request is decided."""
        known: tuple[str, ...] = ()
        if self.known_models:
            from interlock.policy.models import KNOWN

            known = tuple(KNOWN)
        return tuple(
            dict.fromkeys(
                (*(rule.host for rule in self.hosts), *(entry.host for entry in self.models), *known)
            )
        )

    def is_model_host(self, host: str, port: int) -> bool:
        """Say whether a configured or known provider of the model is at this host and port."""
        if self._configures(host, port):
            return True
        if not self.known_models or port != 443:
            return False
        from interlock.policy.models import KNOWN

        return host in KNOWN

    def _configures(self, host: str, port: int) -> bool:
        return any(
            entry.host == host and (port == entry.port if entry.port else port in WEB_PORTS)
            for entry in self.models
        )

    def is_model_call(self, request: NetRequest) -> bool:
        """Say whether a request asks a model for an inference; a provider's other paths are ordinary requests."""
        if not self.is_model_host(request.host, request.port):
            return False
        configured = self._configures(request.host, request.port)
        if not configured and request.scheme not in _ENCRYPTED:
            return False
        from interlock.policy.models import is_inference

        return is_inference("" if configured else request.host, request)

    def parks(self, request: NetRequest) -> bool:
        """Say whether a request waits for its scope's end: an entry parks its method, and its body is whole."""
        method = method_of(request)
        if method in (*SAFE_METHODS, WEBSOCKET, "CONNECT") or request.body_size_bytes < 0:
            return False
        for rule in self._rules.of(request.host):
            if method in rule.park and rule.serves(request.port) and rule.takes(request.path):
                return not self.is_model_call(request)
        return False

    def bares(self, request: NetRequest) -> bool:
        """Say whether the operator lets a secret that is bound to this host leave unencrypted."""
        return any(
            secret.plain_http and any(host_fits(host, request.host) for host in secret.hosts)
            for secret in self.secrets
        )

    def quiets(self, request: NetRequest) -> bool:
        """Say whether nobody is asked about a request: it is refused where nothing vouches for it."""
        return any(
            host_fits(entry.host, request.host)
            and (
                not entry.paths
                or (
                    not climbs(request.path)
                    and paths_pattern(entry.paths).fullmatch(request.path) is not None
                )
            )
            for entry in self.quiet
        )

    def published(self, request: NetRequest) -> Publish | None:
        """Return the declaration behind a request to a published port, None where there is none."""
        if not request.published:
            return None
        inside = (entry for entry in self.publish if entry.port == request.port)
        outside = (
            entry for entry in self.publish if (entry.host, entry.host_port) == (request.host, request.port)
        )
        return next(inside, None) or next(outside, None)

    def opaque_route(self, host: str, port: int) -> Opaque | None:
        """Return the route by which bytes may pass unread, None where there is none."""
        return next(
            (route for route in self.opaque if route.port == port and host_fits(route.host, host)), None
        )

    def trusts(self, request: NetRequest) -> bool:
        """Say whether what a request is answered vouches for values.

        Holds: narrow; only a plain read, and over an unencrypted connection only where the entry names the port itself.
        """
        if not is_read(request):
            return False
        rule = self.rule_for(request.host, request.port, method_of(request), request.path)
        return rule is not None and rule.trusted and (request.scheme in _ENCRYPTED or rule.port != 0)

    def level_of(self, request: NetRequest) -> Confidentiality:
        """Return the level of what a request is answered; wide."""
        return self._rules.level_of(request.host, request.path)

    @property
    def declares_levels(self) -> bool:
        """Say whether any host's answers have a level above public."""
        return self._rules.any_level

    def keeps_text(self, request: NetRequest) -> bool:
        """Say whether provenance, or an undo, depends on the text that answers a request."""
        return (
            self.trusts(request)
            or self.level_of(request) > Confidentiality.PUBLIC
            or self.compensation_of(request) is not None
        )

    def compensation_of(self, request: NetRequest) -> "Compensation | None":
        """Return the first entry that says how a request is undone, None where there is none; narrow."""
        if not self.compensations or is_read(request) or request.scheme not in ("http", "https"):
            return None
        for entry in self.compensations:
            if (
                entry.method == request.method
                and (request.port == entry.port if entry.port else request.port in WEB_PORTS)
                and host_fits(entry.host, request.host)
                and not climbs(request.path)
                and paths_pattern((entry.path,)).fullmatch(request.path)
            ):
                return entry
        return None


def is_git_fetch(request: NetRequest) -> bool:
    """Say whether a request fetches from Git over HTTP: its body says which commits are wanted and had."""
    return (
        request.method == "POST"
        and request.path.endswith("/git-upload-pack")
        and not request.query
        and ("content-type", _GIT_FETCH) in request.headers
        and (request.body_text is None or re.match(r"[0-9a-f]{4}", request.body_text) is not None)
    )


def method_of(request: NetRequest) -> str:
    """Return the method by which a request is judged: what it does, not what it is called.

    Returns: `WS` for the opening of a WebSocket; `GET` for Git's fetch; `POST` for a safe method that carries a body or
    another method, and for the first step of Git's push.
    """
    if request.scheme in ("ws", "wss"):
        return WEBSOCKET
    if is_git_fetch(request):
        return "GET"
    if request.method in SAFE_METHODS and (
        request.body_size_bytes != 0
        or "git-receive-pack" in request.query
        or any(name in _OVERRIDES for name, _ in request.headers)
    ):
        return "POST"
    return request.method


def is_read(request: NetRequest) -> bool:
    """Say whether a request only reads."""
    return request.protocol != "opaque" and method_of(request) in SAFE_METHODS


def undeclared() -> Network:
    """Return what a policy without the key `network` declares."""
    return Network(declared=False)
