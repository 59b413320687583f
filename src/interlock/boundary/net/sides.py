"""The two sides of an exchange and the link below each: what HTTP/1.1, HTTP/2 and WebSocket code have in common.

Everything is called back from one thread's event loop; nothing here blocks or awaits.
"""

from collections.abc import Callable
from typing import Protocol

from interlock.model.records import dataclass
from interlock.model.requests import Outcome

RawHeaders = tuple[tuple[bytes, bytes], ...]
"""Fields in their order: names in lower case, values without outer white space."""


class Link(Protocol):
    """A byte stream of a non-blocking socket, plain or TLS, with its loop callbacks.

    Holds: after `close` or `abort` no callback comes but `on_closed`, once.
    """

    on_data: Callable[[bytes], None]
    on_eof: Callable[[], None]
    """The other end has closed its direction."""
    on_closed: Callable[[], None]
    on_room: Callable[[], None]
    """What was buffered has gone below the low mark again."""
    alpn: str
    """The protocol agreed in the TLS handshake, `""` for none."""

    @property
    def full(self) -> bool:
        """Say whether more is buffered than the high mark: stop producing until `on_room`."""
        ...

    def write(self, data: bytes) -> None:
        """Send now what the socket takes, buffer the rest."""
        ...

    def finish(self) -> None:
        """Close our direction once all is sent; then the link, when the other end has closed too."""
        ...

    def close(self) -> None:
        """Close once all is sent."""
        ...

    def abort(self) -> None:
        """Close at once; what is buffered is lost."""
        ...

    def pause(self) -> None:
        """Read no more until `resume`."""
        ...

    def resume(self) -> None:
        """Read on."""
        ...


class DroppableLink(Link, Protocol):
    """A link that need not wait for the other end's last words."""

    def drop(self) -> None:
        """Close at once: nothing more is due in either direction."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """A request's head, checked and canonical (see `heads`): what is sent on is built from it alone.

    Takes: `method`, upper case; `scheme`, `http` or `https`; `authority_host`, canonical; `target`, the path and query
    as they are sent on, with dot segments removed; `headers`, hop-by-hop fields, `host`, `content-length` and
    `transfer-encoding` taken out; `length`, of the body, 0 for none, None for one of unknown length; `upgrade`,
    `websocket` or `""`; `expects_continue`; `elsewhere`, whether its target named another place than the connection was
    going to.
    """

    method: str
    scheme: str
    authority_host: str
    port: int
    target: str
    headers: RawHeaders
    length: int | None
    protocol: str = "http/1.1"
    upgrade: str = ""
    expects_continue: bool = False
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHead:
    """An answer's head. Takes: `headers`, hop-by-hop fields taken out; `length`, None where unknown."""

    status: int
    headers: RawHeaders
    length: int | None = None


class ClientSide(Protocol):
    """The agent's side of one exchange: an HTTP/1.1 connection's current request, or an HTTP/2 stream."""

    def interim(self, head: AnswerHead) -> None:
        """Send a 1xx answer on."""
        ...

    def answer(self, head: AnswerHead) -> None:
        """Begin the answer, once."""
        ...

    def data(self, chunk: bytes) -> None:
        """Send a part of the answer's body; never held back."""
        ...

    def end(self, trailers: RawHeaders) -> None:
        """End the answer."""
        ...

    def cut(self) -> None:
        """End it so that the client sees it as broken (a reset), since it cannot be completed."""
        ...

    def read_on(self, on: bool) -> None:
        """Take, or stop taking, more of the request's body (a body that streams)."""
        ...


class FarSide(Protocol):
    """The far side of one exchange, once the request's head has been sent."""

    def send(self, chunk: bytes) -> None:
        """Send a part of the request's body."""
        ...

    def end(self, trailers: RawHeaders) -> None:
        """End the request's body."""
        ...

    def abort(self) -> None:
        """Give the exchange up; a connection that cannot go on is closed."""
        ...

    def read_on(self, on: bool) -> None:
        """Take, or stop taking, more of the answer (the client is slow)."""
        ...


class Exchange(Protocol):
    """One request and its answer: stands between a `ClientSide` and a `FarSide`."""

    # the client's code calls these
    def body_data(self, chunk: bytes) -> None:
        """A part of the request's body came."""
        ...

    def body_end(self, trailers: RawHeaders) -> None:
        """The request is whole."""
        ...

    def client_gone(self) -> None:
        """The client closed or reset."""
        ...

    def client_full(self, full: bool) -> None:
        """The client's link is full, or has room again."""
        ...

    # the far side's code calls these
    def came_interim(self, head: AnswerHead) -> None:
        """A 1xx answer came (not 101)."""
        ...

    def came_head(self, head: AnswerHead) -> None:
        """The answer's head came."""
        ...

    def came_data(self, chunk: bytes) -> None:
        """A part of the answer's body came."""
        ...

    def came_end(self, trailers: RawHeaders) -> None:
        """The answer is whole."""
        ...

    def came_failure(self, outcome: Outcome, detail: str) -> None:
        """The far side failed, before or within the answer."""
        ...

    def far_full(self, full: bool) -> None:
        """The far side's link is full, or has room again."""
        ...
