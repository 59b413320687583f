"""What tools need of the kernel: read from a file, written back, and united over the tools of a plan.

Source: KNOX §4.1, Auth as the union over the tools of a trajectory and the runtime.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from interlock.manifest.document import Document, Path, Tree, near
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
MOST_LACKING = 6
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


def union(parts: Iterable[Needs]) -> Needs:
    """Return what any of the parts needs, with all reasons; of two limits the larger one."""
    return union_of([("", needs) for needs in parts])


def union_of(owned: Iterable[tuple[str, Needs]]) -> Needs:
    """Return what any of the parts needs; of two limits the larger one. Takes: each with whose it is.

    Holds: each reason says whose it is; the order of the parts makes no difference.
    """
    calls: defaultdict[str, list[str]] = defaultdict(list)
    paths: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    hosts: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    limits: defaultdict[str, list[str]] = defaultdict(list)
    most: dict[str, int] = {}
    for owner, needs in owned:
        whose = f"{owner}: " if owner else ""
        for call in needs.system_calls:
            calls[call.name].append(whose + call.reason)
        for place in needs.paths:
            paths[place.path, place.access.value].append(whose + place.reason)
        for host in needs.hosts:
            hosts[host.host, host.port].append(whose + host.reason)
        for limit in needs.limits:
            name = limit.limit.value
            limits[name].append(whose + limit.reason)
            most[name] = max(most.get(name, 0), limit.most)
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
                LimitNeed(limit=Limit(name), most=most[name], reason=_joined(limits[name]))
                for name in sorted(limits)
            ]
        ),
    )


class Authorised:
    """What is authorised, to be asked what something lacks."""

    def __init__(self, needs: Needs) -> None:
        self._calls = {one.name for one in needs.system_calls}
        self._paths = {(one.path, one.access) for one in needs.paths}
        self._hosts = {(one.host, one.port) for one in needs.hosts}

    def lacking(self, needs: Needs) -> tuple[str, ...]:
        """Return in words what is needed beyond it: the first of them, and how many more."""
        calls = [one.name for one in needs.system_calls if one.name not in self._calls]
        found = [f"system call {name}" for name in calls[:MOST_LACKING]]
        found += [f"{one.access.value} {one.path}" for one in needs.paths if not self._reaches(one)]
        found += [
            f"host {host_text(one)}"
            for one in needs.hosts
            if (one.host, one.port) not in self._hosts and (one.host, 0) not in self._hosts
        ]
        more = len(found) - MOST_LACKING + max(0, len(calls) - MOST_LACKING)
        return (*found[:MOST_LACKING], f"… {more} more") if more > 0 else tuple(found)

    def _reaches(self, need: PathNeed) -> bool:
        # What may be changed or started may be read.
        allowed = tuple(Access) if need.access is Access.READ else (need.access,)
        path = need.path
        while path:
            if any((path, access) in self._paths for access in allowed):
                return True
            path = path.rpartition("/")[0]
        return False


def host_text(need: HostNeed) -> str:
    """Return a host with its port, where it has one."""
    return f"{need.host}:{need.port}" if need.port else need.host


def _joined(reasons: list[str]) -> str:
    """Return reasons as one, within the length that a reason may have."""
    text = "; ".join(sorted(set(reasons))) if len(reasons) > 1 else reasons[0]
    text = " ".join(text.split())
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
