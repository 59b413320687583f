"""A process stopped at each of its system calls that change something, and killed at a chosen one.

The kernel does the picking: a seccomp filter that the process puts on itself hands exactly the calls in the table
to the tracer, so that a whole command costs some hundred stops. Threads and children are followed.
Source: ptrace(2), seccomp(2), the x86_64 table of system calls.
"""

import ctypes
import errno
import os
import platform
import signal
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long] * 4

_TRACEME, _CONT, _SYSCALL, _SETOPTIONS, _SYSCALL_INFO = 0, 7, 24, 0x4200, 0x420E
_OPTIONS = (
    0x01 | 0x02 | 0x04 | 0x08 | 0x10 | 0x80 | 0x100000
)  # syscall-good, fork, vfork, clone, exec, seccomp, exit-kill
_EVENT_SECCOMP = 7
_STOPPED_AT_CALL = signal.SIGTRAP | 0x80
_ALL_CHILDREN = 0x40000000
_X86_64 = 0xC000003E
_RET_TRACE, _RET_ALLOW = 0x7FF00000, 0x7FFF0000

CALLS = {
    1: "write", 18: "pwrite64", 20: "writev", 296: "pwritev", 328: "pwritev2", 40: "sendfile", 275: "splice",
    2: "open", 257: "openat", 437: "openat2", 85: "creat", 76: "truncate", 77: "ftruncate", 285: "fallocate",
    326: "copy_file_range", 16: "ioctl", 82: "rename", 264: "renameat", 316: "renameat2", 86: "link",
    265: "linkat", 87: "unlink", 263: "unlinkat", 83: "mkdir", 258: "mkdirat", 84: "rmdir", 88: "symlink",
    266: "symlinkat", 133: "mknod", 259: "mknodat", 90: "chmod", 91: "fchmod", 268: "fchmodat", 452: "fchmodat2",
    92: "chown", 93: "fchown", 94: "lchown", 260: "fchownat", 132: "utime", 235: "utimes", 261: "futimesat",
    280: "utimensat", 188: "setxattr", 189: "lsetxattr", 190: "fsetxattr", 197: "removexattr", 198: "lremovexattr",
    199: "fremovexattr", 463: "setxattrat", 466: "removexattrat", 74: "fsync", 75: "fdatasync", 306: "syncfs",
    162: "sync", 277: "sync_file_range", 44: "sendto", 46: "sendmsg", 307: "sendmmsg", 42: "connect", 73: "flock",
    165: "mount", 166: "umount2", 426: "io_uring_enter", 206: "io_setup", 209: "io_submit",
}  # fmt: skip
"""What may change something that outlives the process: on a disk, at a far side, or for another process."""

_BY_DESCRIPTOR = {"write", "pwrite64", "writev", "pwritev", "pwritev2", "splice"}
_OPENS = {"open": 1, "openat": 2}
_MAKES = os.O_CREAT | os.O_TRUNC | 0o20000000
_CLONES = (0x40049409, 0x4020940D)


def can_trace() -> bool:
    """Tell whether this machine is one whose calls the table holds."""
    return platform.machine() == "x86_64" and os.uname().sysname == "Linux"


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A point at which the process stands still.

    Takes: `number`, of its call among those that change something, from 1; `entering`, before the call.
    """

    number: int
    entering: bool
    call: str
    path: str = ""

    def __str__(self) -> str:
        return (
            f"{'before' if self.entering else 'after'} call {self.number}, {self.call} {self.path}".rstrip()
        )


@dataclass(kw_only=True)
class Ended:
    """How a traced process ended. Takes: `status`, negative for a signal."""

    calls: int
    status: int
    killed_at: Stop | None = None


def traced(run: Callable[[], object], kill_at: Callable[[Stop], bool]) -> Ended:
    """Run in a forked child, stopped before and after each call that changes something.

    Takes: `kill_at`, asked at every stop: True ends the child and all its children there by SIGKILL.
    """
    first = os.fork()
    if first == 0:
        try:
            _request(_TRACEME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            _filter_calls()
            run()
        finally:
            os._exit(70)
    os.waitpid(first, _ALL_CHILDREN)
    _request(_SETOPTIONS, first, _OPTIONS)
    _request(_CONT, first)
    return _Tree(first, kill_at).follow()


class _Tree:
    """The traced process with what it started."""

    def __init__(self, first: int, kill_at: Callable[[Stop], bool]) -> None:
        self._first = first
        self._kill_at = kill_at
        self._alive = {first}
        self._inside: dict[int, Stop] = {}
        self.ended = Ended(calls=0, status=0)

    def follow(self) -> Ended:
        while self._alive:
            pid, status = os.waitpid(-1, _ALL_CHILDREN)
            if not os.WIFSTOPPED(status):
                self._alive.discard(pid)
                if pid == self._first:
                    self.ended.status = os.waitstatus_to_exitcode(status)
                continue
            known = pid in self._alive
            self._alive.add(pid)
            if self.ended.killed_at is not None:
                continue  # it is dying; a stop from before has no meaning any more
            self._go_on(pid, os.WSTOPSIG(status), status >> 16, known=known)
        return self.ended

    def _go_on(self, pid: int, number: int, event: int, *, known: bool) -> None:
        if event == _EVENT_SECCOMP:
            stop = self._entering(pid)
            if stop is None:
                _request(_CONT, pid)
            elif not self._burns(stop):
                self._inside[pid] = stop
                _request(_SYSCALL, pid)
        elif number == _STOPPED_AT_CALL:
            before = self._inside.pop(pid, None)
            if before is None or not self._burns(
                Stop(number=before.number, entering=False, call=before.call, path=before.path)
            ):
                _request(_CONT, pid)
        elif event or (number == signal.SIGSTOP and not known):
            _request(_CONT, pid)
        else:
            _request(_CONT, pid, number)

    def _entering(self, pid: int) -> Stop | None:
        raw = ctypes.create_string_buffer(88)
        _request(_SYSCALL_INFO, pid, len(raw), ctypes.addressof(raw))
        number, *arguments = struct.unpack_from("<7Q", raw.raw, 24)
        name = CALLS[number]
        if not _changes(pid, name, arguments):
            return None
        self.ended.calls += 1
        return Stop(number=self.ended.calls, entering=True, call=name, path=_path(pid, name, arguments))

    def _burns(self, stop: Stop) -> bool:
        if not self._kill_at(stop):
            return False
        self.ended.killed_at = stop
        for pid in self._alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return True


def _changes(pid: int, name: str, arguments: list[int]) -> bool:
    if name in _OPENS:
        return bool(arguments[_OPENS[name]] & _MAKES)
    if name == "openat2":
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(arguments[2])
            return bool(int.from_bytes(memory.read(8), "little") & _MAKES)
    if name == "ioctl":
        return arguments[1] in _CLONES
    if name in _BY_DESCRIPTOR:
        number = arguments[2 if name == "splice" else 0] & 0xFFFFFFFF
        try:
            kind = os.stat(f"/proc/{pid}/fd/{number}").st_mode
        except OSError:
            return False
        # what goes to a terminal, a pipe or an event counter is no state
        return stat.S_ISSOCK(kind) or (
            stat.S_ISREG(kind) and not _descriptor(pid, number).startswith("/memfd:")
        )
    return True


def _descriptor(pid: int, number: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{number & 0xFFFFFFFF}")
    except OSError:
        return ""


_FIRST_PATH = {
    "open": 0, "creat": 0, "mkdir": 0, "rmdir": 0, "unlink": 0, "rename": 0, "link": 0, "chmod": 0, "chown": 0,
    "lchown": 0, "setxattr": 0, "lsetxattr": 0, "removexattr": 0, "lremovexattr": 0, "openat": 1, "mkdirat": 1,
    "unlinkat": 1, "renameat": 1, "renameat2": 1, "linkat": 1, "symlinkat": 2, "fchownat": 1, "fchmodat": 1,
    "utimensat": 1,
}  # fmt: skip


def _path(pid: int, name: str, arguments: list[int]) -> str:
    """Name the call's object, for the one who reads a failure."""
    at = _FIRST_PATH.get(name)
    if at is None or not arguments[at]:
        return _descriptor(pid, arguments[0])
    try:
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(arguments[at])
            return memory.read(120).split(b"\0")[0].decode("utf-8", "replace")
    except OSError:
        return ""


def _request(request: int, pid: int, address_or_size: int = 0, data: int = 0) -> None:
    if request in (_CONT, _SETOPTIONS):  # their value is the fourth argument
        address_or_size, data = 0, address_or_size
    if _libc.ptrace(request, pid, address_or_size, data) < 0:
        code = ctypes.get_errno()
        if code != errno.ESRCH:  # it died in the meantime: its end is reported next
            raise OSError(code, f"ptrace {request}: {os.strerror(code)}")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def _filter_calls() -> None:
    """Have the kernel stop this process at each call of the table."""
    load, equal, give = 0x20, 0x15, 0x06
    numbers = sorted(CALLS)
    code = [
        (load, 0, 0, 4),
        (equal, 1, 0, _X86_64),
        (give, 0, 0, _RET_ALLOW),
        (load, 0, 0, 0),
        *((equal, len(numbers) - place, 0, number) for place, number in enumerate(numbers)),
        (give, 0, 0, _RET_ALLOW),
        (give, 0, 0, _RET_TRACE),
    ]
    raw = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *one) for one in code))
    program = _Program(len(code), ctypes.addressof(raw))
    if os.geteuid() != 0:
        _libc.prctl(38, 1, 0, 0, 0)
    if _libc.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def die_with_parent() -> None:
    """Have the kernel end this process when the one that forked it ends."""
    _libc.prctl(1, signal.SIGKILL, 0, 0, 0)
