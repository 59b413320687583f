"""A process whose Nth system call of some kind fails as a bad disk would let it, or is its last.

The kernel itself hands the calls to us (seccomp's user notification), so that nothing of the process under test is
replaced: what its libraries call is caught too.
"""

import array
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

NUMBERS = {
    "read": 0, "write": 1, "pread64": 17, "pwrite64": 18, "fsync": 74, "fdatasync": 75, "truncate": 76,
    "ftruncate": 77, "getdents64": 217, "rename": 82, "mkdir": 83, "rmdir": 84, "link": 86, "unlink": 87,
    "symlink": 88, "readlink": 89, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94,
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "getxattr": 191, "lgetxattr": 192, "fgetxattr": 193,
    "listxattr": 194, "llistxattr": 195, "flistxattr": 196, "removexattr": 197, "lremovexattr": 198,
    "fremovexattr": 199, "openat": 257, "mkdirat": 258, "mknodat": 259, "fchownat": 260, "newfstatat": 262,
    "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "readlinkat": 267, "fchmodat": 268,
    "utimensat": 280, "fallocate": 285, "syncfs": 306, "renameat2": 316, "copy_file_range": 326,
    "openat2": 437,
}  # fmt: skip
READING = frozenset(
    {"read", "pread64", "getdents64", "readlink", "readlinkat", "openat", "openat2", "newfstatat"}
    | {name for name in NUMBERS if "getxattr" in name or "listxattr" in name}
)
CHANGING = frozenset(NUMBERS) - READING
CREATING = "creating open"
"""An `openat` with O_CREAT."""

_libc = ctypes.CDLL(None, use_errno=True)
_LD, _JEQ, _JSET, _RET = 0x20, 0x15, 0x45, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_KILL = 1
_NO_NEW_PRIVS, _SECCOMP, _NEW_LISTENER = 38, 317, 8


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the process ended (as `os.waitpid` says it), and how many of the calls it made."""

    status: int
    calls: int
    hit: str = ""

    @property
    def killed(self) -> bool:
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL

    @property
    def code(self) -> int:
        return os.waitstatus_to_exitcode(self.status)


def run_failing(
    run: Callable[[], int],
    *,
    calls: Iterable[str],
    at: int,
    error: int = 0,
    forever: bool = False,
    meanwhile: Callable[[], object] | None = None,
) -> Ended:
    """Run in a forked child, which exits with what `run` returns; its call number `at` fails with `error`.

    Takes: `error`, 0 to kill the child there instead; `forever`, whether all later calls fail as well; `meanwhile`,
    done before that call instead of either.
    """

    def strike() -> int:
        if meanwhile is not None:
            meanwhile()
            return 0
        return -error if error else _KILL

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            ours.close()
            listener = _filter(calls)
            theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
            os.close(listener)
            theirs.recv(1)
            theirs.close()
            status = run()
        finally:
            os._exit(status)
    theirs.close()
    with ours:
        _, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
        (listener,) = array.array("i", ancillary[0][2])
        ours.send(b"x")
        try:
            return _serve(pid, listener, (at, 1 << 62 if forever else at), strike)
        finally:
            os.close(listener)


def _serve(pid: int, listener: int, struck: tuple[int, int], strike: Callable[[], int]) -> Ended:
    names = {number: name for name, number in NUMBERS.items()}
    count, hit = 0, ""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        ((_, what),) = poll.poll()
        if not what & select.POLLIN:
            break  # nobody is left who has the filter
        request = bytearray(80)
        try:
            fcntl.ioctl(listener, _RECEIVE, request)
        except OSError:
            continue  # who called was killed meanwhile
        (identity, caller) = struct.unpack_from("=QI", request)
        value = 0
        if _group(caller) == pid:
            count += 1
            if struck[0] and struck[0] <= count <= struck[1]:
                hit = hit or names[struct.unpack_from("=i", request, 16)[0]]
                value = strike()
                if value == _KILL:
                    os.kill(pid, signal.SIGKILL)
                    break
        try:
            fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", identity, 0, value, int(not value)))
        except OSError:
            continue
    _, status = os.waitpid(pid, 0)
    return Ended(status=status, calls=count, hit=hit)


def _group(caller: int) -> int:
    try:
        with open(f"/proc/{caller}/status", encoding="ascii", errors="replace") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))
    except (OSError, StopIteration):
        return 0


def _filter(calls: Iterable[str]) -> int:
    wanted = sorted(calls)
    program = [struct.pack("=HBBI", _LD, 0, 0, 0)]
    for name in wanted:
        if name == CREATING:
            program += [
                struct.pack("=HBBI", _JEQ, 0, 3, NUMBERS["openat"]),
                struct.pack("=HBBI", _LD, 0, 0, 32),
                struct.pack("=HBBI", _JSET, 0, 1, os.O_CREAT),
                struct.pack("=HBBI", _RET, 0, 0, _NOTIFY),
                struct.pack("=HBBI", _LD, 0, 0, 0),
            ]
        else:
            program += [
                struct.pack("=HBBI", _JEQ, 0, 1, NUMBERS[name]),
                struct.pack("=HBBI", _RET, 0, 0, _NOTIFY),
            ]
    program.append(struct.pack("=HBBI", _RET, 0, 0, _ALLOW))
    raw = ctypes.create_string_buffer(b"".join(program))
    header = _Program(len(program), ctypes.addressof(raw))
    _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    listener: int = _libc.syscall(
        ctypes.c_long(_SECCOMP), ctypes.c_ulong(1), ctypes.c_ulong(_NEW_LISTENER), ctypes.byref(header)
    )
    if listener < 0:
        raise OSError(ctypes.get_errno(), "no filter with a listener can be had here")
    return listener
