"""Attacks on the user's rights and on the limits of the run."""

import contextlib
import ctypes
import errno
import mmap
import os
import resource
import subprocess

from tests.boundary.probes.entry import NotRun, Scene, Stopped, World, call, plain_call, probe

_CONTROL_OF_SETID = World.LOGIN


def _effective(argv: list[str], path: str) -> int:
    answer = subprocess.run(argv, executable=path, capture_output=True, check=False).stdout
    if not answer:
        raise NotRun("the program did not start")
    return int(answer)


@probe("run a set-id program of the workspace", "set-id programs", stops="no gain", control=_CONTROL_OF_SETID)
def _(scene: Scene) -> str:
    if not scene.setid:
        raise NotRun("needs root to make a set-id program")
    if _effective(["id", "-u"], scene.setid) == os.getuid():
        raise Stopped("no gain")
    return "it ran as another user"


@probe("run a set-id program without a name", "set-id programs", stops="no gain", control=_CONTROL_OF_SETID)
def _(scene: Scene) -> str:
    if not scene.setid:
        raise NotRun("needs root to make a set-id program")
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(told, 1)
        call(59, os.fsencode(scene.setid), (ctypes.c_char * 8)(), None)
        os._exit(1)
    os.close(told)
    text = os.read(ready, 4096).decode()
    os.waitpid(pid, 0)
    if not text:
        raise NotRun("the program did not start")
    if "euid=" in text:
        return "it ran as another user"
    raise Stopped("no gain")


@probe("run a set-id copy by its descriptor", "set-id programs", stops="no gain", control=_CONTROL_OF_SETID)
def _(scene: Scene) -> str:
    if not scene.setid:
        raise NotRun("needs root to make a set-id program")
    handle = os.open(scene.setid, os.O_PATH)
    os.set_inheritable(handle, True)
    answer = subprocess.run(
        ["id", "-u"], executable=f"/proc/self/fd/{handle}", pass_fds=(handle,), capture_output=True, check=False
    ).stdout  # fmt: skip
    if not answer:
        raise NotRun("the program did not start")
    if int(answer) == os.getuid():
        raise Stopped("no gain")
    return "it ran as another user"


@probe("run a set-id program of the host", "set-id programs", stops="no gain", control=_CONTROL_OF_SETID)
def _(_scene: Scene) -> str:
    if os.getuid() == 0:
        raise NotRun("root has nothing to gain by it")
    for path in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/newgrp", "/usr/bin/mount"):
        if os.path.exists(path) and os.stat(path).st_mode & 0o4000:
            break
    else:
        raise NotRun("the host has none")
    ready, told = os.pipe()
    child = subprocess.Popen([path], stdin=ready, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with open(f"/proc/{child.pid}/status") as file:
                fields = dict(line.split(":", 1) for line in file if ":" in line)
            if fields["Name"].strip() == os.path.basename(path):
                if fields["Uid"].split()[1] == "0":
                    return "it ran as root"
                raise Stopped("no gain")
    except FileNotFoundError:
        pass
    finally:
        os.close(told)
        child.kill()
        child.wait()
    raise Stopped("no gain")


def _capabilities(path: str) -> int:
    text = subprocess.run([path, "/proc/self/status"], capture_output=True, check=False, text=True).stdout
    if not text:
        raise NotRun("the program did not start")
    return int(text.partition("CapEff:\t")[2].split()[0], 16)


@probe("gain capabilities from a file", "dropped capabilities", stops="no gain", control=World.LOGIN)
def _(scene: Scene) -> str:
    if not scene.setcap:
        raise NotRun("needs root to mark a program")
    try:
        found = _capabilities(scene.setcap)
    except PermissionError:
        raise Stopped("no gain") from None
    if found & (1 << 21 | 1 << 2):
        return "it ran with capabilities"
    raise Stopped("no gain")


@probe("regain capabilities by exec", "dropped capabilities", stops="no gain")
def _(_scene: Scene) -> str:
    if _capabilities("/bin/cat") & 1 << 21:
        return "it ran with capabilities"
    raise Stopped("no gain")


@probe("mark a program with capabilities", "dropped capabilities", target="workspace")
def _(scene: Scene) -> str:
    os.setxattr(scene.aim("workspace"), "security.capability", bytes.fromhex("0100000200002000" + "00" * 12))
    return "it was marked"


def _enter_limits() -> None:
    for name, number in (("file size", resource.RLIMIT_FSIZE), ("core size", resource.RLIMIT_CORE)):

        def lift(scene: Scene, number: int = number) -> str:
            if not scene.world.startswith("sandbox"):
                resource.setrlimit(number, (1 << 20, 1 << 20))
            resource.setrlimit(number, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            if resource.getrlimit(number)[1] != resource.RLIM_INFINITY:
                raise Stopped("it stays")  # told that all is well, for the sake of scripts
            return "the limit was lifted"

        def raises(scene: Scene, lift: object = lift) -> str:
            try:
                return lift(scene)  # type: ignore[operator,no-any-return]
            except ValueError:  # Python's word for EPERM here
                raise PermissionError(1, "not raised") from None

        probe(f"raise the limit on {name}", "the limits of the run", stops="EPERM|it stays")(raises)


_enter_limits()


@probe("lock much memory", "the machine's memory", stops="ENOMEM|EPERM")
def _(_scene: Scene) -> str:
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY:
        raise NotRun("the host sets this user no limit")
    memory = mmap.mmap(-1, 256 << 20)
    call(149, ctypes.addressof(ctypes.c_char.from_buffer(memory)), 256 << 20)
    return "it was locked"


plain_call("lock all memory", "the machine's memory", 151, 3, stops="ENOMEM|EPERM")
plain_call("run before all others", "the machine's time", 144, 0, 1, b"\1\0\0\0")
plain_call("take a higher priority", "the machine's time", 141, 0, 0, -10, stops="EACCES|EPERM")


@probe("become a process that is never killed for memory", "the machine's memory", stops="EACCES|EPERM")
def _(_scene: Scene) -> str:
    handle = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(handle, b"-900")
    return "it was written"


@probe("become another user", "other users", stops="EPERM|EINVAL|no one outside")
def _(scene: Scene) -> str:
    pid = os.fork()  # whoever did it could no longer end its own children
    if pid == 0:
        try:
            os.setuid(12345)
            os.kill(scene.victim, 0)
        except OSError as error:
            os._exit(error.errno or 255)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == errno.ESRCH and scene.uid == 0:
        # Root's tools may drop to another user of the sandbox; it must reach no one by it.
        raise Stopped("no one outside")
    if code == errno.EPERM and scene.uid == 0:
        return "it is another user, who sees the host's processes"
    if code:
        raise OSError(code, os.strerror(code))
    return "it is another user, who may signal the host's processes"


@probe("have its crash handed to the host", "the program that gets core dumps", stops="refused")
def _(_scene: Scene) -> str:
    # The kernel feeds a pattern that names a program at any limit but 1 byte (do_coredump), and a process may
    # lower its own limit from 1 to 0.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if resource.getrlimit(resource.RLIMIT_CORE)[0] == 1:
        raise Stopped("refused")
    return "the kernel would start the pattern's program on the host with the crash as its input"
