"""Connections from the host to the far side: the address that was checked is the one that is dialled.

A name is resolved here, on the host, once a request was passed. What it resolves to is checked before anything is
sent: a name that leads to this machine, to a cloud's metadata service or to a placeholder is refused, since a rule that
allowed the name did not mean those (DNS rebinding). Through a proxy it is the proxy that resolves the name: no address
can be checked here then, the proxy's own rules stand in, and a client that dialled an address of its own under a name
is refused, as nothing says that the two belong together.
"""

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from interlock.boundary.net import addresses, far_tls, upstream
from interlock.boundary.net.dialling import DialError, Dialled, ready
from interlock.boundary.net.names import canonical_literal, canonical_name, packed
from interlock.boundary.net.plan import NetPlan, names_host

__all__ = ["DialError", "Dialled", "dial", "resolve"]

STAGGER_SECONDS = 0.25
"""Between two attempts at addresses of one name (RFC 8305 §5)."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return a name's addresses as the host's resolver has them, best first.

    Raises: OSError.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    wanted = (socket.AF_INET, socket.AF_INET6)
    return list(dict.fromkeys(str(answer[4][0]) for answer in found if answer[0] in wanted))


async def dial(
    plan: NetPlan,
    host: str,
    port: int,
    *,
    tls: bool,
    alpn: tuple[str, ...],
    address: str = "",
    published: bool = False,
    resolver: Resolve = resolve,
) -> Dialled:
    """Connect to the far side, within the plan's time for it.

    Takes: `host`, a canonical name or literal; `alpn`, the protocols to offer, in order; `address`, the IP literal that
    the client itself dialled, which must then be one of the host's; `published`, whether the policy published it, so
    that it may be anywhere and is dialled directly.
    Returns: a socket that does not block, its TLS handshake done.
    Raises: DialError; nothing of a request has left then.
    """
    if not published and (not host or host not in (canonical_literal(host), canonical_name(host))):
        raise DialError(
            "a host that is neither a canonical name nor an IP literal is not dialled", "unknown-name"
        )
    try:
        async with asyncio.timeout(plan.limits.connect_seconds):
            if not published and upstream.applies(plan, host):
                if address and packed(address) != packed(host):
                    raise _misdirected(host, address, "through the upstream proxy no address can be checked")
                sock, peer = await upstream.connect(plan, host, port, _any_address(resolver))
            else:
                sock, peer = await _direct(plan, host, port, address, published=published, resolver=resolver)
            if not tls:
                return Dialled(sock=sock, alpn="", peer=peer)
            secured = await far_tls.secure(plan.trust_file, sock, host, port, alpn)
            return Dialled(sock=secured, alpn=secured.selected_alpn_protocol() or "", peer=peer)
    except TimeoutError:
        raise DialError(
            f"`{host}` port {port} did not answer within {plan.limits.connect_seconds:g} s", "timed-out"
        ) from None


async def _direct(
    plan: NetPlan, host: str, port: int, address: str, *, published: bool, resolver: Resolve
) -> tuple[socket.socket, str]:
    literal = canonical_literal(host)
    found = [literal] if literal else await _resolved(host, port, resolver)
    by_name = not literal and not published
    own = addresses.own() if by_name and not plan.reach_own else frozenset()
    # The operator's word that names lead to this machine; a metadata service and a link-local neighbour stay shut.
    at_home = by_name and ("*" in plan.local_names or names_host(plan.local_names, host))
    for each in found:
        why = addresses.local(each) if by_name else addresses.nowhere(each)
        if at_home and why == "loopback":
            why = ""
        elif not why and packed(each) in own and not at_home:
            why = "an address of this machine"
        if why:
            raise _local(host, each, why)
    if address:
        wanted = packed(address)
        found = [each for each in found if packed(each) == wanted]
        if not found:
            raise _misdirected(host, address, "the name does not resolve to it")
    return await _race(host, found, port)


async def _resolved(host: str, port: int, resolver: Resolve) -> list[str]:
    try:
        found = list(await resolver(host, port))
    except (OSError, UnicodeError) as error:
        raise _unknown(host, error) from None
    if not found:
        raise _unknown(host, None)
    return found


def _any_address(resolver: Resolve) -> upstream.Connect:
    """Return how to reach a host that the operator named: wherever it is."""

    async def connect(host: str, port: int) -> socket.socket:
        literal = canonical_literal(host)
        found = [literal] if literal else await _resolved(host, port, resolver)
        return (await _race(host, found, port))[0]

    return connect


async def _race(host: str, found: Sequence[str], port: int) -> tuple[socket.socket, str]:
    """Connect to the first address that answers, the families in turn, the next one a little later."""
    if len(found) == 1:
        try:
            return await _connect(found[0], port)
        except OSError as error:
            raise _unreached(host, port, [error]) from None
    waiting = deque(_interleaved(found))
    running: set[asyncio.Task[tuple[socket.socket, str]]] = set()
    errors: list[OSError] = []
    winner: tuple[socket.socket, str] | None = None
    try:
        while winner is None and (waiting or running):
            if waiting:
                running.add(asyncio.ensure_future(_connect(waiting.popleft(), port)))
            done, running = await asyncio.wait(
                running, timeout=STAGGER_SECONDS if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            while done:
                task = done.pop()
                failure = task.exception()
                if failure is None and winner is None:
                    winner = task.result()
                elif failure is None:
                    task.result()[0].close()
                elif isinstance(failure, OSError):
                    errors.append(failure)
                else:
                    running |= done
                    raise failure
    except BaseException:
        if winner is not None:
            winner[0].close()
        raise
    finally:
        _give_up(running)
    if winner is None:
        raise _unreached(host, port, errors)
    return winner


def _give_up(running: set[asyncio.Task[tuple[socket.socket, str]]]) -> None:
    """Break attempts off, without waiting: who waits may be broken off too, and then nobody closes what they made."""
    for task in running:
        task.add_done_callback(_close)
        task.cancel()


def _close(task: asyncio.Task[tuple[socket.socket, str]]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result()[0].close()


def _interleaved(found: Sequence[str]) -> list[str]:
    first = [each for each in found if (":" in each) == (":" in found[0])]
    second = [each for each in found if each not in first]
    turns: list[str] = []
    for index in range(max(len(first), len(second))):
        turns += first[index : index + 1] + second[index : index + 1]
    return turns


async def _connect(address: str, port: int) -> tuple[socket.socket, str]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        failure = sock.connect_ex((address, port))
        if failure == errno.EINPROGRESS:
            await ready(sock, to_write=True)
            failure = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            raise OSError(failure, "")
    except BaseException:
        sock.close()
        raise
    return sock, address


def _local(host: str, address: str, why: str) -> DialError:
    shown = f"`{host}`" if packed(host) == packed(address) else f"`{host}` leads to {address}, which"
    hint = "a service on this machine is shown to the sandbox with a published port of the policy"
    if "placeholder" in why:
        hint = (
            "the host's resolver gives out stand-in addresses (a VPN client's fake-IP mode): switch that off"
        )
    return DialError(f"{shown} is {why}, where no name of the world may lead", "local-address", hint=hint)


def _misdirected(host: str, address: str, why: str) -> DialError:
    return DialError(
        f"the connection went to {address} but asked for `{host}`: {why}",
        "misdirected",
        hint=f"dial `{host}` by its name",
    )


def _unknown(host: str, error: OSError | UnicodeError | None) -> DialError:
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        return DialError(
            f"the host's resolver cannot be reached to look `{host}` up",
            "unknown-name",
            hint="check the host's own network",
        )
    return DialError(
        f"the host's resolver knows no address of `{host}`", "unknown-name", hint="check the name"
    )


def _unreached(host: str, port: int, errors: Sequence[OSError]) -> DialError:
    codes = [error.errno for error in errors]
    if errno.ECONNREFUSED in codes:
        return DialError(f"`{host}` refused the connection to port {port}", "refused")
    if errno.ETIMEDOUT in codes:
        return DialError(f"`{host}` port {port} did not answer", "timed-out")
    if errno.ECONNRESET in codes:
        return DialError(f"`{host}` reset the connection to port {port}", "refused")
    return DialError(f"`{host}` port {port} cannot be reached from this machine", "unreachable")
