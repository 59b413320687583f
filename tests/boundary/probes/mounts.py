"""Attacks on the view of the file system: mounts, roots and namespaces."""

import contextlib
import errno
import os
import struct

from tests.boundary.probes.entry import (
    Scene,
    World,
    attempt,
    block,
    call,
    plain_call,
    probe,
)

_MOUNT, _UMOUNT, _PIVOT, _CHROOT, _UNSHARE, _SETNS, _CLONE, _CLONE3 = 165, 166, 155, 161, 272, 308, 56, 435
_BIND, _REMOUNT, _RDONLY, _MOVE, _SHARED, _REC = 4096, 32, 1, 8192, 1 << 20, 16384
_HERE = -100

plain_call("mount a tmpfs", "the file tree", _MOUNT, b"x", b"/tmp", b"tmpfs", 0, None)
plain_call("mount a second proc", "masks of the proc folder", _MOUNT, b"proc", b"/tmp", b"proc", 0, None)
plain_call("bind a folder over another", "the file tree", _MOUNT, b"/usr", b"/tmp", None, _BIND, None)
plain_call("bind the whole tree again", "read-only mounts", _MOUNT, b"/", b"/tmp", None, _BIND | _REC, None)
plain_call(
    "remount the proc folder writable",
    "read-only mounts",
    _MOUNT,
    b"none",
    b"/proc",
    None,
    _REMOUNT | _BIND,
    None,
)
plain_call(
    "make mounts shared", "mount events of the host", _MOUNT, b"none", b"/", None, _SHARED | _REC, None
)
plain_call("unmount a mask", "what is masked", _UMOUNT, b"/proc", 2)
plain_call("unmount the terminals", "the file tree", _UMOUNT, b"/dev/pts", 2)
plain_call("chroot", "the root folder", _CHROOT, b"/tmp")
plain_call("open a mount context", "the file tree", 430, b"tmpfs", 0)
plain_call("pick a mount's context", "mount options", 433, _HERE, b"/proc", 0)
plain_call("clone a mount tree", "the file tree", 428, _HERE, b"/usr", 1)
plain_call("clone a whole mount tree", "the file tree", 428, _HERE, b"/", 1 | 0x8000)
plain_call("clone a mount tree with attributes", "read-only mounts", 467, _HERE, b"/usr", 1, None, 0)
plain_call("move a mount", "the file tree", 429, _HERE, b"/proc", _HERE, b"/tmp", 0)
plain_call("configure a mount context", "mount options", 431, 999, 6, None, None, 0, reached=(errno.EBADF,))
plain_call("mount from a context", "the file tree", 432, 999, 0, 0, reached=(errno.EBADF,))


@probe("move a mount with the old call", "the file tree")
def _(_scene: Scene) -> str:
    with contextlib.suppress(OSError):
        call(_MOUNT, b"none", b"/", None, 1 << 18 | _REC, None)
    return attempt(_MOUNT, b"/proc", b"/tmp", None, _MOVE, None)


@probe("clear a mount's read-only mark", "read-only mounts")
def _(_scene: Scene) -> str:
    record = block(32)
    record.raw = struct.pack("=QQQQ", 0, _RDONLY, 0, 0)
    return attempt(442, _HERE, b"/", 0, record, 32)


@probe("clear every mount's read-only mark", "read-only mounts")
def _(_scene: Scene) -> str:
    record = block(32)
    record.raw = struct.pack("=QQQQ", 0, _RDONLY, 0, 0)
    return attempt(442, _HERE, b"/", 0x8000, record, 32)


@probe("pivot the root away", "the root folder")
def _(_scene: Scene) -> str:
    with contextlib.suppress(OSError):
        call(_MOUNT, b"x", b"/tmp", b"tmpfs", 0, None)
    return attempt(_PIVOT, b"/tmp", b"/tmp")


_KINDS = {
    "mount": 0x20000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "cgroup": 0x02000000,
    "time": 0x80,
}


def _enter_namespaces(kind: str, flag: int) -> None:
    attacks = "capabilities that a new namespace gives back"
    plain_call(f"unshare the {kind} namespace", attacks, _UNSHARE, flag)
    plain_call(f"unshare the {kind} and user namespaces at once", attacks, _UNSHARE, flag | 0x10000000)

    def by_clone3(_: Scene) -> str:
        arguments = block(64)
        arguments.raw = struct.pack("=8Q", flag, 0, 0, 0, 17, 0, 0, 0)
        return _child_of(call(_CLONE3, arguments, 64, lock=True))

    probe(f"clone3 into a new {kind} namespace", attacks, stops="ENOSYS")(by_clone3)
    if kind == "time":
        return  # clone(2) has no bit for it

    def by_clone(_: Scene) -> str:
        return _child_of(call(_CLONE, flag | 17, 0, 0, 0, 0, lock=True))

    probe(f"clone into a new {kind} namespace", attacks)(by_clone)


def _child_of(pid: int) -> str:
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "a child stood in the namespace"


for _kind, _flag in _KINDS.items():
    _enter_namespaces(_kind, _flag)


@probe("join its own mount namespace anew", "the root folder, which setns resets")
def _(_scene: Scene) -> str:
    return attempt(_SETNS, os.open("/proc/self/ns/mnt", os.O_RDONLY), 0x20000)


@probe("join the first process's namespaces", "namespaces by pidfd")
def _(scene: Scene) -> str:
    return attempt(_SETNS, os.pidfd_open(scene.guardian), 0x20000)


@probe("raise capabilities", "dropped capabilities", control=World.HOST)
def _(_scene: Scene) -> str:
    header, data = block(8), block(24)
    header.raw = struct.pack("=Ii", 0x20080522, 0)
    every = 1 << 21  # SYS_ADMIN
    data.raw = struct.pack("=6I", every, every, 0, 0, 0, 0)
    return attempt(126, header, data)
