"""What follows from a message of a conversation."""

from collections.abc import Mapping
from typing import Any

from interlock.boundary.mcp.listing import Listing
from interlock.boundary.mcp.messages import Id, Request, Response
from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Onward:
    """It goes to the other side, as it is."""

    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """It goes nowhere, and whoever said it is answered. Takes: `why`, for the record."""

    raw: bytes
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """It goes nowhere, and nobody is answered. Takes: `why`, for the record, `""` where there is nothing to tell."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A request of the client's that is decided first; it counts as under way until `over`.

    Takes: `tool`, the name of the tool, or the method where it is no tool; `arguments`, what the client says with it;
    `elicits`, whether the client can be asked with a form now; `modern`, whether it is asked within the answer.
    """

    request: Request
    tool: str
    arguments: Mapping[str, Any]
    elicits: bool
    modern: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The client answers a request of the server's. Takes: `request`, what the server had asked."""

    request: Request
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """An answer to a request of Interlock's own."""

    id: Id
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """The client gives up a guarded request. Takes: `raw`, what the server is told, `b""` if it knows nothing of it."""

    id: Id
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The server lists tools."""

    response: Response
    listing: Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The server answers a guarded request."""

    id: Id
    response: Response


ClientMove = Onward | Back | Dropped | Guarded | Replied | Ours | Cancelled
ServerMove = Onward | Back | Dropped | Listed | Returned | Ours
