"""Where an attempt is made: a workspace, a secret beside it, a process to harm, a service to reach."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from typing import Any

from interlock.model.records import dataclass
from interlock.model.system_calls import NUMBERS

SECRET = b"the secret of another process"
_memory = ctypes.create_string_buffer(SECRET, 64)
"""Lies at the same place in a process that was forked from this one."""
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """What an attempt finds.

    Takes: `victim`, a process of the same user; `descriptor`, of a file that is open there; `port`, at which somebody
    listens on the loopback; `service`, a socket in the file system.
    """

    workspace: str
    outside: str
    victim: int
    descriptor: int
    port: int
    service: str


def call(name: str, *arguments: Any) -> int:
    """Make a system call by its name. Returns: what it gave, or minus its error."""
    return raw(NUMBERS[name], *arguments)


def raw(number: int, *arguments: Any) -> int:
    """Make a system call by its number. Returns: what it gave, or minus its error."""
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    found = int(_libc.syscall(ctypes.c_long(number), *given))
    return found if found >= 0 else -ctypes.get_errno()


def secret_address() -> int:
    """Return where the secret lies, here and in the victim."""
    return ctypes.addressof(_memory)


def victim(descriptor: int) -> int:
    """Start a process that waits, with a file open. Returns: its number."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            # It is a process as any other of this user, which a change of the user would have taken from it.
            _libc.prctl(4, 1, 0, 0, 0)
            os.write(told, b"1")
            os.set_inheritable(descriptor, True)
            while True:
                signal.pause()
        finally:
            os._exit(0)
    os.close(told)
    os.read(ready, 1)
    os.close(ready)
    return pid


def listeners(folder: str) -> tuple[socket.socket, socket.socket, str]:
    """Return a listening TCP socket on the loopback, one in the file system, and its path."""
    tcp = socket.socket()
    tcp.bind(("127.0.0.1", 0))
    tcp.listen(16)
    path = os.path.join(folder, "service.sock")
    local = socket.socket(socket.AF_UNIX)
    local.bind(path)
    local.listen(16)
    return tcp, local, path
