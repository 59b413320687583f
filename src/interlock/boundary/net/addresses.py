"""Which addresses a name of the world must not lead to: this machine, a cloud's metadata service, placeholders."""

import socket
import struct

from interlock.boundary.net.names import is_placeholder_v4, packed

METADATA = {
    packed(text): owner
    for text, owner in {
        "fd00:ec2::254": "AWS",
        "fd20:ce::254": "Google Cloud",
        "100.100.100.200": "Alibaba Cloud",
        "168.63.129.16": "Azure",
        "192.0.0.192": "Oracle Cloud",
    }.items()
}
"""Services that tell a machine its own keys and do not lie in the link-local range (169.254.169.254 does)."""

_GET_ADDRESSES, _NEW_ADDRESS, _DONE, _ERROR = 22, 20, 3, 2
_REQUEST, _DUMP = 0x1, 0x300
_IFA_ADDRESS, _IFA_LOCAL = 1, 2

_6TO4 = b"\x20\x02"
_LOCAL_NAT64 = bytes.fromhex("0064ff9b0001")


def nowhere(address: str) -> str:
    """Say why nothing may be dialled at an address, not even when it was named itself; `""` where it may."""
    raw = packed(address)
    if not raw:
        return "not an address"
    if len(raw) == 16:
        if raw[:12] == bytes(12) and raw[12:] != b"\0\0\0\1":
            return "unspecified" if raw == bytes(16) else "an obsolete spelling of an IPv4 address"
        return "multicast" if raw[0] == 0xFF else ""
    if raw[0] == 0:
        return "unspecified"
    if raw[0] >= 224:
        return "multicast" if raw[0] < 240 else "reserved"
    return "a placeholder (198.18.0.0/15)" if is_placeholder_v4(raw) else ""


def local(address: str) -> str:
    """Say in which way an address is this machine's own concern, so that no name may lead to it; `""` where it is not.

    Private addresses are not: a company's hosts have them.
    """
    raw = packed(address)
    if len(raw) == 16:
        for start, at in ((_6TO4, 2), (_LOCAL_NAT64, 12)):
            if raw.startswith(start):
                return local(socket.inet_ntop(socket.AF_INET, raw[at : at + 4]))
    why = nowhere(address)
    if why:
        return why
    if raw in METADATA:
        return f"the metadata service of {METADATA[raw]}"
    if len(raw) == 16:
        if raw == bytes(15) + b"\1":
            return "loopback"
        return "link-local" if raw[0] == 0xFE and raw[1] & 0xC0 == 0x80 else ""
    if raw[0] == 127:
        return "loopback"
    return "link-local, as metadata services are" if raw[:2] == b"\xa9\xfe" else ""


def own() -> frozenset[bytes]:
    """Return the addresses of this machine's interfaces, 4 or 16 bytes each, as the kernel lists them.

    Source: Linux, rtnetlink (RTM_GETADDR).
    """
    found: set[bytes] = set()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asked:
        asked.settimeout(1)
        asked.send(
            struct.pack("=IHHIIBxxxI", 24, _GET_ADDRESSES, _REQUEST | _DUMP, 1, 0, socket.AF_UNSPEC, 0)
        )
        while True:
            data = asked.recv(256 * 1024)
            at = 0
            while at + 16 <= len(data):
                size, kind = struct.unpack_from("=IH", data, at)
                if kind in (_DONE, _ERROR) or size < 16:
                    return frozenset(found)
                if kind == _NEW_ADDRESS:
                    attributes = _attributes(data[at + 24 : at + size])
                    address = attributes.get(_IFA_LOCAL, attributes.get(_IFA_ADDRESS, b""))
                    found.add(address)
                at += (size + 3) & ~3


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4:
            break
        found[kind] = data[at + 4 : at + size]
        at += (size + 3) & ~3
    return found
