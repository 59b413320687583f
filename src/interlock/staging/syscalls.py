"""The few Linux calls of staging that `os` does not have.

Source: openat2(2), rename(2), syncfs(2), ioctl_ficlone(2), statx(2).
"""

import ctypes
import errno
import fcntl
import os
import struct

from interlock.model.errors import BoundaryError

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2

_RESOLVE_NO_XDEV = 0x01
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_CONFINED = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_XDEV

_NR_OPENAT2 = 437  # one number on every architecture: the call is newer than the common table
_FICLONE = 0x40049409
_STATX_BTIME, _SYMLINK_NOFOLLOW, _BTIME_AT = 0x800, 0x100, 80

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.renameat2.restype = ctypes.c_int
_libc.renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
_libc.syncfs.restype = ctypes.c_int
_libc.syncfs.argtypes = [ctypes.c_int]


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(dir_fd: int, path: str, flags: int) -> int:
    """Open a path that can lead neither out of `dir_fd`, nor over a symlink, nor onto another mount.

    Raises: OSError as the kernel gives it (ELOOP at a symlink, EXDEV at a way out); BoundaryError on a
    kernel that has no openat2.
    """
    how = _OpenHow(flags | os.O_CLOEXEC, 0, _CONFINED)
    raw = os.fsencode(path) or b"."
    while True:
        fd: int = _libc.syscall(
            ctypes.c_long(_NR_OPENAT2),
            ctypes.c_long(dir_fd),
            ctypes.c_char_p(raw),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code == errno.ENOSYS:
            raise BoundaryError("this kernel has no openat2", hint="use Linux 5.6 or later")
        # EAGAIN: a rename elsewhere raced with the look-up; EINTR: a signal
        if code not in (errno.EAGAIN, errno.EINTR):
            raise OSError(code, os.strerror(code), path)


def renameat2(old_dir_fd: int, old: str, new_dir_fd: int, new: str, flags: int) -> None:
    """Rename with RENAME_NOREPLACE or RENAME_EXCHANGE.

    Raises: OSError; EINVAL where the file system does not know the flag.
    """
    if _libc.renameat2(old_dir_fd, os.fsencode(old), new_dir_fd, os.fsencode(new), flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), old, None, new)


def syncfs(fd: int) -> None:
    """Make everything written so far to the file system of `fd` durable.

    Raises: OSError, also for a write-back error that happened before.
    """
    if _libc.syncfs(fd) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def share_bytes(source_fd: int, target_fd: int) -> bool:
    """Let the empty target share the source's blocks (reflink); False where that cannot be had."""
    try:
        fcntl.ioctl(target_fd, _FICLONE, source_fd)
    except OSError:
        return False
    return True


def birth_ns(dir_fd: int, name: str) -> int:
    """Return when an entry's inode was made, 0 where the file system does not say. Raises: OSError."""
    answer = ctypes.create_string_buffer(256)
    if _libc.statx(dir_fd, os.fsencode(name), _SYMLINK_NOFOLLOW, _STATX_BTIME, answer) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    (mask,) = struct.unpack_from("=I", answer, 0)
    if not mask & _STATX_BTIME:
        return 0
    seconds, nanoseconds = struct.unpack_from("=qI", answer, _BTIME_AT)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)
