"""A listener of the host's own, for what stands before an agent without a sandbox."""

import socket

from interlock.model.errors import BoundaryError

_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """Listen at an address; to accept does not wait.

    Takes: `host`, an IP literal or a name; `port`, 0 for any.
    Raises: BoundaryError.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise BoundaryError(
            f"nothing can listen at {host} port {port}: {error.strerror}",
            hint="choose another: --listen 127.0.0.1:PORT",
        ) from error
    return listener
