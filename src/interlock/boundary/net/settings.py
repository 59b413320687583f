"""What the front shares with the code of each protocol: where a connection was going, and how exchanges begin."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from interlock.boundary.net.plan import NetLimits, NetPlan
from interlock.boundary.net.sides import ClientSide, Exchange, FarSide, RequestHead
from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a client's connection was going: every request on it must name this very place.

    Takes: `host`, canonical name, or IP literal without brackets; `tls`, whether we end TLS on it; `address`, the
    IP literal that the client itself dialled, `""` where it dialled a placeholder address; `published`, whether the
    connection goes to a published port: the request may then name any host; `h2`, whether the client would have
    spoken HTTP/2, had we known that the far side does.
    """

    host: str
    port: int
    tls: bool
    address: str = ""
    published: bool = False
    h2: bool = False


class Setting(Protocol):
    """What a client's side (`Http1Client`, `Http2Client`) gets from the front, with its link and its place."""

    loop: asyncio.AbstractEventLoop
    plan: NetPlan

    def begin(self, client: ClientSide, head: RequestHead, place: Place) -> Exchange:
        """Begin an exchange for a whole, checked head.

        The client's side then calls `body_data`, `body_end` (always, even without a body) and `client_gone`. The
        exchange spools, proposes, sends on and answers; 413, 403, 502 and `interim(100)` are its own.
        """
        ...

    def turned_away(self, place: Place, reason: str) -> None:
        """Report a head that was refused before it was an effect; the client's side answers it."""
        ...


class FarConnection(Protocol):
    """A connection of the pool to a far side: `Http1Far(link, setting)` and `Http2Far(link, setting)`.

    It sets the link's callbacks itself. Holds: `on_gone` comes once, when it takes no exchange any more;
    exchanges that still run on it go on, or get `came_failure`.
    """

    on_idle: Callable[["FarConnection"], None]
    """The last exchange on it has ended, and it can take another."""
    on_gone: Callable[["FarConnection"], None]

    @property
    def room(self) -> bool:
        """Say whether another exchange can begin on it now."""
        ...

    def begin(self, head: RequestHead, exchange: Exchange, *, body: bool) -> FarSide:
        """Send the head on; without a `body` this ends the request.

        The request is re-written from the head alone: `host` or `:authority` from its host and port, `content-length`
        or chunks from its length. The exchange's `came_*` follow, never from within this call.
        """
        ...

    def close(self) -> None:
        """Close it: no exchange runs on it."""
        ...


class FarSetting(Protocol):
    """What a far connection needs of its surroundings."""

    loop: asyncio.AbstractEventLoop
    limits: NetLimits
