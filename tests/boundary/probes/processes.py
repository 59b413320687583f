"""Attacks on other processes: the sandbox's first one, siblings, and those of the host."""

import ctypes
import errno
import mmap
import os
import resource
import signal
import struct
import time

from tests.boundary.probes.entry import (
    Scene,
    Sleeper,
    Stopped,
    address,
    attempt,
    block,
    call,
    probe,
)

_PTRACE, _SEIZE, _ATTACH = 101, 0x4206, 16


@probe("be traced by the parent", "tracing")
def _(_scene: Scene) -> str:
    pid = os.fork()  # whoever is traced stops at its next signal
    if pid == 0:
        try:
            call(_PTRACE, 0, 0, 0, 0)
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 255)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))
    return "it is traced"


@probe("attach to a sibling", "tracing")
def _(_scene: Scene) -> str:
    with Sleeper() as pid:
        return attempt(_PTRACE, _ATTACH, pid, 0, 0)


@probe("seize a sibling", "tracing")
def _(_scene: Scene) -> str:
    with Sleeper() as pid:
        return attempt(_PTRACE, _SEIZE, pid, 0, 0)


@probe("seize the first process", "the sandbox's first process")
def _(scene: Scene) -> str:
    return attempt(_PTRACE, _SEIZE, scene.guardian, 0, 0)


@probe("seize a host process", "processes of the host", stops="EPERM|ESRCH")
def _(scene: Scene) -> str:
    return attempt(_PTRACE, _SEIZE, scene.victim, 0, 0)


def _copy(number: int, pid: int, there: int) -> str:
    memory, local, remote = block(16), block(16), block(16)
    local.raw = struct.pack("=QQ", address(memory), 16)
    remote.raw = struct.pack("=QQ", there, 16)
    return attempt(number, pid, local, 1, remote, 1, 0)


@probe("read a sibling's memory", "memory of others")
def _(_scene: Scene) -> str:
    mine = block(16)
    with Sleeper() as pid:
        return _copy(310, pid, address(mine))


@probe("write a sibling's memory", "memory of others")
def _(_scene: Scene) -> str:
    mine = block(16)
    with Sleeper() as pid:
        return _copy(311, pid, address(mine))


@probe("read the first process's memory", "the sandbox's first process")
def _(scene: Scene) -> str:
    mine = block(16)
    return _copy(310, scene.guardian, address(mine))


@probe("read a host process's memory", "processes of the host", stops="EPERM|ESRCH")
def _(scene: Scene) -> str:
    return _copy(310, scene.victim, scene.victim_address)


@probe("take a sibling's descriptor", "descriptors of others")
def _(_scene: Scene) -> str:
    with Sleeper() as pid:
        return attempt(438, os.pidfd_open(pid), 0, 0)


@probe("take the first process's descriptor", "the channel to the monitor")
def _(scene: Scene) -> str:
    handle = os.pidfd_open(scene.guardian)
    for number in range(64):
        try:
            return attempt(438, handle, number, 0)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
    raise Stopped("no descriptor")


@probe("compare kernel objects with a sibling", "addresses of the kernel")
def _(_scene: Scene) -> str:
    with Sleeper() as pid:
        return attempt(312, os.getpid(), pid, 1, 0, 0)


@probe("move a sibling's pages", "memory of others")
def _(_scene: Scene) -> str:
    mine = mmap.mmap(-1, 4096)
    mine[0] = 1
    pages, status = block(8), block(4)
    pages.raw = struct.pack("=Q", ctypes.addressof(ctypes.c_char.from_buffer(mine)))
    with Sleeper() as pid:
        return attempt(279, pid, 1, pages, None, status, 0)


@probe("migrate a sibling's pages", "memory of others")
def _(_scene: Scene) -> str:
    nodes = block(8)
    nodes.raw = struct.pack("=Q", 1)
    with Sleeper() as pid:
        return attempt(256, pid, 2, nodes, nodes)


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return f"{len(file.read(64))} bytes were read"


def _enter_guardian_files() -> None:
    for name in ("environ", "maps", "auxv"):

        def read(scene: Scene, name: str = name) -> str:
            return _read(f"/proc/{scene.guardian}/{name}")

        probe(f"read the first process's {name}", "the monitor's environment", stops="EACCES|EPERM")(read)
    for name in ("root", "cwd", "exe", "ns/mnt", "ns/user"):

        def follow(scene: Scene, name: str = name) -> str:
            return f"it opened: {os.open(f'/proc/{scene.guardian}/{name}', os.O_PATH)}"

        probe(
            f"follow the first process's link {name}", "magic links to the host's tree", stops="EACCES|EPERM"
        )(follow)


_enter_guardian_files()


@probe("open the first process's memory", "the sandbox's first process", stops="EACCES|EPERM")
def _(scene: Scene) -> str:
    return f"it opened: {os.open(f'/proc/{scene.guardian}/mem', os.O_RDWR)}"


@probe("open the first process's descriptors", "the channel to the monitor", stops="EACCES|EPERM")
def _(scene: Scene) -> str:
    folder = f"/proc/{scene.guardian}/fd"
    for name in os.listdir(folder):
        return f"one leads to `{os.readlink(f'{folder}/{name}')}`"
    raise Stopped("none")


@probe("reach the host through the first process's root", "hidden files", stops="EACCES|EPERM")
def _(scene: Scene) -> str:
    return f"{len(os.listdir(f'/proc/{scene.guardian}/root/etc'))} names were listed"


@probe("find the secret in any environment", "processes of the host", stops="not found")
def _(scene: Scene) -> str:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if scene.token.encode() in file.read():
                        return "a foreign environment was read"
            except OSError:
                continue
    raise Stopped("not found")


@probe("read a host process's environment", "processes of the host", stops="ENOENT")
def _(scene: Scene) -> str:
    return _read(f"/proc/{scene.victim}/environ")


@probe("see a host process at all", "processes of the host", stops="ENOENT")
def _(scene: Scene) -> str:
    return _read(f"/proc/{scene.victim}/stat")


@probe("signal a host process", "processes of the host", stops="ESRCH")
def _(scene: Scene) -> str:
    os.kill(scene.victim, signal.SIGWINCH)
    return "the signal was sent"


@probe("signal a host process's thread", "processes of the host", stops="ESRCH")
def _(scene: Scene) -> str:
    return attempt(234, scene.victim, scene.victim, int(signal.SIGWINCH))


@probe("hold a host process by pidfd", "processes of the host", stops="ESRCH")
def _(scene: Scene) -> str:
    return f"it opened: {os.pidfd_open(scene.victim)}"


@probe("signal any process outside by its number", "the monitor and the host", stops="no one answers")
def _(_scene: Scene) -> str:
    own = (
        {int(name) for name in os.listdir("/proc") if name.isdigit()} if os.getpid() < 4096 else {os.getpid()}
    )
    for pid in range(1, 70_000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        except PermissionError:
            pass
        if pid not in own and not os.path.exists(f"/proc/{os.getpid()}/task/{pid}"):
            return f"process {pid} answered"
    raise Stopped("no one answers")


@probe("reach a host process's limits", "processes of the host", stops="ESRCH")
def _(scene: Scene) -> str:
    return f"limits were read: {resource.prlimit(scene.victim, resource.RLIMIT_NOFILE)}"


@probe("slow a host process down", "processes of the host", stops="ESRCH")
def _(scene: Scene) -> str:
    return attempt(141, 0, scene.victim, 1)


def _state(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def _enter_signals() -> None:
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV):

        def send(scene: Scene, number: int = number) -> str:
            os.kill(scene.guardian, number)
            time.sleep(0.03)
            state = _state(scene.guardian)
            if state in ("T", "t", "Z", "X", "gone"):
                return f"the first process is in state {state}"
            raise Stopped("ignored")

        probe(
            f"send {signal.Signals(number).name} to the first process",
            "the sandbox's first process", stops="ignored|EPERM",
        )(send)  # fmt: skip


_enter_signals()


@probe("kill the first process by pidfd", "the sandbox's first process", stops="ignored|EPERM")
def _(scene: Scene) -> str:
    call(424, os.pidfd_open(scene.guardian), int(signal.SIGKILL), None, 0)
    time.sleep(0.03)
    if _state(scene.guardian) in ("Z", "X", "gone"):
        return "the first process is gone"
    raise Stopped("ignored")


@probe("lower the first process's limits", "the sandbox's first process")
def _(scene: Scene) -> str:
    soft, hard = resource.prlimit(scene.guardian, resource.RLIMIT_NOFILE)
    resource.prlimit(scene.guardian, resource.RLIMIT_NOFILE, (min(soft, 64), hard))
    return "its limit on open files was changed"


@probe("read its own physical addresses", "addresses of the machine's memory", stops="zeroed|EPERM|EACCES")
def _(_scene: Scene) -> str:
    mine = mmap.mmap(-1, 4096)
    mine[0] = 1
    where = ctypes.addressof(ctypes.c_char.from_buffer(mine))
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        file.seek(where // 4096 * 8)
        frame = struct.unpack("=Q", file.read(8))[0] & ((1 << 55) - 1)
    if frame:
        return "a page's physical address was read"
    raise Stopped("zeroed")
