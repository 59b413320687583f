"""The user's ssh-agent, from outside: one question, one answer, and an end in time."""

import asyncio
import contextlib
import os
import socket
import stat
import struct

from interlock.boundary.signing.protocol import MAX_ANSWER, NotAllowed, framed


def is_agent(path: str) -> bool:
    """Say whether a path leads to a unix socket."""
    try:
        return path.startswith("/") and stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


async def ask(loop: asyncio.AbstractEventLoop, path: str, payload: bytes) -> bytes:
    """Put one request to the agent over a connection of its own.

    Returns: its answer, without the length.
    Raises: NotAllowed, if there is no agent, or it says nothing that is an answer; the caller sets the time.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        try:
            # A unix socket is connected at once or not at all, so that no time goes by here.
            sock.connect(path)
            await loop.sock_sendall(sock, framed(payload))
            return await receive(loop, sock, MAX_ANSWER)
        except (OSError, ValueError):
            raise NotAllowed("the ssh-agent cannot be reached") from None


async def receive(loop: asyncio.AbstractEventLoop, sock: socket.socket, most: int) -> bytes:
    """Read one message of at most so many bytes.

    Raises: NotAllowed, if it is longer; EOFError's kin are told as an OSError.
    """
    (size,) = struct.unpack("!I", await read_exactly(loop, sock, 4))
    if size == 0 or size > most:
        raise NotAllowed(f"a message of {size} bytes")
    return await read_exactly(loop, sock, size)


async def read_exactly(loop: asyncio.AbstractEventLoop, sock: socket.socket, count: int) -> bytes:
    """Read so many bytes. Raises: OSError, if the other side ends before."""
    parts: list[bytes] = []
    while count:
        part = await loop.sock_recv(sock, count)
        if not part:
            raise ConnectionResetError("the other side ended")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def close(sock: socket.socket) -> None:
    """Close a socket, whatever it says."""
    with contextlib.suppress(OSError):
        sock.close()
