"""Calls that a plan's filter asks about: each is answered with an error, counted and told.

None is ever let through, but for the one that starts the first program: until then nobody but our own code runs in that
process, so what it asks for cannot be changed behind our back.
Source: ours; seccomp_unotify(2), whose warning about answers that let a call go on this heeds.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct

from interlock.boundary import kernel
from interlock.manifest.kernel import rules
from interlock.model.records import dataclass
from interlock.model.system_calls import NAMES

_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_VALID = 0x40082102
_GO_ON = 1
_REQUEST = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")
_ACTION_AVAILABLE, _ASK = 2, 0x7FC00000
_X86_64, _I386 = 0xC000003E, 0x40000003
_X32_BIT = 0x40000000
_EXECVE, _SOCKET, _SOCKETPAIR = 59, 41, 53
_PATH_AT = {
    2: 0, 4: 0, 6: 0, 21: 0, 59: 0, 76: 0, 80: 0, 82: 0, 83: 0, 84: 0, 85: 0, 86: 0, 87: 0, 88: 0, 89: 0, 90: 0,
    92: 0, 94: 0, 132: 0, 133: 0, 137: 0, 161: 0, 165: 1, 166: 0, 257: 1, 258: 1, 259: 1, 260: 1, 262: 1, 263: 1,
    264: 1, 265: 1, 266: 0, 267: 1, 268: 1, 269: 1, 316: 1, 322: 1, 332: 1, 437: 1, 439: 1, 452: 1,
}  # fmt: skip
"""The argument that points at the path of a call."""
_SHOWN, _KINDS = 160, 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """A call that was refused.

    Takes: `name`, of the call, or what says which it was; `number`; `detail`, what it was about, as text that can be
    shown, `""` where nothing is known; `count`, how often; `advice`, the line that a toolkit lacks, `""` where none
    would help.
    """

    name: str
    number: int
    detail: str
    count: int
    advice: str


def possible() -> bool:
    """Say whether this kernel tells of refused calls, and lets us take the descriptor that it tells them at."""
    action = ctypes.create_string_buffer(struct.pack("=I", _ASK), 4)
    try:
        kernel.call("seccomp", kernel.NR_SECCOMP, _ACTION_AVAILABLE, 0, action)
        reader, writer = os.pipe()
        try:
            os.close(taken_from(os.getpid(), reader))
        finally:
            os.close(reader)
            os.close(writer)
    except OSError:
        return False
    return True


def taken_from(pid: int, descriptor: int) -> int:
    """Return a copy of a descriptor of another process. Raises: OSError."""
    who = kernel.call("pidfd_open", kernel.NR_PIDFD_OPEN, pid, 0)
    try:
        return kernel.call("pidfd_getfd", kernel.NR_PIDFD_GETFD, who, descriptor, 0)
    finally:
        os.close(who)


class Refusals:
    """The end at which refused calls are told and answered.

    Takes: `descriptor`, which it owns; `first`, whether one execve is let through, the first program's.
    Holds: `total`, how many were refused; at most 256 kinds are told apart, the rest are counted together.
    """

    def __init__(self, descriptor: int, *, first: bool) -> None:
        self.descriptor = descriptor
        self.total = 0
        self.ended = False
        self._first = first
        self._counts: dict[tuple[str, int, str], int] = {}
        self._fresh: list[tuple[str, int, str]] = []
        self._told: dict[tuple[str, int, str], int] = {}

    def react(self, most: int = 64) -> None:
        """Answer what waits, at most so many calls; the descriptor is ready."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        for _ in range(most):
            ready = poll.poll(0)
            if not ready:
                return
            if ready[0][1] & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
                self.ended = True  # nobody is under the filter any more
                return
            self._one()

    def _one(self) -> None:
        buffer = bytearray(_REQUEST.size)
        try:
            fcntl.ioctl(self.descriptor, _RECEIVE, buffer)
        except OSError:
            return  # whoever asked is gone
        token, pid, _, number, architecture, _, *arguments = _REQUEST.unpack(buffer)
        if self._first and architecture == _X86_64 and number == _EXECVE:
            self._first = False
            self._say(token, 0, _GO_ON)
            return
        name = call_name(number, architecture)
        detail = self._detail(token, pid, number, architecture, arguments)
        absent = architecture != _X86_64 or number in rules.FALL_BACK or number > rules.LAST_KNOWN
        self._say(token, errno.ENOSYS if absent else errno.EPERM, 0)
        self.total += 1
        key = (name, number, detail)
        if key not in self._counts and len(self._counts) >= _KINDS:
            key = ("others", -1, "")
        if key not in self._counts:
            self._fresh.append(key)
        self._counts[key] = self._counts.get(key, 0) + 1

    def _say(self, token: int, error: int, flags: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.descriptor, _ANSWER, _REPLY.pack(token, 0, -error, flags))

    def _detail(self, token: int, pid: int, number: int, architecture: int, arguments: list[int]) -> str:
        if architecture != _X86_64:
            return ""
        if number in (_SOCKET, _SOCKETPAIR):
            return _family(arguments[0] & 0xFFFFFFFF)
        if number not in _PATH_AT:
            return ""
        text = _text_of(pid, arguments[_PATH_AT[number]])
        try:
            # What was read is the asker's only if it still waits: its pid may be another's by now.
            fcntl.ioctl(self.descriptor, _VALID, struct.pack("=Q", token))
        except OSError:
            return ""
        return text

    def fresh(self) -> tuple[Denial, ...]:
        """Return the kinds that are new since the last time."""
        new, self._fresh = self._fresh, []
        self._told.update((key, self._counts[key]) for key in new)
        return tuple(_denial(key, self._counts[key]) for key in new)

    def again(self) -> tuple[Denial, ...]:
        """Return the kinds that came again since they were told, each with how often it did."""
        since = {key: count - self._told.get(key, 0) for key, count in self._counts.items()}
        self._told = dict(self._counts)
        return tuple(_denial(key, count) for key, count in since.items() if count)

    def all(self) -> tuple[Denial, ...]:
        """Return all kinds, each with its count, in the order of their first time."""
        return tuple(_denial(key, count) for key, count in self._counts.items())

    def close(self) -> None:
        """Stop answering: what is asked from now on is refused by the kernel itself (ENOSYS)."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def call_name(number: int, architecture: int = _X86_64) -> str:
    """Return a call's name, or what says which it was."""
    if architecture == _I386:
        return f"i386 call {number}"
    if architecture != _X86_64:
        return f"call {number} of architecture {architecture:#x}"
    if number < 0 or number & _X32_BIT:
        return f"x32 call {number & ~_X32_BIT & 0xFFFFFFFF}"
    return NAMES.get(number, f"call {number}")


def advice(name: str, number: int, detail: str = "") -> str:
    """Return the line that a toolkit lacks, `""` where none would help.

    A call that the sandbox itself refuses is refused with the line too, but nobody is told of it any more.
    """
    if NAMES.get(number) != name:
        return ""
    line = f'system_calls: {{{name}: "why"}}'
    if number == _SOCKET and detail.startswith("AF_INET"):
        line += ', hosts: [{host: "HOST", port: 443, reason: "why"}]'
    return f"needs: {{{line}}}"


def _denial(key: tuple[str, int, str], count: int) -> Denial:
    name, number, detail = key
    return Denial(name=name, number=number, detail=detail, count=count, advice=advice(name, number, detail))


def _family(number: int) -> str:
    try:
        return socket.AddressFamily(number).name
    except ValueError:
        return f"family {number}"


def _text_of(pid: int, address: int) -> str:
    """Return the text at an address of a process, made harmless to show; it only says what was tried."""
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        room = 4096 - address % 4096
        data = os.pread(memory, min(room, _SHOWN + 1), address)
        if b"\0" not in data and len(data) < _SHOWN + 1:
            with contextlib.suppress(OSError):
                data += os.pread(memory, _SHOWN + 1 - len(data), address + len(data))
    except (OSError, OverflowError):
        return ""
    finally:
        os.close(memory)
    text = data.split(b"\0", 1)[0][:_SHOWN].decode("utf-8", "replace")
    return "".join(one if one.isprintable() else "?" for one in text)
