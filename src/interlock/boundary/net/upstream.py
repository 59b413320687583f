"""The proxy between this machine and the world, where the host has one: a tunnel through it for each connection.

A tunnel (CONNECT) is asked for plain HTTP too, so that what the boundary sends is the same with and without a proxy.
"""

import asyncio
import base64
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from interlock.boundary.net import far_tls
from interlock.boundary.net.dialling import DialError, ready
from interlock.boundary.net.link import SocketLink
from interlock.boundary.net.names import canonical_literal
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.tunnel import Tunnel
from interlock.model.records import dataclass

Connect = Callable[[str, int], Awaitable[socket.socket]]

_MAX_HEAD = 64 * 1024

T = TypeVar("T")
_tunnels: "WeakKeyDictionary[asyncio.AbstractEventLoop, set[Tunnel]]" = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy's URL, read. Takes: `credentials`, user and password joined by a colon, `""` for none."""

    secure: bool
    host: str
    port: int
    credentials: str


def read_proxy(url: str) -> Proxy:
    """Read a proxy's URL (`http://` or `https://`, with or without user and password).

    Raises: DialError, if it cannot be used.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if not host or parts.scheme not in ("http", "https"):
        raise DialError(
            "the upstream proxy's URL cannot be used",
            "proxy",
            hint="write it as http://host:port or https://host:port; other kinds of proxy are not supported",
        )
    user = unquote(parts.username or "")
    return Proxy(
        secure=parts.scheme == "https",
        host=host,
        port=port or (443 if parts.scheme == "https" else 80),
        credentials=f"{user}:{unquote(parts.password or '')}" if parts.username is not None else "",
    )


def applies(plan: NetPlan, host: str) -> bool:
    """Say whether a host is reached through the proxy: never this machine, nor what `no_proxy` names.

    An entry of `no_proxy` is a suffix of whole labels, an address, a network in CIDR form, or `*`.
    """
    if not plan.upstream_proxy:
        return False
    literal = canonical_literal(host)
    if host == "localhost" or host.endswith(".localhost") or literal == "::1" or literal.startswith("127."):
        return False
    for entry in plan.no_proxy:
        suffix = entry.strip().lower().lstrip(".").removeprefix("*.")
        if suffix == "*":
            return False
        if not suffix:
            continue
        if literal:
            with contextlib.suppress(ValueError):
                if ipaddress.ip_address(literal) in ipaddress.ip_network(suffix.strip("[]"), strict=False):
                    return False
        elif host == suffix or host.endswith(f".{suffix}"):
            return False
    return True


async def connect(plan: NetPlan, host: str, port: int, reach: Connect) -> tuple[socket.socket, str]:
    """Open a tunnel to a host through the plan's proxy.

    Takes: `reach`, how to connect to the proxy itself.
    Raises: DialError.
    """
    proxy = read_proxy(plan.upstream_proxy)
    peer = f"proxy {proxy.host}:{proxy.port}"
    try:
        sock = await reach(proxy.host, proxy.port)
    except DialError as error:
        raise DialError(f"the upstream proxy: {error.message}", "proxy", hint=error.hint) from None
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
    if proxy.credentials:
        encoded = base64.b64encode(proxy.credentials.encode("utf-8")).decode("ascii")
        request += f"Proxy-Authorization: Basic {encoded}\r\n"
    wire = f"{request}\r\n".encode("ascii")
    if proxy.secure:
        return await _through_tls(plan, proxy, sock, wire, place), peer
    try:
        await asyncio.get_running_loop().sock_sendall(sock, wire)
        _check(proxy, place, await _read_head(sock))
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            raise _cut(proxy) from None
        raise
    return sock, peer


async def _read_head(sock: socket.socket) -> bytes:
    """Read an answer's head and not a byte more: what follows is the far side's."""
    head = b""
    while len(head) < _MAX_HEAD:
        await ready(sock, to_write=False)
        seen = sock.recv(4096, socket.MSG_PEEK)
        if not seen:
            raise ConnectionResetError
        end = (head + seen).find(b"\r\n\r\n")
        if end >= 0:
            return head + sock.recv(end + 4 - len(head))
        head += sock.recv(len(seen))
    raise ConnectionResetError


async def _through_tls(
    plan: NetPlan, proxy: Proxy, sock: socket.socket, wire: bytes, place: str
) -> socket.socket:
    """Open the tunnel inside TLS to the proxy, and return one end of a socket pair that leads into it.

    The TLS library cannot stack one TLS socket on another; so a pair of links carries the inner one's bytes.
    """
    try:
        secured = await far_tls.secure(plan.trust_file, sock, proxy.host, proxy.port, ())
    except DialError as error:
        raise DialError(f"the upstream proxy: {error.message}", "proxy", hint=error.hint) from None
    try:
        await _until_done(secured, partial(secured.sendall, wire))
        _check(proxy, place, await _read_head_of(secured))
        near, inner = socket.socketpair()
    except BaseException as error:
        secured.close()
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            raise _cut(proxy) from None
        raise
    near.setblocking(False)
    inner.setblocking(False)
    _carry(asyncio.get_running_loop(), inner, secured)
    return near


async def _read_head_of(secured: ssl.SSLSocket) -> bytes:
    """Read an answer's head, byte by byte: what follows is the far side's, and TLS cannot be asked what comes next."""
    head = bytearray()
    while len(head) < _MAX_HEAD:
        byte = await _until_done(secured, partial(secured.recv, 1))
        if not byte:
            raise ConnectionResetError
        head += byte
        if head.endswith(b"\r\n\r\n"):
            return bytes(head)
    raise ConnectionResetError


async def _until_done(secured: ssl.SSLSocket, act: Callable[[], T]) -> T:
    while True:
        try:
            return act()
        except ssl.SSLWantReadError:
            await ready(secured, to_write=False)
        except ssl.SSLWantWriteError:
            await ready(secured, to_write=True)


def _carry(loop: asyncio.AbstractEventLoop, inner: socket.socket, secured: ssl.SSLSocket) -> None:
    """Carry bytes both ways until both directions have ended."""
    tunnels = _tunnels.setdefault(loop, set())
    tunnel: Tunnel

    def ended(_how: object) -> None:
        tunnels.discard(tunnel)

    tunnel = Tunnel(SocketLink(loop, inner), SocketLink(loop, secured), ended)
    tunnels.add(tunnel)


def break_off(loop: asyncio.AbstractEventLoop) -> None:
    """End the tunnels of a loop that is about to end itself."""
    for tunnel in list(_tunnels.get(loop, ())):
        tunnel.abort()


def _check(proxy: Proxy, place: str, head: bytes) -> None:
    words = head.split(b"\r\n", 1)[0].split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit() or len(words[1]) != 3:
        raise _cut(proxy)
    status = int(words[1])
    if 200 <= status < 300:
        return
    where = f"the upstream proxy `{proxy.host}:{proxy.port}`"
    if status == 407:
        what = "did not accept the user and password" if proxy.credentials else "asks for a user and password"
        raise DialError(
            f"{where} {what} (407)", "proxy", hint="write them into its URL: http://user:password@host:port"
        )
    raise DialError(f"{where} answered {status} for `{place}`", "proxy")


def _cut(proxy: Proxy) -> DialError:
    return DialError(
        f"the upstream proxy `{proxy.host}:{proxy.port}` gave no answer that is understood",
        "proxy",
        hint="check that it is an HTTP proxy, and whether its URL should begin with http:// or https://",
    )
