"""Who lives in the fake internet: names, addresses, and what each is like."""

from interlock.model.records import dataclass

RESOLVER4 = "203.0.113.53"
RESOLVER6 = "2001:db8::53"
PUBLIC_RESOLVERS = ("8.8.8.8", "1.1.1.1", "2001:4860:4860::8888", "127.0.0.1")
METADATA = "169.254.169.254"
SILENT = "203.0.113.81"
"""Takes no connection and says nothing: a client waits until its own time is up."""

PLAIN_PORTS = (80, 8080, 8911, 21, 25, 587, 3128, 5432, 6379, 6667, 9222, 11434)
TLS_PORTS = (443, 8443, 853, 465)
GRPC_PORT = 50051
RELAY_PORT = 3128
STRANGE_PORT = 81
"""Nobody listens there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One name. Takes: `h2`, whether it agrees to HTTP/2; `certificate`, what is wrong with its certificate."""

    name: str
    v4: str
    v6: str
    h2: bool = False
    certificate: str = ""


_PLAIN = (
    "allowed.test",
    "second.allowed.test",
    "evil.test",
    "git.test",
    "ssh.test",
    "pypi.pkg.test",
    "npm.pkg.test",
    "apt.pkg.test",
    "ws.test",
    "relay.test",
    "api.test",
    "xn--llowed-3ve.test",
    "doh.test",
)
_H2 = ("h2.test", "grpc.test", "h2.allowed.test")
_BAD = ("expired", "wronghost", "selfsigned", "privateca")


def _places() -> dict[str, Place]:
    names = [*_PLAIN, *_H2, *(f"{kind}.test" for kind in _BAD)]
    return {
        name: Place(
            name=name,
            v4=f"203.0.113.{100 + number}",
            v6=f"2001:db8::{100 + number:x}",
            h2=name in _H2,
            certificate=name.split(".")[0] if name.split(".")[0] in _BAD else "",
        )
        for number, name in enumerate(names)
    }


PLACES = _places()
BY_ADDRESS = {address: place for place in PLACES.values() for address in (place.v4, place.v6)}

MOVING: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # name: its A answers one after another, its AAAA answers
    "loop.allowed.test": (("127.0.0.1",), ("::1",)),
    "meta.allowed.test": ((METADATA,), ("fd00:ec2::254",)),
    "mapped.allowed.test": ((), ("::ffff:127.0.0.1",)),
    "flip.allowed.test": ((PLACES["allowed.test"].v4, "127.0.0.1", METADATA), ()),
    "zero.allowed.test": (("0.0.0.0",), ("::",)),
    "silent.test": ((SILENT,), ()),
    "dead.test": (("203.0.113.82",), ()),
    "metadata.google.internal": ((METADATA,), ()),
    "localhost.evil.test": (("127.0.0.1",), ()),
}
UNREACHABLE = "203.0.113.82"
