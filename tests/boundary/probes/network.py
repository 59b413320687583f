"""Attacks on the network: everything that could carry a byte out of the sandbox."""

import errno
import os
import socket
import struct

from tests.boundary.probes.entry import (
    UNSEEN,
    NotRun,
    Scene,
    Stopped,
    World,
    attempt,
    block,
    plain_call,
    probe,
)

_OUT = "a way out"
_NO_ROUTE = "ENETUNREACH|ECONNREFUSED|EHOSTUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT"


def _stream(scene: Scene, family: int, where: str, protocol: int = 0) -> str:
    client = socket.socket(family, socket.SOCK_STREAM, protocol)
    client.settimeout(2)
    client.connect((where, scene.port))
    client.send(scene.name.encode())
    return "the host answered"


def _outside(scene: Scene, family: int) -> str:
    where = scene.outside4 if family == socket.AF_INET else scene.outside6
    if not where:
        raise NotRun("this machine has no address but loopback")
    return where


@probe("connect to a service on the host's loopback", "services of the host", stops="ECONNREFUSED")
def _(scene: Scene) -> str:
    return _stream(scene, socket.AF_INET, "127.0.0.1")


@probe(
    "connect to a service on the host's v6 loopback",
    "services of the host",
    stops="ECONNREFUSED|EADDRNOTAVAIL",
)
def _(scene: Scene) -> str:
    return _stream(scene, socket.AF_INET6, "::1")


@probe("connect to a mapped v4 address", "services of the host", stops="ECONNREFUSED")
def _(scene: Scene) -> str:
    return _stream(scene, socket.AF_INET6, "::ffff:127.0.0.1")


@probe("connect to the unspecified address", "services of the host", stops="ECONNREFUSED")
def _(scene: Scene) -> str:
    return _stream(scene, socket.AF_INET, "0.0.0.0")


@probe("connect to an address outside", _OUT, stops=_NO_ROUTE)
def _(scene: Scene) -> str:
    return _stream(scene, socket.AF_INET, _outside(scene, socket.AF_INET))


@probe("connect to a v6 address outside", _OUT, stops=_NO_ROUTE)
def _(scene: Scene) -> str:
    return _stream(scene, socket.AF_INET6, _outside(scene, socket.AF_INET6))


@probe("connect by several paths", _OUT, stops=_NO_ROUTE + "|EPERM")
def _(scene: Scene) -> str:
    return _stream(scene, socket.AF_INET, _outside(scene, socket.AF_INET), 262)


@probe("connect by the first bytes sent", _OUT, stops=_NO_ROUTE)
def _(scene: Scene) -> str:
    client = socket.socket()
    client.sendto(scene.name.encode(), 0x20000000, (_outside(scene, socket.AF_INET), scene.port))
    return "the host answered"


def _datagram(scene: Scene, family: int, where: str, port: int, protocol: int = 0) -> str:
    client = socket.socket(family, socket.SOCK_DGRAM, protocol)
    client.sendto(scene.name.encode(), (where, port))
    raise Stopped(UNSEEN)


@probe("send a datagram to the host's loopback", "services of the host", stops=UNSEEN)
def _(scene: Scene) -> str:
    return _datagram(scene, socket.AF_INET, "127.0.0.1", scene.port)


@probe("send a datagram outside", _OUT, stops=_NO_ROUTE + "|" + UNSEEN)
def _(scene: Scene) -> str:
    return _datagram(scene, socket.AF_INET, _outside(scene, socket.AF_INET), scene.port)


@probe("send a v6 datagram outside", _OUT, stops=_NO_ROUTE + "|" + UNSEEN)
def _(scene: Scene) -> str:
    return _datagram(scene, socket.AF_INET6, _outside(scene, socket.AF_INET6), scene.port)


@probe("send a broadcast", _OUT, stops=_NO_ROUTE + "|" + UNSEEN)
def _(scene: Scene) -> str:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    client.sendto(scene.name.encode(), ("127.255.255.255", scene.port))
    raise Stopped(UNSEEN)


@probe("carry data out in a name's question", "the resolver", stops=_NO_ROUTE + "|" + UNSEEN)
def _(scene: Scene) -> str:
    question = b"".join(bytes((len(part),)) + part for part in (scene.slug.encode()[:60], b"test")) + b"\0"
    packet = struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + question + struct.pack("!HH", 16, 1)
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(packet, ("127.0.0.1", scene.resolver_port))
    raise Stopped(UNSEEN)


def _echo(family: int, kind: int, protocol: int, request: int, where: str) -> str:
    client = socket.socket(family, kind, protocol)
    client.settimeout(2)
    body = struct.pack("!BBHHH", request, 0, 0, 7, 1)
    total = sum(struct.unpack("!4H", body))
    body = body[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + body[4:]
    client.sendto(body, (where, 0))
    return f"{len(client.recv(200))} bytes came back"


@probe("ping by a raw socket", _OUT)
def _(scene: Scene) -> str:
    return _echo(socket.AF_INET, socket.SOCK_RAW, 1, 8, scene.outside4 or "127.0.0.1")


@probe("ping by a raw v6 socket", _OUT)
def _(_scene: Scene) -> str:
    socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)
    return "a raw socket was given"


@probe("ping by a ping socket", _OUT, stops="EACCES|EPERM|" + _NO_ROUTE)
def _(scene: Scene) -> str:
    return _echo(socket.AF_INET, socket.SOCK_DGRAM, 1, 8, scene.outside4 or "127.0.0.1")


_AF = {"vsock": 40, "packet": 17, "alg": 38, "xdp": 44, "tipc": 30, "bluetooth": 31, "can": 29, "rds": 21,
       "ax25": 3, "ipx": 4, "appletalk": 5, "x25": 9, "llc": 26, "key": 15, "nfc": 39, "smc": 43, "qipcrtr": 42,
       "phonet": 35, "pppox": 24, "ieee802154": 36, "caif": 37, "kcm": 41, "mctp": 45, "rxrpc": 33}  # fmt: skip
_KIND = {"packet": 3, "alg": 5, "xdp": 3, "can": 3, "bluetooth": 5, "key": 3, "rds": 5, "qipcrtr": 2, "nfc": 1,
         "ax25": 2, "ipx": 2, "appletalk": 2, "phonet": 2, "ieee802154": 2, "kcm": 2, "mctp": 2, "rxrpc": 2,
         "x25": 5, "llc": 2}  # fmt: skip
_PROTOCOL = {"can": 1, "key": 2, "bluetooth": 0, "rxrpc": 2}

for _name, _family in _AF.items():
    plain_call(
        f"make a {_name} socket", "a door beside the network namespace", 41, _family, _KIND.get(_name, 1),
        _PROTOCOL.get(_name, 0),
    )  # fmt: skip

_NETLINK = {"sock diag": 4, "firewall": 12, "audit": 9, "device events": 15, "ipsec": 6, "generic": 16,
            "security": 7, "connector": 11, "crypto": 21, "scsi": 18, "rdma": 20}  # fmt: skip

for _name, _number in _NETLINK.items():
    plain_call(f"make a netlink socket for {_name}", "the kernel's configuration", 41, 16, 3, _number)

plain_call("make a packet socket the old way", _OUT, 41, 2, 10, 0x300)
plain_call("make a raw socket with flags in its type", _OUT, 41, 2, 3 | 0o2000000, 255)
plain_call("make a raw socket with high bits", _OUT, 41, 0x700000002, 0x700000003, 255)
plain_call("make a vsock socket with high bits", _OUT, 41, 0x700000028, 1, 0)
plain_call("make a pair of odd sockets", "a door beside the network namespace", 53, 30, 1, 0, b"12345678")


@probe("reach the machine's own supervisor", "a door beside the network namespace")
def _(_scene: Scene) -> str:
    client = socket.socket(40, socket.SOCK_STREAM)
    client.settimeout(0.2)
    try:
        client.bind((0xFFFFFFFF, 0xFFFFFFFF))
    except OSError as error:
        if error.errno == errno.EPERM:
            raise
    return "a socket to the supervisor was had"


def _link_request(kind: int, body: bytes) -> str:
    client = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    client.settimeout(2)
    client.send(struct.pack("=IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)
    answer = client.recv(4096)
    code = struct.unpack_from("=i", answer, 16)[0]
    if code:
        raise OSError(-code, os.strerror(-code))
    return "the network was changed"


@probe("make a network device", "the network namespace", control=World.APART)
def _(_scene: Scene) -> str:
    name = struct.pack("=HH8s", 12, 3, b"probe0\0\0")
    info = struct.pack("=HH8s", 12, 1, b"veth\0\0\0\0")[:12]
    nested = struct.pack("=HH", 4 + len(info), 18) + info
    return _link_request(16, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + name + nested)


@probe("add an address", "the network namespace", control=World.APART)
def _(_scene: Scene) -> str:
    body = struct.pack("=BBBBI", 2, 32, 0, 0, 1) + struct.pack("=HH4s", 8, 2, bytes((10, 9, 8, 7)))
    return _link_request(20, body)


@probe("mark its packets", "routing rules")
def _(_scene: Scene) -> str:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, 36, 1)
    return "packets were marked"


@probe("change the packet filter", "the network namespace", control=World.APART)
def _(_scene: Scene) -> str:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    record = block(84)
    record.raw = b"filter".ljust(84, b"\0")
    return attempt(55, client.fileno(), 0, 64, record, struct.pack("=i", 84))


@probe("shut the loopback down", "the network namespace", control=World.APART)
def _(_scene: Scene) -> str:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return attempt(16, client.fileno(), 0x8914, struct.pack("16sh14x", b"lo", 0))
