"""Attacks through device files and the kernel's own file systems."""

import os
import stat

from tests.boundary.probes.entry import NotRun, Scene, Stopped, call, probe

_DEVICES = (
    ("the kernel's messages", "/dev/kmsg", os.O_RDONLY),
    ("the physical memory", "/dev/mem", os.O_RDONLY),
    ("the ports", "/dev/port", os.O_RDONLY),
    ("virtual machines", "/dev/kvm", os.O_RDWR),
    ("user-space file systems", "/dev/fuse", os.O_RDWR),
    ("network tunnels", "/dev/net/tun", os.O_RDWR),
    ("loop devices", "/dev/loop-control", os.O_RDWR),
    ("a virtual console", "/dev/tty1", os.O_RDWR | os.O_NOCTTY),
    ("the serial console", "/dev/ttyS0", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK),
    ("the screen's text", "/dev/vcs1", os.O_RDONLY),
    ("page faults", "/dev/userfaultfd", os.O_RDWR),
    ("virtual machine sockets", "/dev/vsock", os.O_RDONLY),
    ("the hardware's random source", "/dev/hwrng", os.O_RDONLY | os.O_NONBLOCK),
    ("the latency setting", "/dev/cpu_dma_latency", os.O_RDONLY),
    ("mount requests", "/dev/autofs", os.O_RDONLY),
)


def _enter_devices() -> None:
    for what, path, flags in _DEVICES:

        def open_it(_: Scene, path: str = path, flags: int = flags) -> str:
            return f"it opened: {os.open(path, flags)}"

        probe(f"open the device of {what}", "devices of the host", stops="ENOENT")(open_it)


_enter_devices()


@probe("open the host's disk", "the host's disks", stops="ENOENT")
def _(_scene: Scene) -> str:
    for name in ("vda", "sda", "nvme0n1", "xvda", "mmcblk0", "dm-0", "loop0"):
        try:
            return f"it opened: {os.open(f'/dev/{name}', os.O_RDONLY)}"
        except OSError as error:
            last = error
    raise last


def _enter_nodes() -> None:
    for kind, mode, device in (("character", stat.S_IFCHR, (1, 8)), ("block", stat.S_IFBLK, (7, 0))):
        for folder in ("workspace", "home"):

            def make(scene: Scene, mode: int = mode, device: tuple[int, int] = device, folder: str = folder) -> str:  # fmt: skip
                os.mknod(scene.aim(folder, "node"), mode | 0o666, os.makedev(*device))
                return "the node was made"

            probe(f"make a {kind} device in the {folder}", "devices of the host")(make)

        def make_at(scene: Scene, mode: int = mode, device: tuple[int, int] = device) -> str:
            folder = os.open(scene.workspace, os.O_RDONLY)
            # Bits above the mode's sixteen are dropped by the kernel.
            call(259, folder, os.fsencode(f"{scene.slug}.node"), mode | 0o666 | 0x7F0000, os.makedev(*device))
            return "the node was made"

        probe(f"make a {kind} device with high bits in its mode", "devices of the host")(make_at)


_enter_nodes()


@probe("make a whiteout by hand", "the staged copy's own marks")
def _(scene: Scene) -> str:
    os.mknod(scene.aim("workspace", "node"), stat.S_IFCHR, os.makedev(0, 0))
    if not scene.world.startswith("sandbox"):
        os.unlink(scene.aim("workspace", "node"))
    return "the whiteout was made"


_SETTINGS = (
    ("sys/kernel/core_pattern", "the program that gets core dumps"),
    ("sys/kernel/modprobe", "the program that loads modules"),
    ("sys/kernel/hostname", "the host's name"),
    ("sys/kernel/sysrq", "the emergency keys"),
    ("sys/kernel/randomize_va_space", "address randomisation"),
    ("sys/kernel/yama/ptrace_scope", "the rule on tracing"),
    ("sys/kernel/ns_last_pid", "process numbers"),
    ("sys/vm/overcommit_memory", "the machine's memory"),
    ("sys/vm/drop_caches", "the machine's memory"),
    ("sys/fs/protected_hardlinks", "the rule on links"),
    ("sys/fs/suid_dumpable", "dumps of set-id programs"),
    ("sys/fs/file-max", "the machine's limits"),
    ("sys/net/ipv4/ip_forward", "the network"),
    ("sys/user/max_user_namespaces", "the rule on namespaces"),
    ("sysrq-trigger", "the emergency keys"),
    ("irq/default_smp_affinity", "interrupts"),
)


def _enter_settings() -> None:
    for name, what in _SETTINGS:

        def write(_: Scene, name: str = name) -> str:
            path = f"/proc/{name}"
            # Opened only: what the kernel lets us open for writing, it lets us write.
            return f"it opened: {os.open(path, os.O_WRONLY)}"

        probe(f"write {name}", what, stops="EROFS|EACCES|EPERM|ENOENT")(write)


_enter_settings()


def _writable(root: str, skip: tuple[str, ...]) -> str:
    for folder, folders, names in os.walk(root):
        folders[:] = [
            one
            for one in folders
            if f"{folder}/{one}" not in skip and not os.path.islink(f"{folder}/{one}") and not one.isdigit()
        ]
        for name in names:
            path = f"{folder}/{name}"
            try:
                found = os.lstat(path)
                if not stat.S_ISREG(found.st_mode) or not found.st_mode & 0o222:
                    continue
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                continue
            return f"`{path}` can be written"
    raise Stopped("none can be written")


@probe("write anything below proc", "settings of the kernel", stops="none can be written")
def _(_scene: Scene) -> str:
    return _writable("/proc", ("/proc/self", "/proc/thread-self", "/proc/net"))


@probe("write anything below sys", "settings of the kernel", stops="none can be written")
def _(_scene: Scene) -> str:
    return _writable("/sys", ())


_TELLING = ("kcore", "kallsyms", "keys", "key-users", "kmsg", "slabinfo", "vmallocinfo", "iomem", "timer_list",
            "sched_debug", "kpagecount", "pagetypeinfo", "locks", "config.gz", "modules", "interrupts")  # fmt: skip


def _enter_telling() -> None:
    for name in _TELLING:

        def read(_: Scene, name: str = name) -> str:
            if not os.path.exists(f"/proc/{name}"):
                raise FileNotFoundError(2, "absent")
            handle = os.open(f"/proc/{name}", os.O_RDONLY | os.O_NONBLOCK)
            if not os.read(handle, 64):
                raise Stopped("empty")
            return "it was read"

        probe(f"read {name} of the kernel", "what tells of the machine", stops="empty|ENOENT|EACCES|EPERM")(
            read
        )


_enter_telling()


@probe(
    "set a program for empty cgroups", "programs that the kernel starts", stops="EROFS|ENOENT|EACCES|EPERM"
)
def _(_scene: Scene) -> str:
    for folder, folders, names in os.walk("/sys/fs/cgroup"):
        if "release_agent" in names:
            return f"it opened: {os.open(f'{folder}/release_agent', os.O_WRONLY)}"
        if folder.count("/") > 4:
            folders.clear()
    raise FileNotFoundError(2, "no cgroup is shown")


@probe("leave its cgroup", "the limits of the run", stops="EROFS|ENOENT|EACCES|EPERM")
def _(_scene: Scene) -> str:
    for folder, folders, names in os.walk("/sys/fs/cgroup"):
        if "cgroup.procs" in names:
            return f"it opened: {os.open(f'{folder}/cgroup.procs', os.O_WRONLY)}"
        if folder.count("/") > 4:
            folders.clear()
    raise FileNotFoundError(2, "no cgroup is shown")


@probe("set the program for device events", "programs that the kernel starts", stops="EROFS|ENOENT|EACCES")
def _(_scene: Scene) -> str:
    return f"it opened: {os.open('/sys/kernel/uevent_helper', os.O_WRONLY)}"


@probe("list the kernel's debug files", "what tells of the machine", stops="empty|ENOENT|EACCES")
def _(_scene: Scene) -> str:
    for path in (
        "/sys/kernel/debug",
        "/sys/kernel/tracing",
        "/sys/fs/bpf",
        "/sys/fs/pstore",
        "/sys/kernel/security",
    ):
        try:
            if os.listdir(path):
                return f"`{path}` was listed"
        except OSError:
            continue
    raise Stopped("empty")


@probe("see the host's network devices", "the host's network", stops="its own alone")
def _(_scene: Scene) -> str:
    seen = set(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else set()
    with open("/proc/net/dev") as file:
        seen |= {line.split(":")[0].strip() for line in file if ":" in line}
    if seen - {"lo"}:
        return "other devices were listed"
    if not seen:
        raise NotRun("no devices are listed")
    raise Stopped("its own alone")
