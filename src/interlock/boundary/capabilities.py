"""Capabilities: dropped from every set, but for a few that root's own file work needs."""

import ctypes
import struct

from interlock.boundary import kernel

KEPT_AS_ROOT: tuple[tuple[str, int, str], ...] = (
    ("CHOWN", 0, "tar and cp -a give files their owners back in the workspace"),
    ("DAC_OVERRIDE", 1, "root's tools write files whose mode forbids it (git objects are 0444)"),
    ("FOWNER", 3, "chmod and utime of files that belong to other users of the workspace"),
    ("FSETID", 4, "chmod g+s on shared folders keeps the bit"),
    ("KILL", 5, "stop own children that changed their user"),
    ("SETGID", 6, "package managers drop to a build user"),
    ("SETUID", 7, "package managers drop to a build user"),
    ("NET_BIND_SERVICE", 10, "a development server on port 80 of the sandbox's own loopback"),
)
"""Name, number and reason. They count only inside the sandbox's own user namespace."""

_VERSION_3 = 0x20080522


KEPT_IF_NESTED = ("SETFCAP", 31, "a sandbox of the agent's own maps root in its user namespace (Linux 5.12)")


def kept_mask(*, root: bool, nested: bool = False) -> int:
    """Return the capability set of the command as a bit mask."""
    kept = (*KEPT_AS_ROOT, KEPT_IF_NESTED) if nested else KEPT_AS_ROOT
    return sum(1 << number for _, number, _ in kept) if root else 0


def bound(mask: int) -> None:
    """Drop from the bounding and ambient sets whatever is not in `mask`."""
    number = 0
    while number < 64:
        try:
            if kernel.prctl(kernel.PR_CAPBSET_READ, number) and not mask >> number & 1:
                kernel.prctl(kernel.PR_CAPBSET_DROP, number)
        except OSError:
            break  # EINVAL: past the last capability that this kernel knows
        number += 1
    kernel.prctl(kernel.PR_CAP_AMBIENT, kernel.PR_CAP_AMBIENT_CLEAR_ALL)


def keep(mask: int) -> None:
    """Make `mask` the permitted and effective set, and the inheritable set empty."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", _VERSION_3, 0), 8)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    data = ctypes.create_string_buffer(struct.pack("=6I", low, low, 0, high, high, 0), 24)
    kernel.call("capset", kernel.NR_CAPSET, header, data)
