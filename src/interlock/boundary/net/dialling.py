"""What the parts of dialling share: the result, the failure, and the wait for a socket."""

import asyncio
import socket
import ssl
from functools import partial

from interlock.boundary.net.resets import resets_of
from interlock.model.records import dataclass
from interlock.model.requests import Outcome


class DialError(Exception):
    """No connection came about.

    Takes: `message`, `hint`, for the user; `kind`, one of `refused`, `timed-out`, `unreachable`, `unknown-name`,
    `local-address`, `misdirected`, `certificate`, `tls`, `proxy`.
    Holds: `outcome` is FAILED: nothing of a request had left.
    """

    def __init__(self, message: str, kind: str, outcome: Outcome = Outcome.FAILED, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.outcome = outcome
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialled:
    """A connection to the far side.

    Takes: `sock`, not blocking, its TLS handshake done; `alpn`, the protocol agreed on, `""` for none; `peer`, the
    address that was dialled, or `proxy` and the proxy's host and port.
    """

    sock: socket.socket | ssl.SSLSocket
    alpn: str
    peer: str


async def ready(sock: socket.socket, *, to_write: bool) -> None:
    """Wait until a socket can be read from or written to, or has come to an error."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    descriptor = sock.fileno()
    add, remove = (loop.add_writer, loop.remove_writer) if to_write else (loop.add_reader, loop.remove_reader)
    add(descriptor, _wake, waiter)
    resets_of(loop).add(descriptor, partial(_wake, waiter))
    try:
        await waiter
    finally:
        resets_of(loop).remove(descriptor)
        remove(descriptor)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
