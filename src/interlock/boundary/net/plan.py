"""What the network boundary needs to know, computed by the runtime from policy and host."""

from dataclasses import field

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A port of the host, or of a host that the monitor can reach, shown on the sandbox's loopback.

    Takes: `port`, on 127.0.0.1 and ::1 inside; `host`, `host_port`, where it leads; `opaque`, whether bytes pass
    unread (a database) instead of as HTTP (a model server).
    """

    port: int
    host: str
    host_port: int
    opaque: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueRoute:
    """A host and port whose bytes pass unread: SSH, a database, a pinned or mTLS host.

    Takes: `host`, a name, an IP literal, or `*.` and a name for every name below it.
    """

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSecret:
    """A secret that the sandbox knows by a placeholder alone.

    Takes: `hosts`, names or `*.name` whose requests get the real value; `placeholder`, what the sandbox holds;
    `secret`, the real value; it is never written to ledger, log or message.
    """

    name: str
    hosts: tuple[str, ...]
    placeholder: str
    secret: str = field(repr=False)
    plain_http: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """For what the user's ssh-agent may be asked to sign.

    Takes: `socket`, the path inside of the run's own agent socket; `agent`, the path of the user's agent;
    `namespaces`, of SSHSIG; `keys`, the blobs of the public keys that may sign, None for all that the agent has.
    """

    socket: str
    agent: str
    namespaces: tuple[str, ...]
    keys: frozenset[bytes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetLimits:
    """Bounds, each refused with a clear answer when passed."""

    head_bytes: int = 256 * 1024
    header_fields: int = 500
    body_bytes: int = 4 * 1024**3
    """A request's body, spooled to disk."""
    memory_bytes: int = 256 * 1024
    """What of one body is held in memory before it goes to disk."""
    text_bytes: int = 1024 * 1024
    """What of one body is read as text for the decision."""
    inflated_bytes: int = 16 * 1024**2
    """What a compressed body may grow to when it is read."""
    connections: int = 4096
    head_seconds: float = 30.0
    """For a whole head to arrive, and for a TLS handshake."""
    connect_seconds: float = 20.0
    idle_seconds: float = 300.0
    """For a request's body to go on, and for a connection without a request. No limit for answers."""
    kept_bytes: int = 64 * 1024**2
    """Inbound bodies kept for provenance, for the whole run."""
    quiet_seconds: float = 15.0
    """An agent that waits for the events of a held answer is kept alive after so long a silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetPlan:
    """All that decides how traffic is taken and sent on.

    Takes: `probed`, hosts (names or `*.name`) that may be dialled before a request is decided, to learn whether they
    speak HTTP/2: only those that the operator named; `trust_file`, trusted beside the host's own trust, `""` for none;
    `reach_own`, whether a name may lead to an address of this machine's interfaces (never to loopback);
    `local_names`, names, `*.name` or `*` that may lead to any address of this machine, loopback too;
    `upstream_proxy`, URL of the proxy between us and the world, `""` for none; `no_proxy`, host suffixes that do
    without it; `folder`, the run's own folder for spooled bodies; `signing`, None where nothing is signed; `views`,
    whether bodies that are no text are looked into: only what may hold something sensitive is worth it; `asks_again`,
    how often a model is asked once more in place of an answer of which a call was refused.
    """

    folder: str
    published: tuple[Published, ...] = ()
    opaque: tuple[OpaqueRoute, ...] = ()
    secrets: tuple[BoundSecret, ...] = ()
    probed: tuple[str, ...] = ()
    trust_file: str = ""
    reach_own: bool = False
    local_names: tuple[str, ...] = ()
    upstream_proxy: str = ""
    no_proxy: tuple[str, ...] = ()
    limits: NetLimits = field(default_factory=NetLimits)
    signing: Signing | None = None
    views: bool = True
    asks_again: int = 1


def names_host(patterns: tuple[str, ...], host: str) -> bool:
    """Say whether one of the patterns names the host; `*.a.b` names every name below `a.b`, not `a.b`."""
    return any(
        host == pattern or (pattern.startswith("*.") and host.endswith(pattern[1:]) and host != pattern[2:])
        for pattern in patterns
    )
