"""Requests: what the boundary read of the agent's network traffic, before anything of it left."""

from enum import Enum

from interlock.model.records import dataclass

AGENT_SCHEME = "ssh-agent"
"""Scheme, host and protocol of a request for a signature by the user's ssh-agent."""

INTERNAL_HOST = "interlock.internal"
"""The name under which the boundary itself answers inside: notices, and the answers of parked requests."""

Headers = tuple[tuple[str, str], ...]
"""Header fields in their order; names in lower case, values as ISO 8859-1 text without outer white space."""


class Outcome(Enum):
    """How a request that left came back (steno: *unknown* is never merged with *failed*)."""

    DONE = "done"
    """A whole answer came, whatever its status."""
    FAILED = "failed"
    """It is certain that the far side did not take it."""
    UNKNOWN = "unknown"
    """It was cut off: the far side may have taken it."""


class Credential(Enum):
    """Whose key a request carries."""

    NONE = "none"
    BOUND = "bound"
    """The placeholder of a secret that the policy binds to this host; the boundary puts in the real value."""
    OWN = "own"
    """Some other key: from a file, from the environment, or from an instruction that the agent read."""
    FOREIGN = "foreign"
    """Another key than the one bound to this host, or than the first one used with it in this run."""


class PushKind(Enum):
    """What an update does to a reference of a Git server."""

    CREATE = "create"
    FORWARD = "forward"
    """What was there stays in its history."""
    FORCED = "forced"
    """What was there is not in the new history: commits are dropped."""
    DELETE = "delete"
    UNKNOWN = "unknown"
    """It cannot be shown from the request that what was there stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefUpdate:
    """One reference that a push changes. Takes: `old`, `new`, object names in hex, `""` for none."""

    ref: str
    kind: PushKind
    old: str = ""
    new: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetRequest:
    """One request, or one opaque connection.

    Takes: `method`, upper case, `CONNECT` for an opaque connection; `scheme`, `http`, `https`, `ws`, `wss`,
    `tcp`, or `ssh-agent` for a signature (then `path` is its namespace and the key's fingerprint);
    `host`, lower case A-label or IP literal without brackets, checked to be what is dialled; `path`, absolute,
    with dot segments removed, `""` for an opaque connection; `query` without its `?`; `headers` without
    hop-by-hop fields, the values of credential fields replaced by `sha256:` and the first 16 hex digits of their
    digest; `protocol`, `http/1.1`, `h2`, `opaque` or `ssh-agent`; `address`, the IP literal that the client itself
    dialled, `""` where it dialled a placeholder address; `published`, whether it goes to a port that the policy
    publishes; `body_size_bytes`, -1 for a body that streams after the decision; `body_digest`, SHA-256 in hex, `""`
    without a body; `body_text`, the whole body decoded and decompressed where it is text within the budget, else None;
    `placeholders`, ids of parked requests whose placeholder stands in the request; `pushes`, of a Git push over HTTP
    what it does to the server's references.
    """

    method: str
    scheme: str
    host: str
    port: int
    path: str
    query: str = ""
    headers: Headers = ()
    protocol: str = "http/1.1"
    address: str = ""
    published: bool = False
    body_size_bytes: int = 0
    body_digest: str = ""
    body_text: str | None = None
    credential: Credential = Credential.NONE
    placeholders: tuple[str, ...] = ()
    pushes: tuple[RefUpdate, ...] = ()
    views: tuple[str, ...] = ()
    """What a body that is no text holds as text (files of an archive, objects of a pack), `()` where not looked at."""
    views_whole: bool = True
    """Whether `views` is all of it; where it is not, the body may hold anything that was read."""
    leads_out: bool = False
    """Of a body without `body_text`, whether it may name a place that a model's provider would connect to."""

    @property
    def url(self) -> str:
        """Return the URL as the ledger and the user see it; a default port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = {"http": 80, "ws": 80, "https": 443, "wss": 443, AGENT_SCHEME: 0}.get(self.scheme)
        port = "" if self.port == default else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}" + (f"?{self.query}" if self.query else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetMessage:
    """A part of a stream that its effect opened: a WebSocket message, or data of a body that streams.

    Takes: `stream`, the id of the effect that opened it; `text`, None where not text or beyond the budget.
    """

    stream: str
    size_bytes: int
    digest: str
    text: str | None = None
    placeholders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetResponse:
    """What came back for a request that left.

    Takes: `status`, 0 where none came; `content_type`, without parameters, lower case; `size_bytes`, `digest`, of the
    body as it came from the far side, decoded from chunks but not decompressed; `text`, the body decompressed and
    decoded, only from sources that the policy trusts or calls sensitive, whole and within the budget, else None;
    `kept`, where the run keeps the body (`offset+length` in its file of inbound bodies), `""` where not; `detail`, one
    line on a failure.
    """

    outcome: Outcome
    status: int = 0
    content_type: str = ""
    size_bytes: int = 0
    digest: str = ""
    text: str | None = None
    kept: str = ""
    detail: str = ""
