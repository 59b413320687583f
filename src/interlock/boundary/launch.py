"""Makes the first process of new namespaces, and ends it."""

import contextlib
import os
import signal
import struct
from collections.abc import Callable

from interlock.boundary import kernel
from interlock.model.errors import BoundaryError


def launch(body: Callable[[], object]) -> int:
    """Fork twice: an ordinary fork leaves other threads' locks behind, then a clone enters the namespaces.

    Takes: `body`, what the new process does; it must not return into the caller's work.
    Returns: the pid of the sandbox's first process, which is a child of the caller.
    """
    sender, receiver = os.pipe()[::-1]
    between = os.fork()
    if between == 0:
        try:
            pid = kernel.clone_as_sibling(kernel.CLONE_NEW_ALL)
            if pid == 0:
                body()
                os._exit(0)
            os.write(sender, struct.pack("=i", pid))
        except OSError as error:
            os.write(sender, struct.pack("=i", -(error.errno or 1)))
        finally:
            os._exit(0)
    os.close(sender)
    try:
        answer = os.read(receiver, 4)
    finally:
        os.close(receiver)
        os.waitpid(between, 0)
    if len(answer) != 4:
        raise BoundaryError("the sandbox's first process could not be made", hint="run `interlock doctor`")
    first: int = struct.unpack("=i", answer)[0]
    if first < 0:
        from interlock.boundary.surroundings import look, namespaces_fix

        raise BoundaryError(
            f"this kernel refuses new namespaces: {os.strerror(-first)}", hint=namespaces_fix(look())
        )
    return first


def map_all(pid: int) -> None:
    """Map every id to itself in the new user namespace; root alone may."""
    for name in ("uid_map", "gid_map"):
        descriptor = os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, b"0 0 4294967295")
        finally:
            os.close(descriptor)


def end(pid: int) -> None:
    """Kill a first process, and with it all of its namespace, and reap it."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
