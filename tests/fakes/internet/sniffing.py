"""The trap below all servers: every packet that begins something is written down, whoever it is for."""

import ctypes
import ipaddress
import socket
import struct
import threading

from tests.fakes.internet.journal import Journal
from tests.fakes.internet.names import PUBLIC_RESOLVERS, RESOLVER4, RESOLVER6

_ALL = 3
_OUTGOING = 4
_ATTACH_FILTER = 26
_RESOLVERS = {RESOLVER4, RESOLVER6, *PUBLIC_RESOLVERS}
_KERNEL_ICMP6 = {1, 2, 3, 4, 129, 130, 131, 132, 133, 134, 135, 136, 143}
_KERNEL_ICMP4 = {0, 3, 11, 12}
_PROTOCOLS = {1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 58: "icmp6", 132: "sctp", 136: "udplite"}


def _filter() -> bytes:
    """Return classic BPF that lets TCP pass only where it opens a connection, and all else."""
    code = [
        (0x28, 0, 0, 12),  # the ethernet type
        (0x15, 0, 5, 0x0800),
        (0x30, 0, 0, 23),
        (0x15, 0, 9, 6),
        (0xB1, 0, 0, 14),  # the length of the v4 header
        (0x50, 0, 0, 27),
        (0x05, 0, 0, 4),
        (0x15, 0, 5, 0x86DD),
        (0x30, 0, 0, 20),
        (0x15, 0, 3, 6),
        (0x30, 0, 0, 67),
        (0x54, 0, 0, 0x12),  # SYN and ACK
        (0x15, 0, 1, 0x02),
        (0x06, 0, 0, 0x40000),
        (0x06, 0, 0, 0),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in code)


def watch(journal: Journal) -> None:
    """Start to write down what passes this namespace's loopback."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
    program = ctypes.create_string_buffer(_filter())
    wire.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HL", 15, ctypes.addressof(program)))
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    threading.Thread(target=_run, args=(wire, journal), daemon=True).start()


def _run(wire: socket.socket, journal: Journal) -> None:
    while True:
        frame, where = wire.recvfrom(70000)
        # Loopback shows each packet twice: once going, once coming.
        if where[2] == _OUTGOING:
            _note(frame[14:], where[1], journal)


def _note(packet: bytes, kind: int, journal: Journal) -> None:
    if kind == 0x0800:
        protocol, rest = packet[9], packet[(packet[0] & 15) * 4 :]
        source, target = packet[12:16], packet[16:20]
    elif kind == 0x86DD:
        protocol, rest = packet[6], packet[40:]
        source, target = packet[8:24], packet[24:40]
    else:
        journal.note("packet", protocol=f"ether {kind:#x}", address="", port=0, payload=packet[:200])
        return
    sender, address = (str(ipaddress.ip_address(one)) for one in (source, target))
    port = struct.unpack_from("!H", rest, 2)[0] if protocol in (6, 17, 132, 136) and len(rest) >= 4 else 0
    if protocol == 17 and sender in _RESOLVERS and rest[:2] == b"\0\x35":
        return  # an answer of ours
    if (protocol == 58 and rest[0] in _KERNEL_ICMP6) or (protocol == 1 and rest[0] in _KERNEL_ICMP4):
        return  # the kernel's own answers
    journal.note(
        "packet",
        protocol=_PROTOCOLS.get(protocol, str(protocol)),
        address=address,
        port=port,
        payload=rest[8:600] if protocol == 17 else rest[:200],
    )
