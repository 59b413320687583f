"""Answers to names, from placeholder addresses alone: no query leaves, so a name carries nothing out.

The parser is our own: what a client inside may ask is one question and one EDNS record, about a page of strict
code, where a whole DNS library would cost half of what a whole run's start may take to import alone, and would read
far more forms of hostile input than are ever answered. It is tested against dnspython as the reference.
Source: RFC 1035 §4; RFC 6891 (EDNS); RFC 3225 (DO); RFC 7686 (.onion); RFC 6761 (localhost).
"""

import socket
import struct
from collections.abc import Sequence

from interlock.boundary.net.names import Names, NamesFullError, canonical_name
from interlock.model.records import dataclass

TTL_SECONDS = 60
"""Short, though a placeholder stays the same for the whole run: a cache that outlives the run must not keep it long."""

UDP_SIZE = 1232

_A, _PTR, _AAAA, _OPT, _ANY = 1, 12, 28, 41, 255
_TRANSFERS = (251, 252, 253, 254)  # IXFR, AXFR, MAILB, MAILA: a question for a whole zone
_NOERROR, _FORMERR, _SERVFAIL, _NXDOMAIN, _NOTIMP, _REFUSED, _BADVERS = 0, 1, 2, 3, 4, 5, 16
_RD, _CD = 0x0100, 0x0010
_NEVER = ("onion", "invalid")
_CANARY = "use-application-dns.net"  # without this name a browser leaves its own DNS over HTTPS off


class _BrokenError(ValueError):
    """A message that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """Takes: `wire`, name, type and class as they came; `name`, the labels joined, None where one has a dot in it."""

    wire: bytes
    name: str | None
    type: int
    cls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edns:
    version: int
    wants_dnssec: bool


def answer(query: bytes, names: Names) -> bytes:
    """Answer one DNS message (without the length that stands before it over TCP).

    Returns: the answer, at most 512 bytes; `b""` where none must be given (to an answer, or to less than a header).
    """
    if len(query) < 12:
        return b""
    ident, flags, questions, answers, authorities, additional = struct.unpack_from("!6H", query)
    if flags & 0x8000:
        return b""
    if flags >> 11 & 15:
        return _message(ident, flags, _NOTIMP)
    if questions != 1 or answers or authorities or additional > 1:
        return _message(ident, flags, _FORMERR)
    try:
        question, at = _read_question(query)
        edns = _read_additional(query, at, additional)
    except _BrokenError:
        return _message(ident, flags, _FORMERR)
    if edns is not None and edns.version:
        return _message(ident, flags, _BADVERS, question, edns=edns)
    code, records = _resolve(question, names)
    return _message(ident, flags, code, question, edns=edns, records=records)


def _resolve(question: _Question, names: Names) -> tuple[int, list[tuple[int, bytes]]]:
    if question.cls not in (1, 255) or question.type in _TRANSFERS:
        return _REFUSED, []
    name = canonical_name(question.name or "")
    if not name:
        return _NXDOMAIN, []
    if name.endswith(".arpa"):
        return _reverse(name, question.type, names)
    if name == _CANARY or name.rsplit(".", 1)[-1] in _NEVER:
        return _NXDOMAIN, []
    if question.type not in (_A, _AAAA, _ANY):
        return _NOERROR, []
    if name == "localhost" or name.endswith(".localhost"):
        v4, v6 = "127.0.0.1", "::1"
    else:
        try:
            v4, v6 = names.address_of(name)
        except NamesFullError:
            return _SERVFAIL, []
    records = []
    if question.type in (_A, _ANY):
        records.append((_A, socket.inet_pton(socket.AF_INET, v4)))
    if question.type in (_AAAA, _ANY):
        records.append((_AAAA, socket.inet_pton(socket.AF_INET6, v6)))
    return _NOERROR, records


def _reverse(name: str, kind: int, names: Names) -> tuple[int, list[tuple[int, bytes]]]:
    address = _reversed_address(name)
    if not address:
        return _NXDOMAIN if name.endswith((".in-addr.arpa", ".ip6.arpa")) else _NOERROR, []
    found = "localhost" if address in ("127.0.0.1", "::1") else names.host_of(address)
    if found is None:
        return _NXDOMAIN, []
    return _NOERROR, [(_PTR, _wire_name(found))] if kind in (_PTR, _ANY) else []


def _reversed_address(name: str) -> str:
    if name.endswith(".in-addr.arpa"):
        parts = name.removesuffix(".in-addr.arpa").split(".")
        return ".".join(reversed(parts)) if len(parts) == 4 else ""
    digits = name.removesuffix(".ip6.arpa").split(".")
    if len(digits) != 32 or not all(len(digit) == 1 and digit in "0123456789abcdef" for digit in digits):
        return ""
    return socket.inet_ntop(socket.AF_INET6, bytes.fromhex("".join(reversed(digits))))


def _wire_name(name: str) -> bytes:
    return b"".join(bytes((len(label),)) + label.encode("ascii") for label in name.split(".")) + b"\0"


def _read_name(data: bytes, at: int) -> tuple[list[bytes], int]:
    labels: list[bytes] = []
    start = at
    while True:
        if at >= len(data):
            raise _BrokenError
        size = data[at]
        at += 1
        if size == 0:
            return labels, at
        if size > 63 or at + size > len(data) or at + size - start > 254:
            raise _BrokenError  # a pointer has nothing before it that it could point to
        labels.append(data[at : at + size])
        at += size


def _read_question(data: bytes) -> tuple[_Question, int]:
    labels, at = _read_name(data, 12)
    if at + 4 > len(data):
        raise _BrokenError
    kind, cls = struct.unpack_from("!2H", data, at)
    name = None if any(b"." in label for label in labels) else b".".join(labels).decode("latin-1")
    return _Question(wire=data[12 : at + 4], name=name, type=kind, cls=cls), at + 4


def _read_additional(data: bytes, at: int, count: int) -> _Edns | None:
    """Read the record after the question: an OPT, and no other."""
    found: _Edns | None = None
    for _ in range(count):
        labels, at = _read_name(data, at)
        if at + 10 > len(data):
            raise _BrokenError
        kind, _size, extended, size = struct.unpack_from("!HHIH", data, at)
        end = at + 10 + size
        if end > len(data):
            raise _BrokenError
        if kind != _OPT or found is not None or labels:
            raise _BrokenError  # a signature would be made with a key that nobody shares with us
        _check_options(data, at + 10, end)
        found = _Edns(version=extended >> 16 & 0xFF, wants_dnssec=bool(extended & 0x8000))
        at = end
    if at != len(data):
        raise _BrokenError
    return found


def _check_options(data: bytes, at: int, end: int) -> None:
    while at < end:
        if at + 4 > end:
            raise _BrokenError
        at += 4 + int.from_bytes(data[at + 2 : at + 4], "big")
    if at != end:
        raise _BrokenError


def _message(
    ident: int,
    flags: int,
    code: int,
    question: _Question | None = None,
    *,
    edns: _Edns | None = None,
    records: Sequence[tuple[int, bytes]] = (),
) -> bytes:
    # an answer with recursion available; AD stays clear, since nothing was verified
    head = 0x8080 | flags & (0x7800 | _RD | _CD) | code & 15
    parts = [
        struct.pack("!6H", ident, head, question is not None, len(records), 0, edns is not None),
        question.wire if question else b"",
    ]
    # each record's name points back at the question's, so that its spelling is the client's own
    parts += [struct.pack("!HHHIH", 0xC00C, kind, 1, TTL_SECONDS, len(body)) + body for kind, body in records]
    if edns is not None:
        extended = (code >> 4) << 24 | (0x8000 if edns.wants_dnssec else 0)
        parts.append(b"\0" + struct.pack("!HHIH", _OPT, UDP_SIZE, extended, 0))
    return b"".join(parts)
