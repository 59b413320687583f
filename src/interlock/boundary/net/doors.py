"""The doors of the sandbox's network as the monitor holds them: listening sockets, and where a caller meant to go."""

import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from interlock.boundary.net.plan import Published
from interlock.model.records import dataclass

if TYPE_CHECKING:
    import asyncio

DOOR_V4 = "198.18.0.1"
DOOR_V6 = "fd31:9e4c:77a2::1"
"""The sandbox's only addresses besides its loopback. Nothing in 198.18.0.0/28 and fd31:9e4c:77a2::/124 is a
placeholder for a name."""

TCP_PORT = 1
TCP_DOORS_V4 = tuple(f"198.18.0.{number}" for number in range(8, 16))
TCP_DOORS_V6 = tuple(f"fd31:9e4c:77a2::{number:x}" for number in range(8, 16))
"""Several, since the kernel keeps a closed connection's pair of addresses and ports for two minutes: with one door,
some 30,000 connections to different hosts in that time would use the pairs up, and later ones wait for seconds."""

DNS_PORT = 53

SIGNING = "signing"
"""Tags the socket that signatures are asked for at."""

_SO_ORIGINAL_DST = 80
"""Of both families: IP6T_SO_ORIGINAL_DST has the same number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """The sockets that the sandbox's first process opened inside, v4 first; v6 where the kernel has it.

    Takes: `tcp`, listeners that every foreign connection comes to; `dns`, datagram sockets that every foreign
    datagram to port 53 comes to (an answer sent from one is seen as sent by the server that was asked);
    `published`, listeners on the sandbox's own loopback; `signing`, the run's own agent socket.
    Holds: all are non-blocking and closed on exec.
    """

    tcp: tuple[socket.socket, ...] = ()
    dns: tuple[socket.socket, ...] = ()
    published: tuple[tuple[Published, tuple[socket.socket, ...]], ...] = ()
    signing: tuple[socket.socket, ...] = ()

    def all(self) -> tuple[socket.socket, ...]:
        """Return every socket."""
        shown = (one for _, sockets in self.published for one in sockets)
        return (*self.tcp, *self.dns, *shown, *self.signing)

    def close(self) -> None:
        """Close them all: from now on, who comes is refused. May be called again."""
        for one in self.all():
            one.close()


class Serving(Protocol):
    """Whoever serves the doors: it has a loop that all further waiting of the run goes on in."""

    @property
    def loop(self) -> "asyncio.AbstractEventLoop":
        """Return the loop; it is not running and not closed."""
        ...

    def close(self) -> None:
        """End what is open; the run is over. The loop is closed too."""
        ...


Serve = Callable[[Doors], Serving]


def original_destination(sock: socket.socket) -> tuple[str, int]:
    """Tell where the connection was meant to go.

    Takes: `sock`, accepted from one of `Doors.tcp`.
    Returns: the address as text, and the port.
    Raises: OSError, if it was made straight to the door, or the kernel no longer knows.
    """
    if sock.family == socket.AF_INET6:
        raw = sock.getsockopt(socket.IPPROTO_IPV6, _SO_ORIGINAL_DST, 28)
        address, doors = socket.inet_ntop(socket.AF_INET6, raw[8:24]), TCP_DOORS_V6
    else:
        raw = sock.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, 16)
        address, doors = socket.inet_ntop(socket.AF_INET, raw[4:8]), TCP_DOORS_V4
    port: int = struct.unpack_from("!H", raw, 2)[0]
    if port == TCP_PORT and address in doors:
        raise OSError(0, "the connection was made straight to the door")
    return address, port


def hand_over(channel: socket.socket, tagged: list[tuple[str, socket.socket]]) -> None:
    """Send the sockets to the monitor, and close them here.

    Takes: `tagged`, each with what it is: `tcp`, `dns`, `signing`, or a published port's number.
    """
    for at in range(0, len(tagged), _AT_ONCE):
        part = tagged[at : at + _AT_ONCE]
        text = b"D" + "\0".join(tag for tag, _ in part).encode("ascii")
        socket.send_fds(channel, [text], [one.fileno() for _, one in part])
    for _, one in tagged:
        one.close()


_AT_ONCE = 128
"""Sockets in a message; the kernel takes 253."""

MESSAGE_DESCRIPTORS = _AT_ONCE


def take_over(published: tuple[Published, ...], received: list[tuple[str, int]]) -> Doors:
    """Make doors of the descriptors that `hand_over` sent.

    Takes: `received`, tags and descriptors, which belong to the doors from now on.
    """
    by_tag: dict[str, list[socket.socket]] = {}
    for tag, descriptor in received:
        one = socket.socket(fileno=descriptor)
        one.setblocking(False)
        by_tag.setdefault(tag, []).append(one)
    return Doors(
        tcp=tuple(by_tag.get("tcp", ())),
        dns=tuple(by_tag.get("dns", ())),
        published=tuple((one, tuple(by_tag.get(str(one.port), ()))) for one in published),
        signing=tuple(by_tag.get(SIGNING, ())),
    )
