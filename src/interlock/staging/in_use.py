"""Whether a process has a file of a view open or mapped just now."""

import fcntl
import os
import signal

from interlock.staging.syscalls import open_beneath


def who_has_open(upper_fd: int, path: str) -> tuple[bool, bool]:
    """Say whether anybody has the layer's file open or mapped: at all, and for writing.

    Source: fcntl(2), leases: a write lease is had on a file that nobody else has open, a read lease on one
    that nobody has open for writing; mappings count.
    """
    try:
        fd = open_beneath(upper_fd, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return True, True
    try:
        return not _leased(fd, fcntl.F_WRLCK), not _leased(fd, fcntl.F_RDLCK)
    finally:
        os.close(fd)


def is_mapped(status: os.stat_result) -> bool:
    """Say whether a process has a file of the view mapped."""
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x} {status.st_ino} ".encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/maps", "rb") as table:
                    if any(device in line for line in table):
                        return True
            except OSError:
                continue
    return False


def _leased(fd: int, kind: int) -> bool:
    try:
        # the signal tells of somebody who opens it just now; nobody heeds this one, the usual one would end us
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True
