"""What a TLS client says before anything is encrypted: the name that it wants, and the protocols that it speaks.

It is read before a certificate is made for the name. The TLS library reads the same bytes after us, so what could be
read in two ways (a repeated extension, bytes left over) is refused rather than guessed.
Source: RFC 8446 §4.1.2 and §5.1; RFC 6066 §3; RFC 7301 §3.1.
"""

from interlock.boundary.net.names import canonical_literal, canonical_name
from interlock.model.records import dataclass

MAX_HELLO_BYTES = 64 * 1024
"""A ClientHello with post-quantum key shares is about 2 KB; no client needs more than this."""

_HANDSHAKE = 22
_CLIENT_HELLO = 1
_MAX_RECORD = 16384
_SERVER_NAME = 0
_ALPN = 16


class HelloError(ValueError):
    """The first bytes are no ClientHello that can be read in one way alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A ClientHello. Takes: `sni`, canonical, `""` for none; `alpn`, in the client's order."""

    sni: str
    alpn: tuple[str, ...]


def read_hello(data: bytes) -> Hello | None:
    """Read a ClientHello from the first bytes of a connection.

    Takes: `data`, all that came so far, possibly more than the hello.
    Returns: None while it is incomplete.
    Raises: HelloError, as soon as no further byte could make it right.
    """
    message = _message(data)
    return None if message is None else _hello(_Reader(message))


def _message(data: bytes) -> bytes | None:
    """Join the handshake message out of its records."""
    parts: list[bytes] = []
    have, need, at = 0, 0, 0
    while at < len(data):
        header = data[at : at + 5]
        if header[0] != _HANDSHAKE:
            raise HelloError("not a TLS handshake")
        if len(header) > 1 and header[1] != 3:
            raise HelloError("not a TLS version that is known")
        if len(header) < 5:
            return None
        size = int.from_bytes(header[3:5], "big")
        if not 0 < size <= _MAX_RECORD:
            raise HelloError("a TLS record of a size that is not allowed")
        part = data[at + 5 : at + 5 + size]
        parts.append(part)
        have += len(part)
        if not need:
            start = b"".join(parts)[:4]
            if start and start[0] != _CLIENT_HELLO:
                raise HelloError("the first TLS message is not a ClientHello")
            if len(start) == 4:
                need = 4 + int.from_bytes(start[1:], "big")
                if need > MAX_HELLO_BYTES:
                    raise HelloError("the ClientHello is too long")
        if need and have - len(part) + size > need:
            raise HelloError("bytes after the ClientHello in its record")
        if need and have == need:
            return b"".join(parts)[4:]
        if len(part) < size:
            return None
        at += 5 + size
        if len(parts) > MAX_HELLO_BYTES // 16:
            raise HelloError("the ClientHello comes in too many records")
    return None


class _Reader:
    """Takes vectors off the front of a message."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise HelloError("a length in the ClientHello is wrong")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> "_Reader":
        return _Reader(self.take(self.number(size)))


def _hello(hello: _Reader) -> Hello:
    if hello.number(2) >> 8 != 3:
        raise HelloError("not a TLS version that is known")
    hello.take(32)
    if hello.vector(1).left > 32:
        raise HelloError("the session id is too long")
    suites = hello.vector(2).left
    if suites == 0 or suites % 2:
        raise HelloError("the list of cipher suites is broken")
    if not hello.vector(1).left:
        raise HelloError("the list of compression methods is empty")
    sni = ""
    alpn: tuple[str, ...] = ()
    if hello.left:  # without any extension there is not even a length
        extensions = hello.vector(2)
        if hello.left:
            raise HelloError("bytes after the ClientHello's extensions")
        seen: set[int] = set()
        while extensions.left:
            kind = extensions.number(2)
            body = extensions.vector(2)
            if kind in seen:
                raise HelloError("an extension stands twice in the ClientHello")
            seen.add(kind)
            if kind == _SERVER_NAME:
                sni = _server_name(body)
            elif kind == _ALPN:
                alpn = _protocols(body)
    return Hello(sni=sni, alpn=alpn)


def _server_name(body: _Reader) -> str:
    names = body.vector(2)
    if body.left or not names.left:
        raise HelloError("the server name extension is broken")
    kind = names.number(1)
    name = names.vector(2)
    if kind != 0 or names.left:
        raise HelloError("the server name extension holds something else than one host name")
    text = name.take(name.left).decode("latin-1")
    canonical = canonical_name(text)
    if not canonical:
        what = "an IP address" if canonical_literal(text.strip("[]")) else "no valid host name"
        raise HelloError(f"the server name is {what}")
    return canonical


def _protocols(body: _Reader) -> tuple[str, ...]:
    listed = body.vector(2)
    if body.left or not listed.left:
        raise HelloError("the list of protocols is broken")
    found: list[str] = []
    while listed.left:
        name = listed.vector(1)
        if not name.left:
            raise HelloError("a protocol without a name")
        found.append(name.take(name.left).decode("latin-1"))
    return tuple(found)
