"""The attempts that reach out of a tool's place: over the network, to files outside, past its limits."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import time

from interlock.bench.system_calls.attempts import attempt
from interlock.bench.system_calls.stand import Stand

_MANY = 40
_LIMIT_FILE, _LIMIT_MEMORY, _LIMIT_DESCRIPTORS = 1 << 20, 1 << 30, 64
LIMITS = {
    "processes": 16,
    "file-bytes": _LIMIT_FILE,
    "memory-bytes": _LIMIT_MEMORY,
    "open-files": _LIMIT_DESCRIPTORS,
    "cpu-seconds": 1,
}
"""Of the tool that the attempts are made in."""


# network


@attempt
def connect_tcp(at: Stand) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", at.port)) == 0


@attempt
def send_udp(at: Stand) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        return one.sendto(b"secret", ("127.0.0.1", at.port)) > 0


@attempt
def raw_socket(at: Stand) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP):
        return True


@attempt
def netlink(at: Stand) -> bool:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0):
        return True


@attempt
def reach_local_service(at: Stand) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(at.service) == 0


# files


@attempt
def read_outside(at: Stand) -> bool:
    with open(os.path.join(at.outside, "secret.txt"), encoding="utf-8") as file:
        return "secret" in file.read()


@attempt
def write_outside(at: Stand) -> bool:
    path = os.path.join(at.outside, "kept.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("changed")
    return True


@attempt
def make_outside(at: Stand) -> bool:
    path = os.path.join(at.outside, "made.txt")
    with open(path, "x", encoding="utf-8"):
        return True


@attempt
def remove_outside(at: Stand) -> bool:
    path = os.path.join(at.outside, "kept.txt")
    os.unlink(path)
    return not os.path.exists(path)


@attempt
def rename_outside(at: Stand) -> bool:
    moved = os.path.join(at.outside, "moved.txt")
    os.rename(os.path.join(at.outside, "kept.txt"), moved)
    return os.path.exists(moved)


@attempt
def read_by_link(at: Stand) -> bool:
    link = os.path.join(at.workspace, "link")
    os.symlink(os.path.join(at.outside, "secret.txt"), link)
    with open(link, encoding="utf-8") as file:
        return "secret" in file.read()


@attempt
def truncate_outside(at: Stand) -> bool:
    path = os.path.join(at.outside, "kept.txt")
    os.truncate(path, 0)
    return os.path.getsize(path) == 0


@attempt
def open_up_outside(at: Stand) -> bool:
    path = os.path.join(at.outside, "secret.txt")
    os.chmod(path, 0o777)  # noqa: S103 - that is what is tried
    return bool(os.stat(path).st_mode & 0o002)


@attempt
def read_passwords(at: Stand) -> bool:
    with open("/etc/shadow", encoding="utf-8", errors="replace") as file:
        return ":" in file.read()


# limits


@attempt
def many_processes(at: Stand) -> bool:
    """Whether forty processes can live at the same time."""
    waits, ends = os.pipe()
    found = 0
    try:
        for _ in range(_MANY):
            if os.fork() == 0:
                os.close(ends)
                os.read(waits, 1)
                os._exit(0)
            found += 1
    except OSError:
        return False
    finally:
        os.close(ends)
    return found == _MANY


@attempt
def large_file(at: Stand) -> bool:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    path = os.path.join(at.workspace, "big")
    with open(path, "wb", buffering=0) as file:
        for _ in range(4):
            file.write(b"\0" * (_LIMIT_FILE // 2))
    return os.path.getsize(path) > _LIMIT_FILE


@attempt
def many_descriptors(at: Stand) -> bool:
    found = [os.open(at.workspace, os.O_RDONLY) for _ in range(4 * _LIMIT_DESCRIPTORS)]
    return len(found) > _LIMIT_DESCRIPTORS


@attempt
def much_memory(at: Stand) -> bool:
    with mmap.mmap(-1, 2 * _LIMIT_MEMORY, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        return True


@attempt
def much_time(at: Stand) -> bool:
    while time.process_time() < LIMITS["cpu-seconds"] * 1.5:
        pass
    return True
