"""Landlock: a second lock on files, signals and abstract sockets, by path beneath."""

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import stat
import struct

from interlock.boundary import kernel
from interlock.manifest.kernel.deriving import KernelPolicy

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_SCOPES = 3  # abstract unix sockets, signals
_PATH_BENEATH, _PORT = 1, 2
_CONNECT = 2


def abi() -> int:
    """Return the Landlock version of this kernel, 0 if it has none."""
    try:
        return kernel.call("landlock", kernel.NR_LANDLOCK_CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def restrict(version: int, *, writable: tuple[bytes, ...], files: bool) -> str:
    """Lock this thread and its descendants: read everywhere, write below `writable` only.

    Takes: `version`, from `abi`; `files`, whether to lock files at all (a nested sandbox needs mounts, which
    any file rule forbids).
    Returns: the SHA-256 of the rules in hex.
    Holds: no_new_privs is set.
    """
    handled = _RIGHTS_BY_ABI[min(version, 5)] if files else 0
    scopes = _SCOPES if version >= 6 else 0
    if not handled and not scopes:
        return ""
    size = 24 if version >= 6 else (16 if version >= 4 else 8)
    attributes = ctypes.create_string_buffer(struct.pack("=QQQ", handled, 0, scopes)[:size], size)
    ruleset = kernel.call("landlock ruleset", kernel.NR_LANDLOCK_CREATE_RULESET, attributes, size, 0)
    digest = hashlib.sha256(struct.pack("=QQ", handled, scopes))
    try:
        if files:
            _allow(ruleset, b"/", handled & _READ)
            digest.update(struct.pack("=Q", handled & _READ) + b"/\0")
            full = handled & ~(_MAKE_CHAR | _MAKE_BLOCK)
            for path in writable:
                _allow(ruleset, path, full)
                digest.update(struct.pack("=Q", full) + path + b"\0")
            for descriptor in (0, 1, 2):
                _allow_stream(ruleset, descriptor, handled)
        kernel.call("landlock restrict", kernel.NR_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return digest.hexdigest()


def apply(policy: KernelPolicy) -> tuple[str, ...]:
    """Lock this thread and its descendants as a plan has it.

    Returns: paths of its rules that are not there, to which nothing is allowed.
    Holds: no_new_privs is set.
    """
    if not (policy.handled or policy.ports_handled or policy.scopes):
        return ()
    attributes = struct.pack("=QQQ", policy.handled, policy.ports_handled, policy.scopes)
    size = 24 if policy.scopes else (16 if policy.ports_handled else 8)
    record = ctypes.create_string_buffer(attributes[:size], size)
    ruleset = kernel.call("landlock ruleset", kernel.NR_LANDLOCK_CREATE_RULESET, record, size, 0)
    absent: list[str] = []
    try:
        for path, rights in policy.paths:
            try:
                _allow(ruleset, os.fsencode(path), rights)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP):
                    raise
                absent.append(path)
        if policy.handled:
            for descriptor in (0, 1, 2):
                _allow_stream(ruleset, descriptor, policy.handled)
        for port in policy.ports:
            rule = ctypes.create_string_buffer(struct.pack("=QQ", _CONNECT, port), 16)
            kernel.call("landlock rule", kernel.NR_LANDLOCK_ADD_RULE, ruleset, _PORT, rule, 0)
        kernel.call("landlock restrict", kernel.NR_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return tuple(absent)


def _allow_stream(ruleset: int, descriptor: int, handled: int) -> None:
    """Let `/dev/stdout` and the like be opened again, but only as the stream itself is open."""
    try:
        mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        file = os.open(f"/proc/self/fd/{descriptor}", os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if stat.S_ISDIR(os.fstat(file).st_mode):
        # A right to a folder is one to all below it, and this one is the host's.
        os.close(file)
        return
    try:
        access = _IOCTL_DEV
        if mode != os.O_WRONLY:
            access |= _READ_FILE
        if mode != os.O_RDONLY:
            access |= _WRITE_FILE | _TRUNCATE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", access & handled, file), 12)
        # A pipe or a socket has no path to rule on, and needs none.
        with contextlib.suppress(OSError):
            kernel.call("landlock rule", kernel.NR_LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(file)


def _allow(ruleset: int, path: bytes, access: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):
            access &= _FILE_RIGHTS
        rule = ctypes.create_string_buffer(struct.pack("=Qi", access, folder), 12)
        kernel.call("landlock rule", kernel.NR_LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(folder)
