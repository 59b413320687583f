"""Names without a resolver: what a host is called, and the placeholder addresses that stand for names inside.

A name is answered with a pair of private addresses of the run's own, so that looking it up tells nobody anything;
a connection to one of them leads back to the name. An address is never given to a second name: a client that kept it
would speak to another host than it asked for. So the number of names is bounded, and beyond it names are refused.
"""

import os
import re
import socket

MAX_NAMES = 65_000

_V4_FIRST = 0xC6120000  # 198.18.0.0/15, kept for benchmarks (RFC 2544): no host of the world has one
_V4_MASK = 0xFFFE0000
_PER_BLOCK = 254  # .0 and .255 are left out: some stacks take them for a network or a broadcast

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_NAT64 = bytes.fromhex("0064ff9b") + bytes(8)
_MAPPED = bytes(10) + b"\xff\xff"


class NamesFullError(Exception):
    """Every placeholder address of the run is given out."""


def canonical_name(name: str) -> str:
    """Return a host name in lower case without its last dot; `""` if it is none (an IP literal is none).

    Holds: what is returned has ASCII letters, digits, hyphens and underscores alone, labels of 1 to 63, at most 253
    in all, no label that begins or ends with a hyphen, A-labels that decode, and a last label that is no number.
    Source: RFC 1123 §2.1; RFC 5890 §2.3.1; the WHATWG URL standard for the last label.
    """
    if not name.isascii():
        return ""
    name = name.lower().removesuffix(".")
    if not 0 < len(name) <= 253:
        return ""
    labels = name.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels) or _NUMBER.fullmatch(labels[-1]):
        return ""
    if "xn--" in name and not all(_decodes(label) for label in labels if label.startswith("xn--")):
        return ""
    return name


def canonical_literal(text: str) -> str:
    """Return an IP literal, without brackets or zone, in its one spelling; `""` if it is none.

    Holds: an IPv6 literal that is another spelling of an IPv4 address (mapped, or the well-known NAT64 prefix) comes
    back as that address, so that a rule about the one covers the other.
    """
    raw = packed(text)
    return _spelled(raw) if raw else ""


def packed(text: str) -> bytes:
    """Return an IP literal's 4 or 16 bytes, an IPv4 address inside IPv6 as its 4; `b""` if it is none."""
    if not text.isascii() or "\0" in text or len(text) > 45:
        return b""
    try:
        raw = socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except OSError:
        return b""
    return raw[12:] if len(raw) == 16 and raw[:12] in (_MAPPED, _NAT64) else raw


def is_placeholder_v4(raw: bytes) -> bool:
    """Say whether four bytes lie in the range of placeholder addresses, given out or not."""
    return len(raw) == 4 and int.from_bytes(raw, "big") & _V4_MASK == _V4_FIRST


def _spelled(raw: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(raw) == 16 else socket.AF_INET, raw)


def _decodes(label: str) -> bool:
    # a label that claims to be an A-label but stands for ASCII would be a second spelling of another name
    try:
        decoded = label[4:].encode("ascii").decode("punycode")
    except (UnicodeError, ValueError, OverflowError):
        return False
    return not decoded.isascii() and decoded.isprintable()


class Names:
    """The placeholder addresses of one run.

    Takes: `prefix`, the first 8 bytes of an IPv6 prefix (fd..::/64); made at random if empty.
    Holds: an address stands for one name from its first use to the end of the run, and a name has one pair.
    """

    def __init__(self, prefix: bytes = b"") -> None:
        prefix = prefix or b"\xfd" + os.urandom(7)
        if len(prefix) != 8 or prefix[0] != 0xFD:
            raise ValueError("a placeholder prefix is 8 bytes that begin with fd")
        self.prefix = prefix
        self._addresses: dict[str, tuple[str, str]] = {}
        self._hosts: list[str] = []

    @property
    def count(self) -> int:
        """Return how many names have an address."""
        return len(self._hosts)

    def address_of(self, name: str) -> tuple[str, str]:
        """Return the v4 and v6 placeholder of a canonical name.

        Raises: NamesFullError; ValueError if the name is not canonical.
        """
        known = self._addresses.get(name)
        if known is not None:
            return known
        if not name or canonical_name(name) != name:
            raise ValueError("not a canonical host name")
        index = len(self._hosts)
        if index >= MAX_NAMES:
            raise NamesFullError
        block, place = divmod(index, _PER_BLOCK)
        # block 0 (198.18.0.0/24) is the boundary's own
        v4 = (_V4_FIRST + (block + 1) * 256 + place + 1).to_bytes(4, "big")
        v6 = self.prefix + (index + 0x100).to_bytes(8, "big")
        pair = (_spelled(v4), _spelled(v6))
        self._addresses[name] = pair
        self._hosts.append(name)
        return pair

    def host_of(self, address: str) -> str | None:
        """Return the name that an address stands for, None if it stands for none."""
        raw = packed(address)
        if is_placeholder_v4(raw):
            block, place = divmod(int.from_bytes(raw, "big") - _V4_FIRST, 256)
            if block == 0 or not 0 < place <= _PER_BLOCK:
                return None
            index = (block - 1) * _PER_BLOCK + place - 1
        elif len(raw) == 16 and raw[:8] == self.prefix:
            index = int.from_bytes(raw[8:], "big") - 0x100
        else:
            return None
        return self._hosts[index] if 0 <= index < len(self._hosts) else None

    def is_placeholder(self, address: str) -> bool:
        """Say whether an address lies in one of the two ranges, given out or not."""
        raw = packed(address)
        return is_placeholder_v4(raw) or (len(raw) == 16 and raw[:8] == self.prefix)
