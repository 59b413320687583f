"""What a system call reaches, read from its arguments: files that Landlock would ask about, and far ends.

Calls that only ask (stat, access, readlink) are left out: no rule of paths bounds them.
Source: ours; landlock(7) for which calls need which right.
"""

import os
import socket
import struct
from collections.abc import Callable

from interlock.model.records import dataclass
from interlock.model.toolkits import Access

_AT_CWD = -100
_NONE = -1
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATH_ONLY = 0o10000000  # O_PATH
_TEMPORARY = 0o20000000  # __O_TMPFILE
_OPENS = {"open": (0, _NONE, 1), "openat": (1, 0, 2), "openat2": (1, 0, 2)}
"""Path, folder it is relative to, flags."""
_CREATES = {
    "creat": ((0, _NONE),), "mkdir": ((0, _NONE),), "rmdir": ((0, _NONE),), "unlink": ((0, _NONE),),
    "mknod": ((0, _NONE),), "rename": ((0, _NONE), (1, _NONE)), "link": ((1, _NONE),), "symlink": ((1, _NONE),),
    "mkdirat": ((1, 0),), "mknodat": ((1, 0),), "unlinkat": ((1, 0),), "renameat": ((1, 0), (3, 2)),
    "renameat2": ((1, 0), (3, 2)), "linkat": ((3, 2),), "symlinkat": ((2, 1),),
}  # fmt: skip
"""Calls that change the folder in which a path lies."""
_PROGRAMS = {"execve": (0, _NONE), "execveat": (1, 0)}
_PEERS = {"connect": (1, 2), "sendto": (4, 5)}
"""Address, its length."""
STARTS = ("fork", "vfork", "clone", "clone3")
_DOMAIN_PORT = 53
_LONGEST_PATH, _LONGEST_ADDRESS = 4096, 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A file, or a folder, that a call reaches. Takes: `path`, without links, absolute."""

    path: str
    access: Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A far end. Takes: `address`, of IP, as text."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The process that makes a call. Takes: `read`, its memory at an address, at most so many bytes, b"" for none."""

    pid: int
    read: Callable[[int, int], bytes]


def touches(name: str, arguments: tuple[int, ...], asker: Asker) -> tuple[Touch, ...]:
    """Return the files that a call reaches, if they are there, and the folders in which it makes new ones."""
    if name in _OPENS:
        path, base, flags = _OPENS[name]
        given = _flags(name, arguments[flags], asker)
        found = _resolved(arguments[path], arguments[base] if base >= 0 else _AT_CWD, asker)
        if not found or given & _PATH_ONLY == _PATH_ONLY:
            return ()
        if given & _WRITES or given & _TEMPORARY:
            return _written(found)
        return (Touch(path=os.path.realpath(found), access=Access.READ),) if os.path.exists(found) else ()
    if name == "truncate":
        found = _resolved(arguments[0], _AT_CWD, asker)
        return _written(found) if found else ()
    if name in _CREATES:
        pairs = [(arguments[at], arguments[base] if base >= 0 else _AT_CWD) for at, base in _CREATES[name]]
        folders = [os.path.dirname(one) for one in (_resolved(*pair, asker) for pair in pairs) if one]
        return tuple(
            [Touch(path=os.path.realpath(one), access=Access.WRITE) for one in folders if os.path.isdir(one)]
        )
    return ()


def program(name: str, arguments: tuple[int, ...], asker: Asker) -> str:
    """Return the program that a call starts, `""` where it starts none that is there."""
    if name not in _PROGRAMS:
        return ""
    path, base = _PROGRAMS[name]
    found = _resolved(arguments[path], arguments[base] if base >= 0 else _AT_CWD, asker)
    return found if found and os.path.isfile(found) and os.access(found, os.X_OK) else ""


def peer(name: str, arguments: tuple[int, ...], asker: Asker) -> Peer | None:
    """Return the far end that a call names, but for those of look-ups of names."""
    if name not in _PEERS:
        return None
    at, length = _PEERS[name]
    if not arguments[at]:
        return None
    data = asker.read(arguments[at], min(arguments[length] & 0xFFFFFFFF, _LONGEST_ADDRESS))
    if len(data) < 8:
        return None
    family, port = struct.unpack_from("=H", data)[0], struct.unpack_from("!H", data, 2)[0]
    # Port 0: the C library asks the kernel which of its own addresses would be used.
    if port in (0, _DOMAIN_PORT):
        return None
    if family == socket.AF_INET:
        return Peer(address=socket.inet_ntop(socket.AF_INET, data[4:8]), port=port)
    if family == socket.AF_INET6 and len(data) >= 24:
        return Peer(address=socket.inet_ntop(socket.AF_INET6, data[8:24]), port=port)
    return None


def _flags(name: str, given: int, asker: Asker) -> int:
    if name != "openat2":
        return given
    data = asker.read(given, 8)
    return int(struct.unpack("=Q", data)[0]) if len(data) == 8 else 0


def _written(path: str) -> tuple[Touch, ...]:
    """A file that is there, else the folder in which it is made."""
    there = path if os.path.exists(path) else os.path.dirname(path)
    return (Touch(path=os.path.realpath(there), access=Access.WRITE),) if os.path.exists(there) else ()


def _resolved(address: int, folder: int, asker: Asker) -> str:
    """Return a path as an absolute one, `""` where it cannot be known."""
    text = os.fsdecode(asker.read(address, _LONGEST_PATH).split(b"\0", 1)[0])
    if not text:
        return ""
    if text.startswith(("/proc/self/", "/proc/thread-self/")):
        return text.replace(text.split("/")[2], str(asker.pid), 1)
    if text.startswith("/"):
        return text
    number = folder & 0xFFFFFFFF
    where = "cwd" if number == _AT_CWD & 0xFFFFFFFF else f"fd/{number}"
    try:
        return os.path.join(os.readlink(f"/proc/{asker.pid}/{where}"), text)
    except OSError:
        return ""
