"""What reached the fake internet though nobody released it."""

from collections.abc import Iterable

from tests.fakes.internet.journal import Record
from tests.fakes.internet.names import BY_ADDRESS, PUBLIC_RESOLVERS, RESOLVER4, RESOLVER6

_WEB_PORTS = (80, 443)
_RESOLVERS = {RESOLVER4, RESOLVER6} - set(PUBLIC_RESOLVERS)


def leaks(records: Iterable[Record], released: Iterable[str]) -> list[tuple[float, str]]:
    """Return when and what reached the outside besides requests to the released hosts.

    Takes: `released`, names of hosts; questions for those names, and connections to their addresses, are theirs too.
    """
    hosts = frozenset(released)
    found = [(float(record["time"]), _leak(record, hosts)) for record in records]
    return [(time, text) for time, text in found if text]


def _leak(record: Record, hosts: frozenset[str]) -> str:
    match record["kind"]:
        case "body" | "tls failure" | "h2 reset":
            return ""  # parts of what is judged by its head
        case "dns":
            own = record["address"] in _RESOLVERS and record["name"] in hosts
            return "" if own else f"the name `{record['name'][:80]}` was asked of {record['address']}"
        case "tcp":
            return _place(record, hosts)
        case "packet" if record["protocol"] == "tcp":
            return _place(record, hosts)
        case "packet" if record["address"] in _RESOLVERS and record["port"] == 53:
            return ""  # the question is a record of its own
        case "packet":
            return f"{record['protocol']} to {record['address']} port {record['port']}"
        case "http":
            return _place(record, hosts) or _request(record, hosts)
        case kind:
            return f"{kind}: {str({k: v for k, v in record.items() if k not in ('kind', 'time')})[:200]}"


def _place(record: Record, hosts: frozenset[str]) -> str:
    place = BY_ADDRESS.get(record["address"])
    if place is not None and place.name in hosts and record["port"] in _WEB_PORTS:
        return ""
    name = place.name if place else record["address"]
    return f"a connection to {name} port {record['port']}"


def _request(record: Record, hosts: frozenset[str]) -> str:
    named = [value for name, value in record["headers"] if name.strip().lower() in ("host", ":authority")]
    for host in (record["host"], *named):
        if _canonical(host) not in hosts:
            return f"a request for host `{host[:80]}`"
    if record["sni"] and _canonical(record["sni"]) not in hosts:
        return f"a handshake for `{record['sni']}`"
    if not record["path"].startswith("/") or record["method"] == "CONNECT":
        return f"a request for `{record['path'][:80]}`"
    return ""


def _canonical(host: str) -> str:
    name, _, port = host.rpartition(":")
    return (name if port.isdigit() and name else host).lower().removesuffix(".")
