"""Makes this process's kernel an older one: calls of later kernels are answered as those answer them."""

import ctypes
import errno
import struct
from collections.abc import Callable

from interlock.boundary import bpf, kernel

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x50000
LANDLOCK, SECCOMP, PIDFD_GETFD = 444, 317, 438


def _install(*code: tuple[int, int, int, int]) -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    bpf.install(b"".join(struct.pack("=HBBI", *one) for one in code))
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)


def _absent(number: int) -> None:
    _install(
        (_LOAD, 0, 0, 0), (_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS), (_RETURN, 0, 0, _ALLOW)
    )  # fmt: skip


def without_landlock() -> None:
    """Landlock is not built in, or not switched on."""
    _absent(LANDLOCK)


def without_notification() -> None:
    """Seccomp has filters, and nobody can be told of calls (before Linux 5.0)."""
    flags = 16 + 8
    _install(
        (_LOAD, 0, 0, 0), (_EQUAL, 0, 5, SECCOMP),
        (_LOAD, 0, 0, 16), (_EQUAL, 2, 0, 2),
        (_LOAD, 0, 0, flags), (_ANY_BIT, 0, 1, 8),
        (_RETURN, 0, 0, _ERRNO | errno.EINVAL), (_RETURN, 0, 0, _ALLOW),
    )  # fmt: skip


def without_seccomp() -> None:
    """Seccomp is not built in."""
    _absent(SECCOMP)


def without_descriptors_of_others() -> None:
    """No descriptor can be taken from another process (before Linux 5.6, or a container that forbids it)."""
    _absent(PIDFD_GETFD)


OLDER: dict[str, Callable[[], None]] = {
    "landlock": without_landlock,
    "notification": without_notification,
    "seccomp": without_seccomp,
    "descriptors": without_descriptors_of_others,
}
