"""The proxy between this machine and the world, where the host has one: a tunnel through it for each connection.

A tunnel (CONNECT) is asked for plain HTTP too, so that what the boundary sends is the same with and without a proxy.
"""

import asyncio
import base64
import contextlib
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import unquote, urlsplit

from interlock.boundary.net import far_tls
from interlock.boundary.net.dialling import DialError, ready
from interlock.boundary.net.names import canonical_literal
from interlock.boundary.net.plan import NetPlan
from interlock.model.records import dataclass

Connect = Callable[[str, int], Awaitable[socket.socket]]

_MAX_HEAD = 64 * 1024
_CHUNK = 64 * 1024

_pumps: set["asyncio.Task[None]"] = set()  # the loop itself keeps weak references to tasks alone


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

    The TLS library cannot stack one TLS socket on another; so a pair of tasks carries the inner one's bytes.
    """
    try:
        reader, writer = await asyncio.open_connection(
            sock=sock, ssl=far_tls.context(plan.trust_file, ()), server_hostname=proxy.host
        )
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError | ValueError) and not isinstance(error, TimeoutError):
            told = far_tls.explained(proxy.host, proxy.port, error)
            raise DialError(f"the upstream proxy: {told.message}", "proxy", hint=told.hint) from None
        raise
    try:
        writer.write(wire)
        _check(proxy, place, await reader.readuntil(b"\r\n\r\n"))
        near, inner = socket.socketpair()
        near.setblocking(False)
        inner.setblocking(False)
        try:
            inner_reader, inner_writer = await asyncio.open_connection(sock=inner)
        except BaseException:
            near.close()
            inner.close()
            raise
    except BaseException as error:
        writer.transport.abort()
        if isinstance(error, OSError | EOFError | asyncio.LimitOverrunError) and not isinstance(
            error, TimeoutError
        ):
            raise _cut(proxy) from None
        raise
    pump = asyncio.ensure_future(_carry(reader, writer, inner_reader, inner_writer))
    _pumps.add(pump)
    pump.add_done_callback(_pumps.discard)
    return near


async def _carry(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    inner_reader: asyncio.StreamReader,
    inner_writer: asyncio.StreamWriter,
) -> None:
    """Carry bytes both ways until both directions have ended."""
    try:
        await asyncio.gather(_one_way(reader, inner_writer), _one_way(inner_reader, writer))
    finally:
        writer.transport.abort()
        inner_writer.transport.abort()


async def _one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
            return
    except OSError:
        pass
    writer.close()  # TLS has no closing of one direction; a broken connection ends both
    with contextlib.suppress(OSError):
        await writer.wait_closed()


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
