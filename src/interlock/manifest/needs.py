"""What tools need of the kernel: read from a file, written back, and united over the tools of a plan.

Source: KNOX §4.1, Auth as the union over the tools of a trajectory and the runtime.
"""

import re
from collections.abc import Iterable

from interlock.manifest.document import Document, Path, Tree, near
from interlock.model.records import changed
from interlock.model.system_calls import NUMBERS
from interlock.model.toolkits import (
    Access,
    HostNeed,
    Limit,
    LimitNeed,
    Needs,
    PathNeed,
    SystemCallNeed,
)

NEEDS_KEYS = ("system_calls", "paths", "hosts", "limits")
ROOTS = ("{workspace}", "{home}", "{tmp}")
_EXAMPLE = 'needs: {system_calls: {openat: "opens files"}}'
_PATH = '{path: /usr, access: read, reason: "programs and libraries"}'
_HOST = '{host: api.example.com, port: 443, reason: "the service itself"}'
_LIMIT = '{processes: {most: 16, reason: "one command and its children"}}'
_CALL = '{socket: "opens connections"}'
_MOST_ENTRIES = 5000
_REASON_CHARACTERS = 300
_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_MOST = 2**53


def read_needs(document: Document, path: Path) -> Needs:
    """Read the needs that stand at a path. Raises: InputError."""
    given = document.section(path, NEEDS_KEYS, _EXAMPLE)
    return Needs(
        system_calls=_calls(document, (*path, "system_calls")) if "system_calls" in given else (),
        paths=tuple(_path(document, where) for where in _listed(document, (*path, "paths"), _PATH))
        if "paths" in given
        else (),
        hosts=tuple(_host(document, where) for where in _listed(document, (*path, "hosts"), _HOST))
        if "hosts" in given
        else (),
        limits=_limits(document, (*path, "limits")) if "limits" in given else (),
    )


def needs_tree(needs: Needs) -> dict[str, Tree]:
    """Return needs as they are written in a file; empty parts are left out."""
    tree: dict[str, Tree] = {}
    if needs.system_calls:
        tree["system_calls"] = {one.name: one.reason for one in needs.system_calls}
    if needs.paths:
        tree["paths"] = [
            {"path": one.path, "access": one.access.value, "reason": one.reason} for one in needs.paths
        ]
    if needs.hosts:
        tree["hosts"] = [
            {"host": one.host, **({"port": one.port} if one.port else {}), "reason": one.reason}
            for one in needs.hosts
        ]
    if needs.limits:
        tree["limits"] = {one.limit.value: {"most": one.most, "reason": one.reason} for one in needs.limits}
    return tree


def ascribed(needs: Needs, whose: str) -> Needs:
    """Return needs whose reasons say whose they are."""

    def said(reason: str) -> str:
        return f"{whose}: {reason}"

    return Needs(
        system_calls=tuple([changed(one, reason=said(one.reason)) for one in needs.system_calls]),
        paths=tuple([changed(one, reason=said(one.reason)) for one in needs.paths]),
        hosts=tuple([changed(one, reason=said(one.reason)) for one in needs.hosts]),
        limits=tuple([changed(one, reason=said(one.reason)) for one in needs.limits]),
    )


def union(parts: Iterable[Needs]) -> Needs:
    """Return what any of the parts needs, with all reasons; of two limits the larger one.

    Holds: the order of the parts makes no difference.
    """
    calls: dict[str, set[str]] = {}
    paths: dict[tuple[str, str], set[str]] = {}
    hosts: dict[tuple[str, int], set[str]] = {}
    limits: dict[str, tuple[int, set[str]]] = {}
    for needs in parts:
        for call in needs.system_calls:
            calls.setdefault(call.name, set()).add(call.reason)
        for place in needs.paths:
            paths.setdefault((place.path, place.access.value), set()).add(place.reason)
        for host in needs.hosts:
            hosts.setdefault((host.host, host.port), set()).add(host.reason)
        for limit in needs.limits:
            most, reasons = limits.get(limit.limit.value, (0, set()))
            limits[limit.limit.value] = (max(most, limit.most), reasons | {limit.reason})
    return Needs(
        system_calls=tuple(
            [SystemCallNeed(name=name, reason=_joined(calls[name])) for name in sorted(calls)]
        ),
        paths=tuple(
            [
                PathNeed(path=path, access=Access(access), reason=_joined(paths[path, access]))
                for path, access in sorted(paths)
            ]
        ),
        hosts=tuple(
            [
                HostNeed(host=host, port=port, reason=_joined(hosts[host, port]))
                for host, port in sorted(hosts)
            ]
        ),
        limits=tuple(
            [
                LimitNeed(limit=Limit(name), most=limits[name][0], reason=_joined(limits[name][1]))
                for name in sorted(limits)
            ]
        ),
    )


def lacking(needs: Needs, authorised: Needs) -> tuple[str, ...]:
    """Return in words what is needed beyond what is authorised; entries are compared as they are written."""
    calls = {one.name for one in authorised.system_calls}
    paths = {(one.path, one.access) for one in authorised.paths}
    hosts = {(one.host, one.port) for one in authorised.hosts}
    return (
        *(f"system call {one.name}" for one in needs.system_calls if one.name not in calls),
        *(f"{one.access.value} {one.path}" for one in needs.paths if (one.path, one.access) not in paths),
        *(f"host {host_text(one)}" for one in needs.hosts if (one.host, one.port) not in hosts),
    )


def host_text(need: HostNeed) -> str:
    """Return a host with its port, where it has one."""
    return f"{need.host}:{need.port}" if need.port else need.host


def _joined(reasons: set[str]) -> str:
    """Return reasons as one, within the length that a reason may have."""
    text = "; ".join(sorted({" ".join(reason.split()) for reason in reasons}))
    return text if len(text) <= _REASON_CHARACTERS else text[: _REASON_CHARACTERS - 1] + "…"


def _listed(document: Document, path: Path, example: str) -> list[Path]:
    found = [where for where, _ in document.entries(path, f"- {example}")]
    if len(found) > _MOST_ENTRIES:
        raise document.mistake(path, f"more than {_MOST_ENTRIES} entries", "name fewer of them")
    return found


def _reason(document: Document, path: Path, example: str) -> str:
    text = document.text(path, example)
    if len(text) > _REASON_CHARACTERS:
        raise document.mistake(path, f"a reason of more than {_REASON_CHARACTERS} characters", "shorten it")
    return " ".join(text.split())


def _entry(
    document: Document, path: Path, keys: tuple[str, ...], wanted: tuple[str, ...], example: str
) -> Tree:
    given = document.section(path, keys, example)
    for key in wanted:
        if key not in given:
            raise document.mistake(path, f"it has no `{key}`", f"write it as in `{example}`")
    return given


def _calls(document: Document, path: Path) -> tuple[SystemCallNeed, ...]:
    given = document.at(path)
    if not isinstance(given, dict) or len(given) > _MOST_ENTRIES:
        raise document.mistake(path, "it must map each call to its reason", f"write it as in `{_CALL}`")
    for name in given:
        if name not in NUMBERS:
            raise document.mistake((*path, name), f"Linux has no system call `{name}`", near(name, NUMBERS))
    return tuple(
        SystemCallNeed(name=name, reason=_reason(document, (*path, name), _CALL)) for name in sorted(given)
    )


def _path(document: Document, path: Path) -> PathNeed:
    given = _entry(document, path, ("path", "access", "reason"), ("path", "access", "reason"), _PATH)
    place = document.text((*path, "path"), _PATH)
    check_place(document, (*path, "path"), place)
    known = [one.value for one in Access]
    if given["access"] not in known:
        raise document.mistake(
            (*path, "access"), f"no way of access `{given['access']}`", near(str(given["access"]), known)
        )
    return PathNeed(
        path=place, access=Access(given["access"]), reason=_reason(document, (*path, "reason"), _PATH)
    )


def check_place(document: Document, path: Path, place: str) -> None:
    """Check that a text is a place of a need. Raises: InputError."""
    rest = next((place.removeprefix(root) for root in ROOTS if place.startswith(root)), place)
    good = (place.startswith("/") or rest != place) and (not rest or rest.startswith("/"))
    if not good or "\0" in place or {"..", "."} & set(rest.split("/")):
        raise document.mistake(
            path, "no place of a need", "write an absolute path, or one below {workspace}, {home} or {tmp}"
        )


def _host(document: Document, path: Path) -> HostNeed:
    given = _entry(document, path, ("host", "port", "reason"), ("host", "reason"), _HOST)
    host = document.text((*path, "host"), _HOST)
    if host != host.lower() or re.search(r"[\s/@#?\\]", host):
        raise document.mistake((*path, "host"), "no host's name", "write it in lower case, without a scheme")
    port = document.count((*path, "port"), _HOST, least=0, most=65535) if "port" in given else 0
    return HostNeed(host=host, port=port, reason=_reason(document, (*path, "reason"), _HOST))


def _limits(document: Document, path: Path) -> tuple[LimitNeed, ...]:
    known = [one.value for one in Limit]
    given = document.section(path, known, _LIMIT)
    found = []
    for name in sorted(given):
        entry = _entry(document, (*path, name), ("most", "reason"), ("most", "reason"), _LIMIT)
        most = size_of(entry["most"]) if name.endswith("-bytes") else entry["most"]
        if not isinstance(most, int) or isinstance(most, bool) or not 0 < most <= _MOST:
            hint = "write a number above 0" + (", or one as in 64MiB" if name.endswith("-bytes") else "")
            raise document.mistake((*path, name, "most"), "no limit", hint)
        found.append(
            LimitNeed(limit=Limit(name), most=most, reason=_reason(document, (*path, name, "reason"), _LIMIT))
        )
    return tuple(found)


def size_of(value: object) -> int | None:
    """Return a size in bytes, as in `64MiB`; None for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"([0-9]{1,15})(|KiB|MiB|GiB|TiB)", value) if isinstance(value, str) else None
    return None if match is None else int(match.group(1)) * _UNITS[match.group(2)]
