"""What a fresh connection is: its first bytes are looked at where they lie, before anything is taken from it."""

import socket
import ssl

from interlock.boundary.net.dialling import ready
from interlock.boundary.net.hello import Hello, HelloError, read_hello

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HELLO_BYTES = 64 * 1024
_METHOD = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_CRLF = b"\r\n"


class NotRead(Exception):
    """The connection is none that can be read. Takes: the reason, without payload."""


async def look(sock: socket.socket) -> Hello | bytes:
    """Tell TLS, HTTP/2 and HTTP/1 apart, taking nothing.

    Returns: the hello of a TLS client, `PREFACE` for HTTP/2 at once, `b""` for what may be HTTP/1.
    Raises: NotRead; OSError.
    """
    seen = b""
    try:
        while True:
            await ready(sock, to_write=False)
            more = sock.recv(_HELLO_BYTES, socket.MSG_PEEK)
            if len(more) <= len(seen):
                if not seen:
                    raise ConnectionResetError  # it left without a word, as a race of two connections does
                raise NotRead("it closed before it could be read")
            seen = more
            found = _kind(seen)
            if found is not None:
                return found
            if len(seen) >= _HELLO_BYTES:
                raise NotRead("its TLS hello has no end")
            # wake only for more than this: what is looked at stays readable
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(seen) + 1)
    finally:
        if len(seen) and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def _kind(seen: bytes) -> Hello | bytes | None:
    if seen[0] == 0x16:
        try:
            return read_hello(seen)
        except HelloError as error:
            raise NotRead(f"its TLS hello cannot be read: {error}") from None
    if PREFACE.startswith(seen[: len(PREFACE)]):
        return PREFACE if len(seen) >= len(PREFACE) else None
    if seen[0] in _METHOD or _CRLF.startswith(seen[:2]):
        return b""
    raise NotRead("neither HTTP nor TLS, and not named as opaque")


async def shake(sock: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
    """End TLS on the connection. Returns: the socket, which the one given has become. Raises: OSError (SSLError)."""
    secured = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
    try:
        while True:
            try:
                secured.do_handshake()
                return secured
            except ssl.SSLWantReadError:
                await ready(secured, to_write=False)
            except ssl.SSLWantWriteError:
                await ready(secured, to_write=True)
    except BaseException:
        secured.close()
        raise
