"""The Linux calls that Python has no name for, by ctypes (x86_64)."""

import ctypes
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
# PyDLL keeps the interpreter lock: after a raw clone there is no other thread to take it from.
_locked_syscall = ctypes.PyDLL(None).syscall
_locked_syscall.restype = ctypes.c_long

NR_PIVOT_ROOT = 155
NR_PRCTL = 157
NR_UMOUNT2 = 166
NR_MOUNT = 165
NR_CLONE = 56
NR_CAPSET = 126
NR_UNSHARE = 272
NR_TIMERFD_CREATE = 283
NR_TIMERFD_SETTIME = 286
NR_SIGNALFD4 = 289
NR_FANOTIFY_INIT = 300
NR_FANOTIFY_MARK = 301
NR_OPEN_BY_HANDLE_AT = 304
NR_SECCOMP = 317
NR_OPEN_TREE = 428
NR_MOVE_MOUNT = 429
NR_FSOPEN = 430
NR_FSCONFIG = 431
NR_FSMOUNT = 432
NR_CLOSE_RANGE = 436
NR_MOUNT_SETATTR = 442
NR_PIDFD_OPEN = 434
NR_PIDFD_GETFD = 438
NR_LANDLOCK_CREATE_RULESET = 444
NR_LANDLOCK_ADD_RULE = 445
NR_LANDLOCK_RESTRICT_SELF = 446

CLONE_PARENT = 0x8000
CLONE_NEWNS = 0x20000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_NEW_ALL = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET

MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 4
FSCONFIG_SET_FLAG = 0
FSCONFIG_SET_STRING = 1
FSCONFIG_CMD_CREATE = 6
MOUNT_ATTR_RDONLY = 1
MOUNT_ATTR_NOSUID = 2
MOUNT_ATTR_NODEV = 4
MOUNT_ATTR_NOEXEC = 8
MOUNT_ATTR_IDMAP = 0x100000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4


def call(what: str, number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """Make system call `number`.

    Raises: OSError, its text naming `what`.
    """
    # A plain int would be passed as 32 bits.
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _syscall(ctypes.c_long(number), *values)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def clone_as_sibling(flags: int) -> int:
    """Fork with new namespaces; the new process is a child of our parent.

    Takes: `flags`, CLONE_NEW*.
    Returns: 0 in the new process, its pid in the caller.
    Holds: the caller has one thread (it is itself fresh from `os.fork`), so no lock is held by another.
    """
    zero = ctypes.c_long(0)
    result: int = _locked_syscall(
        ctypes.c_long(NR_CLONE), ctypes.c_long(flags | CLONE_PARENT | 17), zero, zero, zero, zero
    )
    if result < 0:
        raise OSError(ctypes.get_errno() or 1, "clone with new namespaces was refused")
    return result


def prctl(option: int, *values: int) -> int:
    """Call prctl(2), missing arguments zero."""
    padded = [*values, 0, 0, 0, 0][:4]
    return call("prctl", NR_PRCTL, option, *padded)


def make_mounts_private() -> None:
    """Cut this mount namespace off from its parent's mount events."""
    call("mount private", NR_MOUNT, b"none", b"/", None, MS_REC | MS_PRIVATE, None)


def new_mount(kind: str, options: tuple[str | tuple[str, str], ...], attributes: int) -> int:
    """Make a detached mount of a new file system.

    Returns: a descriptor of the mount, attached nowhere.
    """
    context = call(f"fsopen {kind}", NR_FSOPEN, kind.encode(), 1)
    try:
        for option in options:
            if isinstance(option, str):
                call(f"{kind} {option}", NR_FSCONFIG, context, FSCONFIG_SET_FLAG, option.encode(), None, 0)
            else:
                key, value = option
                call(
                    f"{kind} {key}",
                    NR_FSCONFIG,
                    context,
                    FSCONFIG_SET_STRING,
                    key.encode(),
                    value.encode(),
                    0,
                )
        call(f"make {kind}", NR_FSCONFIG, context, FSCONFIG_CMD_CREATE, None, None, 0)
        return call(f"fsmount {kind}", NR_FSMOUNT, context, 1, attributes)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}{_context_log(context)}") from None
    finally:
        os.close(context)


def _context_log(context: int) -> str:
    lines: list[str] = []
    try:
        while len(lines) < 8:
            lines.append(os.read(context, 1024).decode(errors="replace").strip())
    except OSError:
        pass
    return f" ({'; '.join(lines)})" if lines else ""


def clone_tree(path: bytes, *, directory: int = AT_FDCWD, recursive: bool = True) -> int:
    """Copy the mounts at a path; an empty path means the descriptor `directory` itself."""
    flags = OPEN_TREE_CLONE | os.O_CLOEXEC | (0 if path else AT_EMPTY_PATH)
    if recursive:
        flags |= AT_RECURSIVE
    return call(f"open_tree {os.fsdecode(path)}", NR_OPEN_TREE, directory, path, flags)


def set_mount(mount: int, attributes: int, *, recursive: bool = True) -> None:
    """Add attributes to a mount that is named by descriptor."""
    record = ctypes.create_string_buffer(struct.pack("=QQQQ", attributes, 0, 0, 0), 32)
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0)
    call("mount_setattr", NR_MOUNT_SETATTR, mount, b"", flags, record, 32)


def map_mount(mount: int, namespace: int) -> None:
    """Show the owners of a detached mount's files as a user namespace maps them."""
    record = ctypes.create_string_buffer(struct.pack("=QQQQ", MOUNT_ATTR_IDMAP, 0, 0, namespace), 32)
    call("mount_setattr", NR_MOUNT_SETATTR, mount, b"", AT_EMPTY_PATH | AT_RECURSIVE, record, 32)


def attach(mount: int, target: bytes) -> None:
    """Attach a detached mount at a path."""
    call("move_mount", NR_MOVE_MOUNT, mount, b"", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH)


def enter_root(path: bytes) -> None:
    """Make the mount at `path` the root and let the old root go."""
    os.chdir(path)
    call("pivot_root", NR_PIVOT_ROOT, b".", b".")
    call("umount the old root", NR_UMOUNT2, b".", MNT_DETACH)
    os.chdir("/")


def close_from(first: int) -> None:
    """Close every descriptor from `first` on."""
    call("close_range", NR_CLOSE_RANGE, first, 0xFFFFFFFF, 0)


def close_except(kept: tuple[int, ...]) -> None:
    """Close every descriptor that is not in `kept`."""
    start = 0
    for number in sorted(set(kept)):
        if number > start:
            call("close_range", NR_CLOSE_RANGE, start, number - 1, 0)
        start = number + 1
    close_from(start)


def signal_descriptor(signals: frozenset[int]) -> int:
    """Make a descriptor that reports these signals; the caller has blocked them."""
    mask = 0
    for number in signals:
        mask |= 1 << (number - 1)
    raw = ctypes.create_string_buffer(struct.pack("=Q", mask), 8)
    return call("signalfd", NR_SIGNALFD4, -1, raw, 8, os.O_CLOEXEC | os.O_NONBLOCK)


def interval_descriptor(interval_ns: int) -> int:
    """Make a descriptor that can be read once in each interval, from the first one's end on."""
    timer = call("timerfd", NR_TIMERFD_CREATE, 1, os.O_CLOEXEC | os.O_NONBLOCK)
    seconds, rest = divmod(interval_ns, 1_000_000_000)
    raw = ctypes.create_string_buffer(struct.pack("=4q", seconds, rest, seconds, rest), 32)
    call("timerfd time", NR_TIMERFD_SETTIME, timer, 0, raw, None)
    return timer


def read_signals(descriptor: int) -> list[tuple[int, int]]:
    """Take what a signal descriptor holds.

    Returns: pairs of signal number and si_code.
    """
    try:
        data = os.read(descriptor, 128 * 32)
    except BlockingIOError:
        return []
    return [
        (number, code)
        for number, _, code in (struct.unpack_from("=Iii", data, at) for at in range(0, len(data), 128))
    ]
