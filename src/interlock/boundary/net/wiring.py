"""Leads everything foreign to our doors, from inside the sandbox's own network namespace, which has no way out.

Runs in the sandbox's first process while it still may; raw netlink, since no library starts as fast.
Source: rtnetlink(7); the kernel's uapi headers linux/netfilter/nf_tables.h and nfnetlink.h.
"""

import fcntl
import os
import socket
import struct

from interlock.boundary.net.doors import (
    DNS_PORT,
    DOOR_V4,
    DOOR_V6,
    TCP_DOORS_V4,
    TCP_DOORS_V6,
    TCP_PORT,
)
from interlock.boundary.net.plan import Published
from interlock.model.errors import BoundaryError, InputError

BACKLOG = 4096

TABLE = "interlock"

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_IPV6_FREEBIND = 78
_NETLINK_NETFILTER = 12
_NLMSG_ERROR = 2
_REQUEST, _ACK, _EXCLUSIVE, _CREATE, _APPEND = 0x1, 0x4, 0x200, 0x400, 0x800
_NESTED = 0x8000

_NEW_ADDRESS, _NEW_ROUTE = 20, 24
_TABLE_LOCAL, _BY_BOOT, _SCOPE_HOST, _TYPE_LOCAL = 255, 3, 254, 2
_NO_DAD = 0x02

_NFTABLES = 10
_BATCH_BEGIN, _BATCH_END = 16, 17
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE = 0, 3, 6
_INET, _V4, _V6 = 1, 2, 10
_HOOK_OUTPUT = 3
_PRIORITY_NAT, _PRIORITY_FILTER = -100, 0
_DROP, _ACCEPT = 0, 1
_META_FAMILY, _META_PROTOCOL = 15, 16
_NETWORK, _TRANSPORT = 1, 2
_EQUAL, _UNEQUAL = 0, 1
_TCP, _UDP, _ICMP, _ICMP6 = 6, 17, 1, 58
_ECHO, _ECHO6 = 8, 128


def raise_loopback() -> None:
    """Bring the namespace's loopback up; it has no other device."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack_from("h", fcntl.ioctl(probe, _SIOCGIFFLAGS, request), 16)[0]
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def wire(published: tuple[Published, ...]) -> tuple[list[tuple[str, socket.socket]], str]:
    """Set addresses, routes and rules, and open the listening sockets.

    Returns: the sockets with their tags (see `doors.hand_over`), and what to note in the receipt.
    Raises: BoundaryError, if this kernel cannot lead traffic to us; InputError, if a port cannot be published.
    Holds: loopback is up, and CAP_NET_ADMIN and CAP_NET_BIND_SERVICE count in this network namespace.
    """
    try:
        _route(socket.AF_INET, DOOR_V4)
    except OSError as error:
        raise BoundaryError(
            f"foreign addresses cannot be routed to the monitor: {error.strerror or error}",
            hint="run `interlock doctor`",
        ) from None
    missing = _try_v6()
    try:
        _rule(v6=not missing)
    except OSError as error:
        raise BoundaryError(
            f"traffic cannot be led to the monitor: nf_tables here says {error.strerror or error}",
            hint="load nf_tables with NAT (modprobe nf_tables nft_nat nft_chain_nat), or run without the network",
        ) from None
    families = [(socket.AF_INET, DOOR_V4, TCP_DOORS_V4, "127.0.0.1")]
    if not missing:
        families.append((socket.AF_INET6, DOOR_V6, TCP_DOORS_V6, "::1"))
    tagged: list[tuple[str, socket.socket]] = []
    for family, door, tcp, _ in families:
        tagged.extend(("tcp", _listen(family, one, TCP_PORT)) for one in tcp)
        tagged.append(("dns", _open(family, socket.SOCK_DGRAM, door, DNS_PORT)))
    for one in published:
        for family, _, _, loopback in families:
            try:
                if not 0 < one.port < 1 << 16:
                    raise OSError(0, "no such port")
                tagged.append((str(one.port), _listen(family, loopback, one.port)))
            except OSError as error:
                raise InputError(
                    f"port `{one.port}` cannot be published in the sandbox: {error.strerror}",
                    hint="publish each port once, from 1 to 65535",
                ) from None
    return tagged, f"v4 alone ({missing})" if missing else "v4 v6"


def _try_v6() -> str:
    """Set v6 up. Returns: why there is none, or nothing."""
    try:
        with _open(socket.AF_INET6, socket.SOCK_STREAM, "::1", 0):
            pass
        _route(socket.AF_INET6, DOOR_V6)
    except OSError as error:
        # Then no v6 packet goes anywhere: there is still no way out.
        return error.strerror or str(error)
    return ""


def _open(family: int, kind: int, address: str, port: int) -> socket.socket:
    one = socket.socket(family, kind)
    try:
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if not address.startswith("::"):
                one.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)
        one.bind((address, port))
    except BaseException:
        one.close()
        raise
    return one


def _listen(family: int, address: str, port: int) -> socket.socket:
    one = _open(family, socket.SOCK_STREAM, address, port)
    one.listen(BACKLOG)
    return one


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", len(data) + 4, kind) + data + b"\0" * (-len(data) % 4)


def _message(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags | _REQUEST, sequence, 0) + body


def _ask(protocol: int, messages: list[bytes], answers: int) -> None:
    """Send messages in one piece and wait for the answers. Raises: OSError, with the kernel's reason."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as kernel:
        kernel.bind((0, 0))
        kernel.settimeout(5)
        kernel.send(b"".join(messages))
        while answers > 0:
            data = kernel.recv(1 << 16)
            at = 0
            while at + 16 <= len(data):
                size, kind = struct.unpack_from("=IH", data, at)
                if kind == _NLMSG_ERROR:
                    code = -struct.unpack_from("=i", data, at + 16)[0]
                    if code:
                        raise OSError(code, os.strerror(code))
                    answers -= 1
                at += max(16, (size + 3) & ~3)


def _route(family: int, door: str) -> None:
    """Give loopback the door's address, and take every address there is for one of our own.

    The source of what is sent is the door's address too: a program that learns "its" address by looking at the
    source of a socket gets one at which it can be reached.
    """
    address = socket.inet_pton(family, door)
    loopback = socket.if_nametoindex("lo")
    own = struct.pack("=BBBBI", family, len(address) * 8, _NO_DAD, 0, loopback)
    own += _attribute(1, address) + _attribute(2, address)
    route = struct.pack("=BBBBBBBBI", family, 0, 0, 0, _TABLE_LOCAL, _BY_BOOT, _SCOPE_HOST, _TYPE_LOCAL, 0)
    route += _attribute(4, struct.pack("=I", loopback)) + _attribute(7, address)
    for sequence, (kind, body) in enumerate(((_NEW_ADDRESS, own), (_NEW_ROUTE, route)), 1):
        _ask(socket.NETLINK_ROUTE, [_message(kind, _ACK | _CREATE | _EXCLUSIVE, sequence, body)], 1)


def _nest(kind: int, *parts: bytes) -> bytes:
    return _attribute(kind | _NESTED, b"".join(parts))


def _text(kind: int, text: str) -> bytes:
    return _attribute(kind, text.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("!I", value & 0xFFFFFFFF))


def _step(name: str, *parts: bytes) -> bytes:
    return _nest(1, _text(1, name), _nest(2, *parts))


def _value(kind: int, data: bytes) -> bytes:
    return _nest(kind, _attribute(1, data))


def _load(register: int, data: bytes) -> bytes:
    return _step("immediate", _number(1, register), _value(2, data))


def _meta(key: int) -> bytes:
    return _step("meta", _number(1, 1), _number(2, key))


def _payload(base: int, offset: int, size: int) -> bytes:
    return _step("payload", _number(1, 1), _number(2, base), _number(3, offset), _number(4, size))


def _compare(operation: int, data: bytes) -> bytes:
    return _step("cmp", _number(1, 1), _number(2, operation), _value(3, data))


def _verdict(code: int) -> bytes:
    return _step("immediate", _number(1, 0), _nest(2, _nest(2, _number(1, code))))


def _lead(family: int, addresses: tuple[str, ...], port: int) -> bytes:
    """Change the destination (the `nat` expression, of type 1: dnat), to one of a range that depends on the old one."""
    kind = socket.AF_INET if family == _V4 else socket.AF_INET6
    return (
        _load(1, socket.inet_pton(kind, addresses[0]))
        + _load(2, socket.inet_pton(kind, addresses[-1]))
        + _load(3, struct.pack("!H", port))
        + _step("nat", _number(1, 1), _number(2, family), _number(3, 1), _number(4, 2), _number(5, 3))
    )


def _outside(destination: bytes, mask: bytes, network: bytes) -> bytes:
    """Go on only if the destination lies in another network."""
    masked = _step(
        "bitwise", _number(1, 1), _number(2, 1), _number(3, len(mask)),
        _value(4, mask), _value(5, bytes(len(mask))),
    )  # fmt: skip
    return destination + masked + _compare(_UNEQUAL, network)


def _foreign_v4() -> bytes:
    to = _payload(_NETWORK, 16, 4)
    return (
        _meta(_META_FAMILY) + _compare(_EQUAL, bytes((_V4,)))
        + _outside(to, b"\xff\xff\xff\xf0", socket.inet_pton(socket.AF_INET, "198.18.0.0"))
        + _outside(to, b"\xff\0\0\0", b"\x7f\0\0\0")
    )  # fmt: skip


def _foreign_v6() -> bytes:
    to = _payload(_NETWORK, 24, 16)
    return (
        _meta(_META_FAMILY) + _compare(_EQUAL, bytes((_V6,)))
        + _outside(to, b"\xff" * 15 + b"\xf0", socket.inet_pton(socket.AF_INET6, "fd31:9e4c:77a2::"))
        + to + _compare(_UNEQUAL, socket.inet_pton(socket.AF_INET6, "::1"))
    )  # fmt: skip


def _rule(*, v6: bool) -> None:
    """Make the one table: foreign TCP and DNS come to the doors, and pings go nowhere.

    Datagrams to other ports need no rule: nobody listens there, so the kernel refuses them at once.
    """
    doors = [(_V4, _foreign_v4(), DOOR_V4, TCP_DOORS_V4, _ICMP, _ECHO)]
    if v6:
        doors.append((_V6, _foreign_v6(), DOOR_V6, TCP_DOORS_V6, _ICMP6, _ECHO6))
    rules: list[tuple[str, bytes]] = []
    for family, foreign, dns, tcp_doors, icmp, echo in doors:
        protocol = _meta(_META_PROTOCOL)
        tcp = protocol + _compare(_EQUAL, bytes((_TCP,)))
        names = (
            protocol + _compare(_EQUAL, bytes((_UDP,)))
            + _payload(_TRANSPORT, 2, 2) + _compare(_EQUAL, struct.pack("!H", DNS_PORT))
        )  # fmt: skip
        ping = (
            protocol + _compare(_EQUAL, bytes((icmp,)))
            + _payload(_TRANSPORT, 0, 1) + _compare(_EQUAL, bytes((echo,)))
        )  # fmt: skip
        rules.append(("lead", foreign + tcp + _lead(family, tcp_doors, TCP_PORT)))
        rules.append(("lead", foreign + names + _lead(family, (dns,), DNS_PORT)))
        rules.append(("drop", foreign + ping + _verdict(_DROP)))
    bodies = [(_NEW_TABLE, _CREATE, _text(1, TABLE))]
    for chain, kind, priority in (("lead", "nat", _PRIORITY_NAT), ("drop", "filter", _PRIORITY_FILTER)):
        hook = _nest(4, _number(1, _HOOK_OUTPUT), _number(2, priority))
        bodies.append(
            (
                _NEW_CHAIN,
                _CREATE,
                _text(1, TABLE) + _text(3, chain) + hook + _number(5, _ACCEPT) + _text(7, kind),
            )
        )
    bodies.extend(
        (_NEW_RULE, _CREATE | _APPEND, _text(1, TABLE) + _text(2, chain) + _nest(4, steps))
        for chain, steps in rules
    )
    edge = struct.pack("!BBH", 0, 0, _NFTABLES)
    ours = struct.pack("!BBH", _INET, 0, 0)
    messages = [_message(_BATCH_BEGIN, 0, 0, edge)]
    for sequence, (type_, flags, body) in enumerate(bodies, 1):
        messages.append(_message(_NFTABLES << 8 | type_, flags | _ACK, sequence, ours + body))
    messages.append(_message(_BATCH_END, 0, len(bodies) + 1, edge))
    _ask(_NETLINK_NETFILTER, messages, len(bodies))
