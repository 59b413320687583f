"""Where the run's own agent socket stands inside, and how it comes to stand there."""

import os
import socket

from interlock.boundary import kernel
from interlock.boundary.net.doors import SIGNING
from interlock.model.errors import BoundaryError

NAME = "interlock-signing"
_BACKLOG = 16
_FOLDERS = ("/run", "/tmp")  # noqa: S108 - inside they are the sandbox's own
_QUIET = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV | kernel.MOUNT_ATTR_NOEXEC


def socket_path() -> str:
    """Return the path inside, below a folder that is the sandbox's own."""
    folder = next((one for one in _FOLDERS if os.path.isdir(one) and not os.path.islink(one)), _FOLDERS[-1])
    return f"{folder}/{NAME}/agent"


def open_socket(path: str) -> tuple[str, socket.socket]:
    """Make the listening socket, in a mount of its own that nothing inside can change.

    Returns: the socket with its tag (see `doors.hand_over`).
    Raises: BoundaryError, if it cannot be made.
    Holds: the new root is entered, and its mounts may still be made.
    """
    folder = os.path.dirname(path)
    try:
        os.mkdir(folder, 0o755)
        mount = kernel.new_mount("tmpfs", (("mode", "755"), ("size", "4k")), _QUIET)
        kernel.attach(mount, os.fsencode(folder))
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        one.bind(path)
        os.chmod(path, 0o600)
        one.listen(_BACKLOG)
        kernel.set_mount(mount, _QUIET | kernel.MOUNT_ATTR_RDONLY, recursive=False)
        os.close(mount)
    except OSError as error:
        raise BoundaryError(
            f"the socket for signatures cannot be made inside: {error.strerror or error}",
            hint="run without the policy's key `sign`, or see `interlock doctor`",
        ) from None
    return SIGNING, one
