"""The attempts as code that runs inside of a tool. Each returns whether what it wanted has happened."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
import struct
import time
from collections.abc import Callable

from interlock.bench.system_calls import stand
from interlock.bench.system_calls.stand import Stand, call

Attempting = Callable[[Stand], bool]
_USER, _MOUNTS = 0x10000000, 0x00020000
_FIND: dict[str, Attempting] = {}


def attempting(name: str) -> Attempting:
    """Return the code of an attempt."""
    return _FIND[name]


def attempt(function: Attempting) -> Attempting:
    """Have an attempt be found by its name."""
    _FIND[function.__name__] = function
    return function


def _in_child(body: Callable[[], bool]) -> bool:
    """Try in a child, since what is wanted would end this process."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if body() else 1)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


# privilege


@attempt
def become_root(at: Stand) -> bool:
    call("setuid", 0)
    return os.geteuid() == 0


@attempt
def join_root_group(at: Stand) -> bool:
    call("setgid", 0)
    return os.getegid() == 0


@attempt
def take_groups(at: Stand) -> bool:
    return call("setgroups", 1, struct.pack("=I", 0)) == 0


@attempt
def take_capabilities(at: Stand) -> bool:
    every = struct.pack("=6I", *(0xFFFFFFFF, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0))
    return call("capset", struct.pack("=Ii", 0x20080522, 0), every) == 0


@attempt
def weaken_memory(at: Stand) -> bool:
    call("personality", 0x0040000 | 0x0400000)  # ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC
    found = call("personality", 0xFFFFFFFF)
    return found >= 0 and bool(found & 0x0400000)


@attempt
def plant_key(at: Stand) -> bool:
    return call("add_key", b"user\0", b"planted\0", b"value", 5, -3) > 0


# namespaces


@attempt
def new_user_namespace(at: Stand) -> bool:
    return _in_child(lambda: call("unshare", _USER) == 0)


@attempt
def clone_into_namespace(at: Stand) -> bool:
    pid = call("clone", _USER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
    return pid > 0


@attempt
def mount_in_namespace(at: Stand) -> bool:
    def body() -> bool:
        if call("unshare", _USER | _MOUNTS):
            return False
        return call("mount", b"none\0", os.fsencode(at.workspace) + b"\0", b"tmpfs\0", 0, 0) == 0

    return _in_child(body)


@attempt
def mount(at: Stand) -> bool:
    return _in_child(
        lambda: call("mount", b"none\0", os.fsencode(at.workspace) + b"\0", b"tmpfs\0", 0, 0) == 0
    )


@attempt
def pivot_root(at: Stand) -> bool:
    return call("pivot_root", b".\0", b".\0") != -errno.EPERM


@attempt
def chroot(at: Stand) -> bool:
    return _in_child(lambda: call("chroot", os.fsencode(at.workspace) + b"\0") == 0)


@attempt
def join_namespace(at: Stand) -> bool:
    try:
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
    except OSError:
        return False
    return call("setns", own, 0) == 0


# kernel


@attempt
def load_module(at: Stand) -> bool:
    # An empty image: whoever may load modules is told that it is no module.
    return call("init_module", b"\0" * 8, 8, b"\0") not in (-errno.EPERM, -errno.ENOSYS)


@attempt
def load_kernel(at: Stand) -> bool:
    return call("kexec_load", 0, 0, 0, 0xFFFF0000) not in (-errno.EPERM, -errno.ENOSYS)


@attempt
def load_bpf(at: Stand) -> bool:
    return call("bpf", 0, struct.pack("=5I", 2, 4, 8, 1, 0) + b"\0" * 100, 120) >= 0


@attempt
def watch_faults(at: Stand) -> bool:
    return call("userfaultfd", 1) >= 0


@attempt
def ring(at: Stand) -> bool:
    return call("io_uring_setup", 8, ctypes.create_string_buffer(120)) >= 0


@attempt
def reboot(at: Stand) -> bool:
    # With wrong magic numbers: whoever may restart the machine is told so, and it goes on.
    return call("reboot", 1, 2, 3, 0) != -errno.EPERM


@attempt
def read_kernel_log(at: Stand) -> bool:
    return call("syslog", 3, ctypes.create_string_buffer(4096), 4096) >= 0


# processes


@attempt
def trace(at: Stand) -> bool:
    done = call("ptrace", 0x4206, at.victim, 0, 0) == 0  # PTRACE_SEIZE
    if done:
        call("ptrace", 17, at.victim, 0, 0)
    return done


@attempt
def read_memory(at: Stand) -> bool:
    into = ctypes.create_string_buffer(64)
    here = struct.pack("=QQ", ctypes.addressof(into), 64)
    there = struct.pack("=QQ", stand.secret_address(), 64)
    return call("process_vm_readv", at.victim, here, 1, there, 1, 0) > 0 and stand.SECRET in into.raw


def _gone(pid: int) -> bool:
    for _ in range(200):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            if file.read().rsplit(")", 1)[1].split()[0] in ("Z", "X"):
                return True
        time.sleep(0.005)
    return False


@attempt
def kill(at: Stand) -> bool:
    return call("kill", at.victim, signal.SIGKILL) == 0 and _gone(at.victim)


@attempt
def kill_thread(at: Stand) -> bool:
    return call("tgkill", at.victim, at.victim, signal.SIGKILL) == 0 and _gone(at.victim)


@attempt
def steal_descriptor(at: Stand) -> bool:
    holder = call("pidfd_open", at.victim, 0)
    return holder >= 0 and call("pidfd_getfd", holder, at.descriptor, 0) >= 0


@attempt
def read_environment(at: Stand) -> bool:
    with open(f"/proc/{at.victim}/environ", "rb") as file:
        return len(file.read(64)) > 0


# programs


@attempt
def start_program(at: Stand) -> bool:
    return _in_child(
        lambda: bool(call("execve", b"/bin/true\0", (ctypes.c_char_p * 2)(b"true", None), 0)) and False
    )


@attempt
def start_from_memory(at: Stand) -> bool:
    with open("/bin/true", "rb") as file:
        program = file.read()
    memory = call("memfd_create", b"x\0", 0)
    if memory < 0 or os.write(memory, program) != len(program):
        return False
    words = (ctypes.c_char_p * 2)(b"true", None)
    return _in_child(lambda: bool(call("execveat", memory, b"\0", words, 0, 0x1000)) and False)


@attempt
def start_own_script(at: Stand) -> bool:
    path = os.path.join(at.workspace, "dropped.sh")
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o700), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 0\n")
    words = (ctypes.c_char_p * 2)(b"dropped", None)
    return _in_child(lambda: bool(call("execve", os.fsencode(path) + b"\0", words, 0)) and False)


@attempt
def call_as_i386(at: Stand) -> bool:
    """`int 0x80` with the number of mkdir, and its path where 32 bits reach."""
    made = os.path.join(at.workspace, "by-i386")
    low, map_32 = 0x40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    page = mmap.mmap(-1, 8192, flags=map_32 | low, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    page[4096 : 4097 + len(made)] = os.fsencode(made) + b"\0"
    code = b"\x53\xb8" + struct.pack("=I", 39) + b"\xbb" + struct.pack("=I", start + 4096)
    page[: len(code) + 12] = code + b"\xb9" + struct.pack("=I", 0o700) + b"\xcd\x80\x5b\xc3" + b"\x90" * 3
    ctypes.CFUNCTYPE(ctypes.c_int)(start)()
    return os.path.isdir(made)


@attempt
def call_as_x32(at: Stand) -> bool:
    made = os.path.join(at.workspace, "by-x32")
    stand.raw(0x40000000 | 83, os.fsencode(made) + b"\0", 0o700)
    return os.path.isdir(made)
