"""Binds this process to a system-call filter, for good.

Source: ours; seccomp(2), seccomp_unotify(2).
"""

import ctypes
import errno
import struct

from interlock.boundary import kernel
from interlock.manifest.kernel.filtering import instructions, program

__all__ = ["install", "install_listening", "instructions", "program"]

_SET_FILTER = 1
_ALL_THREADS, _LISTEN, _OR_SRCH, _UNTIL_KILLED = 1, 8, 16, 32


def install(code: bytes, *, all_threads: bool = False) -> None:
    """Bind this thread and all its descendants to the filter, for good.

    Takes: `all_threads`, whether all threads of the process are bound at once, or none.
    Holds: no_new_privs is set.
    """
    left = _set(code, _ALL_THREADS if all_threads else 0)
    if left:
        raise OSError(errno.ESRCH, "a thread has a filter of its own, and cannot be bound to this one")


def install_listening(code: bytes, *, all_threads: bool = False) -> int:
    """Bind as `install` does. Returns: the descriptor at which calls are told that the filter asks about."""
    flags = _LISTEN | (_ALL_THREADS | _OR_SRCH if all_threads else 0)
    try:
        # A signal does not interrupt a call that is being answered (Linux 5.19).
        return _set(code, flags | _UNTIL_KILLED)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return _set(code, flags)


def _set(code: bytes, flags: int) -> int:
    body = ctypes.create_string_buffer(code, len(code))
    record = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(body)), 16)
    return kernel.call("seccomp", kernel.NR_SECCOMP, _SET_FILTER, flags, record)
