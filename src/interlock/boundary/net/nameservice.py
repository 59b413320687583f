"""DNS at the doors: every query to any server is answered here, over datagrams and over TCP."""

import asyncio
import contextlib
import socket

from interlock.boundary.net.dns import answer
from interlock.boundary.net.names import Names

_AT_ONCE = 32
_QUERIES = 1000


def answer_datagrams(sock: socket.socket, names: Names) -> None:
    """Answer what has come, at most some at a time, so that a flood does not hold up the rest."""
    for _ in range(_AT_ONCE):
        try:
            query, peer = sock.recvfrom(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            continue  # an answer that could not be delivered before
        reply = answer(query, names)
        if reply:
            with contextlib.suppress(OSError):  # the asker is gone, or does not read
                sock.sendto(reply, peer)


async def answer_stream(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, names: Names, seconds: float
) -> None:
    """Answer the queries of a TCP connection, one after the other, until it closes or is idle for `seconds`.

    Raises: OSError, TimeoutError.
    """
    buffer = b""
    for _ in range(_QUERIES):
        async with asyncio.timeout(seconds):
            while len(buffer) < 2 or len(buffer) < 2 + int.from_bytes(buffer[:2], "big"):
                more = await loop.sock_recv(sock, 4096)
                if not more:
                    return
                buffer += more
            size = int.from_bytes(buffer[:2], "big")
            reply = answer(buffer[2 : 2 + size], names)
            buffer = buffer[2 + size :]
            if not reply:
                return
            await loop.sock_sendall(sock, len(reply).to_bytes(2, "big") + reply)
