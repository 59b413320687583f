"""Attacks on the machine: kernel code, clocks, keys, disks, names."""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import signal
import struct
import tempfile

from tests.boundary.probes.entry import (
    NotRun,
    Scene,
    Stopped,
    World,
    address,
    attempt,
    block,
    call,
    plain_call,
    probe,
)

_KERNEL, _CLOCK, _KEYS, _RING = (
    "the kernel's code",
    "the machine's clock",
    "the host's keyrings",
    "the filter",
)

plain_call("load a module", _KERNEL, 175, block(16), 16, b"", reached=(errno.ENOEXEC,))
plain_call("remove a module", _KERNEL, 176, b"interlock_probe_none", 0x800, reached=(errno.ENOENT,))
plain_call("load another kernel", _KERNEL, 246, 0, 0, None, 0)
plain_call("load another kernel from a file", _KERNEL, 320, -1, -1, 0, None, 0, reached=(errno.EBADF,))
plain_call("ask for kernel symbols", _KERNEL, 177, None)
plain_call("ask about modules", _KERNEL, 178, None, 0, None, 0, None)
plain_call("make a module the old way", _KERNEL, 174, b"x", 4096)


@probe("load a module from a file", _KERNEL)
def _(_scene: Scene) -> str:
    handle = os.memfd_create("module")
    os.write(handle, bytes(4096))
    readable = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY)
    os.close(handle)
    return attempt(313, readable, b"", 0, reached=(errno.ENOEXEC,))


@probe("make a kernel map", "kernel programs")
def _(_scene: Scene) -> str:
    record = block(128)
    record.raw = struct.pack("=5I", 2, 4, 4, 1, 0).ljust(128, b"\0")
    return attempt(321, 0, record, 128)


@probe("load a kernel program", "kernel programs")
def _(_scene: Scene) -> str:
    code, licence, record = block(16), block(4), block(128)
    code.raw = bytes.fromhex("b7000000000000009500000000000000")
    licence.raw = b"GPL\0"
    record.raw = struct.pack("=IIQQ", 1, 2, address(code), address(licence)).ljust(128, b"\0")
    return attempt(321, 5, record, 128)


@probe("count events of the machine", "counters of the whole machine")
def _(_scene: Scene) -> str:
    record = block(128)
    record.raw = struct.pack("=IIQ", 1, 128, 0).ljust(128, b"\0")
    return attempt(298, record, -1, 0, -1, 0)


@probe("count its own events", "the performance counters' code")
def _(_scene: Scene) -> str:
    record = block(128)
    record.raw = struct.pack("=IIQ", 1, 128, 0).ljust(128, b"\0")
    return attempt(298, record, 0, -1, -1, 0)


plain_call("catch page faults", "races in the kernel", 323, 1)
plain_call("add a key", _KEYS, 248, b"user", b"interlock-probe", b"v", 1, -2)
plain_call("ask for a key", _KEYS, 249, b"user", b"interlock-none", None, 0, reached=(errno.ENOKEY,))
plain_call("open the user's keyring", _KEYS, 250, 0, -4, 1)
plain_call("read the session's keyring", _KEYS, 250, 6, -3, 0, 0)
plain_call("join another keyring session", _KEYS, 250, 1, b"interlock-probe")
plain_call("make a submission ring", _RING, 425, 8, block(120))
plain_call("enter a submission ring", _RING, 426, 999, 0, 0, 0, None, 0, reached=(errno.EBADF,))
plain_call("register with a submission ring", _RING, 427, 999, 1, None, 0, reached=(errno.EBADF,))
plain_call("watch files of the machine", "files of others", 300, 0x200, 0)
plain_call("mark files for watching", "files of others", 301, 999, 1, 2, 0, -100, b"/", reached=(errno.EBADF, errno.EINVAL))  # fmt: skip
plain_call("reach the disk quotas", "the host's file systems", 179, 0x80000100, None, 0, None)
plain_call("reach disk quotas by descriptor", "the host's file systems", 443, 999, 0x80000100, 0, None, reached=(errno.EBADF,))  # fmt: skip
plain_call("drop the accounting", "the host's records", 163, None, control=World.APART)
plain_call("restart the machine", "the machine", 169, 0xFEE1DEAD, 672274793, 0x1234567, None, control=World.APART, fatal="SIGHUP")  # fmt: skip
plain_call("halt the machine", "the machine", 169, 0xFEE1DEAD, 672274793, 0xCDEF0123, None, control=World.APART, fatal="SIGINT")  # fmt: skip
plain_call("set the time zone of the kernel", _CLOCK, 164, None, block(8))
plain_call("step the clock", _CLOCK, 305, 0, struct.pack("=I", 0x100).ljust(208, b"\0"))
plain_call("steer the clock", _CLOCK, 159, struct.pack("=I", 0x100).ljust(208, b"\0"))
plain_call("set the clock", _CLOCK, 227, 0, struct.pack("=qq", 0, 0), no_control="it would move this machine's clock")  # fmt: skip
plain_call("read the kernel's log", "the kernel's log", 103, 3, block(4096), 4096)
plain_call("clear the kernel's log level", "the kernel's log", 103, 10, None, 0)
plain_call("name the host", "the host's name", 170, b"interlock-probe", 15)
plain_call("name the host's domain", "the host's name", 171, b"interlock-probe", 15)
plain_call("make memory executable by default", "address checks", 135, 0x0400000)
plain_call("take an old address layout", "address checks", 135, 0x0200000)
plain_call("raise the port privileges", "input and output ports", 172, 3)
plain_call("open the ports", "input and output ports", 173, 0x80, 1, 1)
plain_call("read the segment table", "old doors of the kernel", 154, 0, block(64), 64)
plain_call("list the file system types", "old doors of the kernel", 139, 3)


@probe("turn the accounting on", "the host's records", control=World.APART)
def _(scene: Scene) -> str:
    with tempfile.NamedTemporaryFile(dir=scene.workspace) as file:
        try:
            return attempt(163, os.fsencode(file.name))
        finally:
            with contextlib.suppress(OSError):
                call(163, None)


@probe("swap to a file", "the machine's memory")
def _(scene: Scene) -> str:
    path = os.fsencode(scene.aim("workspace", "swap"))
    with open(path, "wb") as file:
        page = bytearray(4096)
        page[1024:1036] = struct.pack("=III", 1, 15, 0)
        page[4086:] = b"SWAPSPACE2"
        file.write(bytes(page) + bytes(4096 * 15))
        os.fsync(file.fileno())
    os.chmod(path, 0o600)
    try:
        return attempt(167, path, 0)
    finally:
        with contextlib.suppress(OSError):
            call(168, path)
        os.unlink(path)


@probe("stop swapping", "the machine's memory")
def _(scene: Scene) -> str:
    return attempt(168, os.fsencode(scene.workspace), reached=(errno.EINVAL, errno.EISDIR))


@probe("hang the terminal up", "the user's terminal")
def _(_scene: Scene) -> str:
    _own_terminal()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return attempt(153)


def _own_terminal() -> int:
    control, terminal = os.openpty()
    os.set_inheritable(control, False)
    os.setsid()
    with contextlib.suppress(OSError):
        fcntl.ioctl(terminal, 0x540E, 0)  # TIOCSCTTY
    return terminal


def _enter_terminal(name: str, request: int, stops: str = "EPERM") -> None:
    def type_in(_: Scene) -> str:
        return attempt(16, _own_terminal(), request, bytes(8))

    probe(name, "the user's terminal", stops=stops)(type_in)


_enter_terminal("type into the terminal", 0x5412)
_enter_terminal("type into the terminal with high bits set", 0x7700005412)
_enter_terminal("change the terminal's line discipline", 0x5423)
_enter_terminal("take the console's messages", 0x541D)


@probe("paste by the console's selection", "the user's terminal")
def _(_scene: Scene) -> str:
    try:
        terminal = os.open("/dev/tty0", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        terminal = _own_terminal()
    return attempt(16, terminal, 0x541C, b"\x06")


@probe("open a file by its handle", "files past their path")
def _(_scene: Scene) -> str:
    handle, mount = block(136), block(4)
    with open("/dev/shm/interlock-probe-handle", "w") as file:
        handle.raw = struct.pack("=Ii", 128, 0).ljust(136, b"\0")
        try:
            call(303, -100, os.fsencode(file.name), handle, mount, 0)
            folder = os.open("/dev/shm", os.O_RDONLY)
            return attempt(304, folder, handle, os.O_RDONLY)
        finally:
            os.unlink(file.name)


@probe("open the disk's root by a forged handle", "files past their path")
def _(scene: Scene) -> str:
    handle = block(16)
    handle.raw = struct.pack("=IiII", 8, 1, 2, 0)
    folder = os.open(scene.workspace, os.O_RDONLY)
    return attempt(304, folder, handle, os.O_RDONLY, reached=(errno.ESTALE,))


@probe("thaw the file system", "the host's file systems", stops="EPERM|EOPNOTSUPP")
def _(scene: Scene) -> str:
    return attempt(16, os.open(scene.workspace, os.O_RDONLY), 0xC0045878, None, reached=(errno.EINVAL,))


@probe("make a file immutable", "the merge", stops="EPERM|EOPNOTSUPP", target="workspace")
def _(scene: Scene) -> str:
    file = os.open(scene.aim("workspace"), os.O_RDWR)
    flags = block(8)
    call(16, file, 0x80086601, flags)
    before = flags.raw
    flags.raw = struct.pack("=Q", struct.unpack("=Q", before)[0] | 0x10)
    try:
        return attempt(16, file, 0x40086602, flags)
    finally:
        flags.raw = before
        with contextlib.suppress(OSError):
            call(16, file, 0x40086602, flags)


def _run_code(*parts: tuple[int, str]) -> int:
    """Run machine code that leaves a number in eax; a part `AT+n` is the address of byte n."""
    memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)  # MAP_32BIT
    where = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for start, code in parts:
        raw = b"".join(
            (where + int(word[3:])).to_bytes(4, "little") if word.startswith("AT+") else bytes.fromhex(word)
            for word in code.split()
        )
        memory[start : start + len(raw)] = raw
    result: int = ctypes.CFUNCTYPE(ctypes.c_int)(where)()
    return result


def _answer(number: int) -> str:
    if number == -errno.ENOSYS:
        raise OSError(errno.ENOSYS, "no such call")
    if number == os.getpid():
        return "the call was answered"
    raise Stopped(f"answer {number}")


@probe("call the kernel as a 32-bit program", "the filter", stops="SIGSYS")
def _(_scene: Scene) -> str:
    return _answer(_run_code((0, "b814000000 cd80 c3")))  # getpid is 20 there


@probe("call the kernel from a 32-bit code segment", "the filter", stops="SIGSYS")
def _(_scene: Scene) -> str:
    # Keep the stack's place at +128; far return to 32-bit code at +32; getpid; far jump to +64 and back.
    return _answer(
        _run_code(
            (0, "48892579000000 6a23 68 AT+32 48cb"),
            (32, "b814000000 cd80 ea AT+64 3300"),
            (64, "488b2539000000 c3"),
        )
    )


def _enter_x32() -> None:
    for name, number in (("getpid", 39), ("mount", 165), ("ptrace", 521), ("execve", 520)):
        plain_call(f"make the x32 call {name}", "the filter", 0x40000000 + number, stops="SIGSYS")


_enter_x32()


def _enter_unknown() -> None:
    for number in (470, 471, 500, 547, 1000, 0x3FFFFFFF):
        plain_call(
            f"make the unknown call {number}", "the filter", number, stops="ENOSYS",
            no_control="this kernel may not have the call either",
        )  # fmt: skip


_enter_unknown()


@probe("lift its own filter", "the filter", stops="EINVAL|EPERM|filter stays")
def _(_scene: Scene) -> str:
    # A filter that allows all, added on top, must not win.
    code, record = block(8), block(16)
    code.raw = struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000)
    record.raw = struct.pack("=HxxxxxxQ", 1, address(code))
    call(317, 1, 0, record)
    try:
        call(272, 0x10000000)
    except PermissionError:
        raise Stopped("filter stays") from None
    return "a call was allowed again"


@probe("clear no_new_privs", "set-id programs", stops="EINVAL|it stays")
def _(_scene: Scene) -> str:
    with contextlib.suppress(OSError):
        call(157, 38, 0, 0, 0, 0)
    if call(157, 39, 0, 0, 0, 0) == 1:
        raise Stopped("it stays")
    return "it is off"


@probe("have a module loaded for a socket", "the kernel's code")
def _(_scene: Scene) -> str:
    # The kernel looks a protocol's module up on behalf of whoever asks.
    import socket

    for kind, protocol in ((socket.SOCK_SEQPACKET, 132), (6, 33), (socket.SOCK_DGRAM, 115)):
        try:
            socket.socket(socket.AF_INET, kind, protocol).close()
        except OSError as error:
            if error.errno in (errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT):
                return "the kernel looked for the protocol's module"
            raise
        return "the protocol was given"
    raise NotRun("no protocol to ask for")
