"""The key `network` of a policy file becomes a `Network`, or a mistake with its place and its fix."""

import re
from dataclasses import replace

from interlock.model.labels import Confidentiality
from interlock.policy.document import Document, Path, Tree
from interlock.policy.network import (
    ANY_METHOD,
    SAFE_METHODS,
    WEBSOCKET,
    HostPort,
    HostRule,
    Network,
    NetworkLimits,
    Opaque,
    Publish,
    Quiet,
    Secret,
    undeclared,
)
from interlock.policy.reading import (
    count_at,
    entries,
    flag_at,
    level_at,
    needs,
    section,
    size_at,
    text_at,
    texts_at,
    value_at,
    wrong,
)

KEYS = (
    "hosts",
    "models",
    "known_models",
    "opaque",
    "publish",
    "secrets",
    "quiet",
    "local_names",
    "compensations",
    "ask",
    "limits",
)
HOST_KEYS = ("host", "port", "methods", "paths", "clearance", "trusted", "level", "park", "redact")
QUIET_KEYS = ("host", "paths")
OPAQUE_KEYS = ("host", "port", "clearance")
PUBLISH_KEYS = ("port", "to", "opaque")
SECRET_KEYS = ("name", "hosts", "from", "as", "plain_http")
LIMIT_KEYS = ("request_body", "connections")

_HOST = "host: api.example.com"
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_METHOD = re.compile(r"[A-Z][A-Z-]{0,31}|\*")
_ADDRESS = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]+)):([0-9]{1,5})")
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_MAX_PATH = 512


def read_network(document: Document, base: Network | None) -> Network:
    """Read what a policy declares of the network, added to a preset's.

    Takes: `base`, the preset's, None without a preset. The file's own entries come first.
    Raises: PolicyError.
    """
    known = base or undeclared()
    if document.values.get("network") is None:
        return known
    given = section(document, ("network",), KEYS, "network: {hosts: [{host: docs.example.com}]}")
    at: Path = ("network",)
    # Naming any of the network takes the well-known providers in, as the documents say of the key.
    known_models = flag_at(document, (*at, "known_models")) if "known_models" in given else True
    secrets = _bound(_secrets(document), known.secrets)
    compensations = known.compensations
    if "compensations" in given:
        from interlock.policy.compensation_loading import read_compensations

        compensations = (*read_compensations(document, {one.name for one in secrets}), *compensations)
    return Network(
        hosts=(*_hosts(document), *known.hosts),
        models=(*_models(document, given), *known.models),
        known_models=known_models,
        opaque=(*_opaque(document), *known.opaque),
        publish=_published(_publish(document), known.publish),
        secrets=secrets,
        compensations=compensations,
        quiet=(*_quiet(document), *known.quiet),
        local_names=(*_local_names(document), *known.local_names),
        ask=flag_at(document, (*at, "ask")) if "ask" in given else known.ask,
        limits=_limits(document, known.limits),
    )


def _published(own: tuple[Publish, ...], known: tuple[Publish, ...]) -> tuple[Publish, ...]:
    taken = {one.port for one in own}
    return (*own, *(one for one in known if one.port not in taken))


def _bound(own: tuple[Secret, ...], known: tuple[Secret, ...]) -> tuple[Secret, ...]:
    names, shown = {one.name for one in own}, {one.shown_as for one in own}
    return (*own, *(one for one in known if one.name not in names and one.shown_as not in shown))


def _hosts(document: Document) -> tuple[HostRule, ...]:
    found: list[HostRule] = []
    for path, entry in entries(document, ("network", "hosts"), HOST_KEYS, _HOST):
        needs(document, path, entry, "host", _HOST)
        rule = HostRule(host=host_at(document, (*path, "host"), _HOST, wild=True))
        if "port" in entry:
            rule = replace(rule, port=port_at(document, (*path, "port")))
        if "methods" in entry:
            rule = replace(rule, methods=_methods(document, (*path, "methods"), "methods: [GET, POST]"))
        if "paths" in entry:
            rule = replace(rule, paths=_paths(document, (*path, "paths")))
        if "clearance" in entry:
            rule = replace(rule, clearance=level_at(document, path, entry, "clearance"))
        if "trusted" in entry:
            rule = replace(rule, trusted=flag_at(document, (*path, "trusted")))
        if "level" in entry:
            rule = replace(rule, level=level_at(document, path, entry, "level"))
        if "park" in entry:
            rule = replace(rule, park=_parked(document, (*path, "park")))
        if "redact" in entry:
            rule = replace(rule, redact=flag_at(document, (*path, "redact")))
        found.append(rule)
    return tuple(found)


def host_at(document: Document, path: Path, example: str, *, wild: bool = False) -> str:
    """Read a host, with its name or address in the one spelling. Raises: PolicyError."""
    given = text_at(document, path, example)
    # The presets' hosts are checked by the tests, not at each start.
    return check_host(document, path, given, example, wild=wild) if document.text else given


def check_host(document: Document, path: Path, given: str, example: str, *, wild: bool) -> str:
    """Return a host as the boundary writes it. Raises: PolicyError."""
    if not given.isascii():
        raise document.mistake(
            path,
            f"`{given}` is not plain ASCII, so it may look like another host",
            hint=f"write it as `{_in_ascii(given)}`",
        )
    host = given.lower().removesuffix(".")
    name = host
    if host.startswith("*."):
        name = host[2:]
        if not wild or "." not in name:
            what = f"`{given}` names too many hosts" if wild else "one host is wanted here, not many"
            raise document.mistake(path, what, hint=f"write it as in `{example}`")
    if _literal(host):
        return _literal(host)
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels) or labels[-1].isdigit():
        hint = f"write it as in `{example}`, without scheme, path or user"
        if "*" in name:
            hint = "a `*` stands alone before the first dot: `*.example.com`"
        elif ":" in name or "/" in name:
            hint += "; the port has a key of its own"
        raise document.mistake(path, f"`{given}` is not a host", hint=hint)
    return host


def _in_ascii(name: str) -> str:
    try:
        return name.lower().encode("idna").decode("ascii")
    except UnicodeError:
        return "xn--…"


def _literal(host: str) -> str:
    """Return an IP literal in its one spelling, `""` where it is none."""
    if not re.fullmatch(r"[0-9.]+|\[?[0-9a-f:.]+\]?", host) or not re.search(r"[:.]", host):
        return ""
    import ipaddress

    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def port_at(document: Document, path: Path) -> int:
    """Read a port. Raises: PolicyError."""
    value = value_at(document, path)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 65536:
        wrong(document, path, "a port from 1 to 65535", f"write `{path[-1]}: 443`")
    return int(value)


def _methods(document: Document, path: Path, example: str) -> tuple[str, ...]:
    def method(document: Document, path: Path, example: str) -> str:
        name = text_at(document, path, example)
        if not _METHOD.fullmatch(name):
            raise document.mistake(
                path,
                f"`{name}` is not a method",
                hint=f'write it in capitals as in `{example}`, "{ANY_METHOD}" for all, `{WEBSOCKET}` for WebSockets',
            )
        return name

    return texts_at(document, path, value_at(document, path), method, example)


def _parked(document: Document, path: Path) -> tuple[str, ...]:
    example = "park: [POST, PUT]"
    methods = _methods(document, path, example)
    for index, method in enumerate(methods):
        if method in (*SAFE_METHODS, WEBSOCKET, ANY_METHOD, "CONNECT"):
            raise document.mistake(
                (*path, index),
                f"`{method}` cannot be parked: the agent needs its answer",
                hint=f"name methods that change something, as in `{example}`",
            )
    return methods


def _paths(document: Document, path: Path) -> tuple[str, ...]:
    example = 'paths: ["/simple/", "/files/**/*.whl"]'
    found = texts_at(document, path, value_at(document, path), path_at, example)
    if not found:
        wrong(
            document, path, "a list that is not empty", 'write `paths: ["/simple/"]`, or leave it out for all'
        )
    return found


def path_at(document: Document, path: Path, example: str) -> str:
    """Read a path of a host, a prefix or a glob. Raises: PolicyError."""
    from interlock.policy.globs import GlobError, translate

    text = text_at(document, path, example)
    hint = f"write it as in `{example}`"
    if not text.startswith("/") or len(text) > _MAX_PATH or not text.isprintable():
        raise document.mistake(path, f"`{text[:80]}` is not an absolute path", hint=hint)
    if any(part in (".", "..") for part in text.split("/")):
        raise document.mistake(path, f"`{text}` is not in normal form", hint="leave `.` and `..` out")
    if document.text and any(char in text for char in "*?["):
        try:
            re.compile(translate(text[1:]))
        except (GlobError, re.error) as mistake:
            raise document.mistake(path, str(mistake), hint=hint) from None
    return text


def _address(document: Document, path: Path, example: str, *, port_needed: bool = True) -> tuple[str, int]:
    text = text_at(document, path, example)
    parts = _ADDRESS.fullmatch(text)
    if parts is None:
        if port_needed:
            wrong(document, path, "a host and a port", f"write it as in `{example}`")
        return check_host(document, path, text, example, wild=False), 0
    port = int(parts[3])
    if not 0 < port < 65536:
        wrong(document, path, "a host and a port from 1 to 65535", f"write it as in `{example}`")
    return check_host(document, path, parts[1] or parts[2], example, wild=False), port


def _models(document: Document, given: dict[str, Tree]) -> tuple[HostPort, ...]:
    found: list[HostPort] = []

    def one(document: Document, path: Path, example: str) -> str:
        host, port = _address(document, path, example, port_needed=False)
        found.append(HostPort(host=host, port=port))
        return host

    example = 'models: [llm.example.com, "127.0.0.1:8911"]'
    texts_at(document, ("network", "models"), given.get("models"), one, example)
    return tuple(found)


def _opaque(document: Document) -> tuple[Opaque, ...]:
    found: list[Opaque] = []
    example = "{host: github.com, port: 22}"
    for path, entry in entries(document, ("network", "opaque"), OPAQUE_KEYS, example):
        needs(document, path, entry, "host", example)
        needs(document, path, entry, "port", example)
        clearance = Confidentiality.PUBLIC
        if "clearance" in entry:
            clearance = level_at(document, path, entry, "clearance")
        host = host_at(document, (*path, "host"), example, wild=True)
        found.append(Opaque(host=host, port=port_at(document, (*path, "port")), clearance=clearance))
    return tuple(found)


def _local_names(document: Document) -> tuple[str, ...]:
    """Read the names that may lead to this machine: `*` is every name, `*.test` every name below `test`."""
    example = 'local_names: ["app.test", "*.test"]'

    def name(document: Document, path: Path, example: str) -> str:
        given = text_at(document, path, example)
        if given == ANY_METHOD:
            return given
        below = given.removeprefix("*.")
        # One label is enough here: a whole domain of the user's own machine, such as `*.test`, is what people have.
        host = check_host(document, path, below, example, wild=False)
        if _literal(host):
            raise document.mistake(path, "an address is no name", hint="an address is dialled as it is")
        return given[: len(given) - len(below)] + host

    given = section(document, ("network",), KEYS, "network: {hosts: [{host: docs.example.com}]}")
    return texts_at(document, ("network", "local_names"), given.get("local_names"), name, example)


def _quiet(document: Document) -> tuple[Quiet, ...]:
    found: list[Quiet] = []
    example = "host: telemetry.example.com"
    for path, entry in entries(document, ("network", "quiet"), QUIET_KEYS, example):
        needs(document, path, entry, "host", example)
        host = host_at(document, (*path, "host"), example, wild=True)
        paths = _paths(document, (*path, "paths")) if "paths" in entry else ()
        found.append(Quiet(host=host, paths=paths))
    return tuple(found)


def _publish(document: Document) -> tuple[Publish, ...]:
    found: dict[int, Publish] = {}
    example = '{port: 5432, to: "127.0.0.1:5432", opaque: true}'
    for path, entry in entries(document, ("network", "publish"), PUBLISH_KEYS, example):
        needs(document, path, entry, "port", example)
        needs(document, path, entry, "to", example)
        port = port_at(document, (*path, "port"))
        if port in found:
            raise document.mistake(
                (*path, "port"), f"the port {port} is published twice", hint="keep one of them"
            )
        host, host_port = _address(document, (*path, "to"), 'to: "127.0.0.1:5432"')
        opaque = flag_at(document, (*path, "opaque")) if "opaque" in entry else False
        found[port] = Publish(port=port, host=host, host_port=host_port, opaque=opaque)
    return tuple(found.values())


def _secrets(document: Document) -> tuple[Secret, ...]:
    found: list[Secret] = []
    example = "{name: github, hosts: [api.github.com], from: GITHUB_TOKEN}"
    for path, entry in entries(document, ("network", "secrets"), SECRET_KEYS, example):
        for key in ("name", "hosts", "from"):
            needs(document, path, entry, key, example)
        name = text_at(document, (*path, "name"), example)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            raise document.mistake(
                (*path, "name"), "not a plain name", hint="use letters, digits, `.`, `-` and `_`"
            )
        variable = _variable(document, (*path, "from"), "from: GITHUB_TOKEN")
        shown_as = _variable(document, (*path, "as"), "as: GH_TOKEN") if "as" in entry else variable
        for key, mine, others in (
            ("name", name, [secret.name for secret in found]),
            ("as" if "as" in entry else "from", shown_as, [secret.shown_as for secret in found]),
        ):
            if mine in others:
                raise document.mistake(
                    (*path, key), f"two secrets have the {key} `{mine}`", hint="give one of them another"
                )
        hosts = texts_at(document, (*path, "hosts"), entry["hosts"], _bound_host, "hosts: [api.github.com]")
        if not hosts:
            wrong(document, (*path, "hosts"), "a list that is not empty", f"write it as in `{example}`")
        plain = flag_at(document, (*path, "plain_http")) if "plain_http" in entry else False
        found.append(Secret(name=name, hosts=hosts, variable=variable, shown_as=shown_as, plain_http=plain))
    return tuple(found)


def _bound_host(document: Document, path: Path, example: str) -> str:
    return host_at(document, path, example, wild=True)


def _variable(document: Document, path: Path, example: str) -> str:
    name = text_at(document, path, example)
    if not re.fullmatch(_VARIABLE, name):
        # The text is not repeated: someone may have written the secret itself here.
        raise document.mistake(
            path, "not a variable's name", hint=f"name the host's variable, as in `{example}`"
        )
    return name


def _limits(document: Document, known: NetworkLimits) -> NetworkLimits:
    given = section(document, ("network", "limits"), LIMIT_KEYS, "limits: {request_body: 4GiB}")
    at: Path = ("network", "limits")
    if "request_body" in given:
        known = replace(known, request_body_bytes=size_at(document, (*at, "request_body")))
    if "connections" in given:
        known = replace(known, connections=count_at(document, (*at, "connections")))
    return known
