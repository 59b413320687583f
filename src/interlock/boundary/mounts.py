"""Mounts the layout inside the new namespaces: first every mount detached, then the new root, then attach."""

import contextlib
import errno
import os
import stat

from interlock.boundary import kernel, layout
from interlock.boundary.layout import Layout
from interlock.boundary.placing import Placing
from interlock.boundary.plan import OverlayError, SandboxPlan
from interlock.model.errors import BoundaryError
from interlock.model.places import path_text

_QUIET = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
_SHUT = _QUIET | kernel.MOUNT_ATTR_RDONLY

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)
PROC_READ_ONLY = (
    "sys",
    "irq",
    "bus",
    "fs",
    "driver",
    "tty",
    "pressure",
    "mtrr",
    "sysrq-trigger",
    "dynamic_debug",
)
"""A mapped root is still the host's root to these files' modes: writing them would reach the host."""

PROC_HIDDEN = (
    "acpi",
    "asound",
    "scsi",
    "kcore",
    "kmsg",
    "keys",
    "key-users",
    "kallsyms",
    "timer_list",
    "sched_debug",
    "latency_stats",
    "slabinfo",
    "vmallocinfo",
    "pagetypeinfo",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "iomem",
    "ioports",
    "config.gz",
    "interrupts",
    "locks",
    "modules",
)
"""What tells of the host's other programs, or helps an attack on its kernel."""


def stage_overlay(plan: SandboxPlan, index: int, *, root: bool) -> tuple[int, str]:
    """Make one of the plan's overlays, detached.

    Returns: its descriptor, and the options it was made with.
    """
    overlay = plan.overlays[index]
    if overlay.copied:
        copy = kernel.clone_tree(os.fsencode(overlay.upper), recursive=False)
        kernel.set_mount(copy, _QUIET, recursive=False)
        return copy, "copy"
    options = (
        (
            "volatile",
            ("index", "on"),
            ("nfs_export", "on"),
            ("redirect_dir", "off" if overlay.sparse else "on"),
            ("metacopy", "off"),
        )
        if root
        else ("volatile", "userxattr")
    )
    folders = [
        os.open(path, os.O_PATH | os.O_CLOEXEC) for path in (overlay.lower, overlay.upper, overlay.work)
    ]
    try:
        if os.readlink(f"/proc/self/fd/{folders[0]}") != overlay.lower:
            # what was looked at is not what would be laid over: a link took its place meanwhile
            raise BoundaryError(
                f"`{path_text(os.fsencode(overlay.lower))}` became a link while the run was starting",
                hint="see what is there, then start again",
            )
        return _overlay(folders, options), " ".join(
            one if isinstance(one, str) else "=".join(one) for one in options
        )
    except OSError as error:
        raise OverlayError(
            f"no overlay can be laid over `{path_text(os.fsencode(overlay.lower))}` "
            + (
                "(the state folder lies on an overlay itself, as in a container; "
                "on another file system it works: INTERLOCK_STATE=DIR)"
                if _lies_on_overlay(folders[1])
                else f"({error.strerror})"
            ),
            hint="let Interlock work on a full copy: --staging copy",
        ) from error
    finally:
        for one in folders:
            os.close(one)


def _lies_on_overlay(descriptor: int) -> bool:
    """Say whether a folder's file system is an overlay, which the kernel takes as no upper layer."""
    device = os.fstat(descriptor).st_dev
    mark = f" {os.major(device)}:{os.minor(device)} ".encode()
    with open("/proc/self/mountinfo", "rb") as table:
        return any(mark in line and b" - overlay " in line for line in table)


def _overlay(folders: list[int], options: tuple[str | tuple[str, str], ...], attributes: int = _QUIET) -> int:
    # A path through /proc stands for any name and length; the mount table then shows no host path either.
    lower, upper, work = (f"/proc/self/fd/{one}" for one in folders)
    return kernel.new_mount(
        "overlay", (("lowerdir", lower), ("upperdir", upper), ("workdir", work), *options), attributes
    )


class Builder:
    """Builds the tree in the calling process's own mount namespace.

    Holds: the caller is alone in new user, mount, pid and net namespaces; `degraded` lists what was let go,
    `facts` what the receipt says of the placed files.
    """

    def __init__(
        self, plan: SandboxPlan, tree: Layout, staged: dict[int, int], ownerless: dict[str, int]
    ) -> None:
        self._plan = plan
        self._tree = tree
        self._staged = staged
        self._ownerless = ownerless
        self.ownerless_sources: list[str] = []
        self._size = (
            (("size", str(plan.limits.tmp_size_bytes)),) if plan.limits.tmp_size_bytes is not None else ()
        )
        self._desk = -1
        self._sealed: list[int] = []
        self._own: set[int] = set()
        self.degraded: list[str] = []
        self.facts: list[str] = []

    def build(self) -> None:
        """Mount everything and enter the new root; the old one is gone."""
        kernel.make_mounts_private()
        placing = Placing(self._plan.placed)
        self._lay_desk()
        mounts = [(step, self._make(step)) for step in self._tree.steps]
        proc = self._make_proc()
        masks = self._proc_masks()
        devices = [(name, kernel.clone_tree(f"/dev/{name}".encode(), recursive=False)) for name in DEVICES]
        terminal = self._terminal()
        system = self._make_sys()
        root = self._tmpfs(0o755)
        here = os.fsencode(self._plan.scratch)
        kernel.attach(root, here)
        kernel.enter_root(here)
        for folder in ("proc", "dev", "sys"):
            os.mkdir(f"/{folder}", 0o755)
        for step, mount in mounts:
            self._place(step, mount)
        kernel.attach(proc, b"/proc")
        self._shut_proc(masks)
        if system >= 0:
            kernel.attach(system, b"/sys")
        self._fill_dev(devices, terminal)
        self._sealed.extend(placing.lay(frozenset((*self._own, os.fstat(root).st_dev))))
        self.facts.extend(placing.facts())
        for mount in self._sealed:
            kernel.set_mount(mount, kernel.MOUNT_ATTR_RDONLY, recursive=False)
        kernel.set_mount(root, kernel.MOUNT_ATTR_RDONLY, recursive=False)

    def _lay_desk(self) -> None:
        """Mount a tmpfs over the scratch folder: home's upper layer, and what masks are made of."""
        desk = self._tmpfs(0o700)
        kernel.attach(desk, os.fsencode(self._plan.scratch))
        self._desk = desk
        for name in ("upper", "work"):
            os.mkdir(name, 0o755, dir_fd=desk)
        os.mkdir("empty", 0o555, dir_fd=desk)
        os.close(os.open("none", os.O_CREAT | os.O_WRONLY, 0o444, dir_fd=desk))

    def _tmpfs(self, mode: int) -> int:
        return kernel.new_mount("tmpfs", (("mode", f"{mode:o}"), *self._size), _QUIET)

    def _make(self, step: layout.Step) -> int:
        match step:
            case layout.Symlink():
                return -1
            case layout.Bind():
                return self._bind(step)
            case layout.Screen():
                return self._screen(step)
            case layout.Fresh():
                mount = self._tmpfs(step.mode)
                self._own.add(os.fstat(mount).st_dev)
                if step.sealed:
                    self._sealed.append(mount)
                return mount
            case layout.HomeLayer():
                return self._home(step)
            case layout.Staged():
                return self._staged[step.index]
            case layout.Mask():
                return self._mask(folder=step.folder)

    def _mask(self, *, folder: bool) -> int:
        mount = kernel.clone_tree(b"empty" if folder else b"none", directory=self._desk)
        kernel.set_mount(mount, _SHUT)
        return mount

    def _bind(self, step: layout.Bind) -> int:
        mount = -1 if step.exposed else self._ownerless.get(step.source, -1)
        if mount >= 0:
            self.ownerless_sources.append(step.source)
        else:
            mount = kernel.clone_tree(os.fsencode(step.source))
        kernel.set_mount(mount, _SHUT)
        return mount

    def _screen(self, step: layout.Screen) -> int:
        mount = self._ownerless.get(step.source, -1)
        if mount >= 0:
            self.ownerless_sources.append(step.source)
            return mount
        empty = os.open("empty", os.O_PATH | os.O_CLOEXEC, dir_fd=self._desk)
        try:
            return screen_of(os.open(step.source, os.O_PATH | os.O_CLOEXEC), empty)
        except OSError:
            # A file system that no overlay takes (vfat, some FUSE): not shown at all, rather than with its sockets.
            return self._mask(folder=True)

    def _home(self, step: layout.HomeLayer) -> int:
        home = os.stat(step.target)
        os.chmod("upper", home.st_mode & 0o7777, dir_fd=self._desk)
        with contextlib.suppress(OSError):
            os.chown("upper", home.st_uid, home.st_gid, dir_fd=self._desk)
        folders = [os.open(step.target, os.O_PATH | os.O_CLOEXEC)]
        folders.extend(
            os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=self._desk) for name in ("upper", "work")
        )
        try:
            return _overlay(folders, ("volatile", "userxattr"))
        finally:
            for one in folders:
                os.close(one)

    def _place(self, step: layout.Step, mount: int) -> None:
        if isinstance(step, layout.Symlink):
            os.symlink(step.text, step.target)
            return
        match step:
            case layout.Mask():
                pass
            case layout.Bind() if not stat.S_ISDIR(os.fstat(mount).st_mode):
                _make_folders(os.path.dirname(step.target))
                if not os.path.lexists(step.target):
                    os.close(os.open(step.target, os.O_CREAT | os.O_WRONLY, 0o444))
            case _:
                _make_folders(step.target)
        try:
            kernel.attach(mount, os.fsencode(step.target))
        except OSError as error:
            # A layer of an earlier scope may have deleted what is to be hidden.
            if not (isinstance(step, layout.Mask) and error.errno in (errno.ENOENT, errno.ENOTDIR)):
                raise OSError(error.errno, f"mount at {step.target}: {error.strerror}") from None

    def _make_proc(self) -> int:
        return kernel.new_mount("proc", (), _QUIET | kernel.MOUNT_ATTR_NOEXEC)

    def _proc_masks(self) -> list[tuple[bytes, int]]:
        # Made while the desk is still in reach; the host's /proc has the same names.
        paths = [f"/proc/{name}".encode() for name in PROC_HIDDEN]
        return [(path, self._mask(folder=os.path.isdir(path))) for path in paths if os.path.lexists(path)]

    def _shut_proc(self, masks: list[tuple[bytes, int]]) -> None:
        for name in PROC_READ_ONLY:
            path = f"/proc/{name}".encode()
            if os.path.lexists(path):
                mount = kernel.clone_tree(path)
                kernel.set_mount(mount, _SHUT | kernel.MOUNT_ATTR_NOEXEC)
                kernel.attach(mount, path)
        for path, mount in masks:
            kernel.attach(mount, path)

    def _make_sys(self) -> int:
        try:
            return kernel.new_mount("sysfs", (), _SHUT | kernel.MOUNT_ATTR_NOEXEC)
        except OSError:
            # Less to see, nothing less safe: an empty folder stands there instead.
            return -1

    def _terminal(self) -> int:
        try:
            return kernel.clone_tree(os.ttyname(0).encode(), recursive=False)
        except OSError:
            return -1

    def _fill_dev(self, devices: list[tuple[str, int]], terminal: int) -> None:
        dev = self._tmpfs(0o755)
        kernel.attach(dev, b"/dev")
        quiet = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NOEXEC
        nodes = [*devices, *([("console", terminal)] if terminal >= 0 else [])]
        for name, mount in nodes:
            os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
            kernel.set_mount(mount, quiet, recursive=False)
            kernel.attach(mount, f"/dev/{name}".encode())
        for name, text in DEVICE_LINKS:
            os.symlink(text, f"/dev/{name}")
        for name in ("pts", "shm"):
            os.mkdir(f"/dev/{name}", 0o755)
        try:
            pts = kernel.new_mount("devpts", (("ptmxmode", "0666"), ("mode", "620"), ("gid", "5")), quiet)
        except OSError:
            # An ordinary user has no group 5 (tty) to map.
            pts = kernel.new_mount("devpts", (("ptmxmode", "0666"), ("mode", "600")), quiet)
        kernel.attach(pts, b"/dev/pts")
        kernel.attach(self._tmpfs(0o1777), b"/dev/shm")
        kernel.set_mount(dev, kernel.MOUNT_ATTR_RDONLY, recursive=False)
        if os.path.isdir("/run") and not os.path.islink("/run"):
            with contextlib.suppress(FileExistsError):
                os.mkdir("/run/lock", 0o1777)


def screen_of(source: int, empty: int) -> int:
    """Make a read-only overlay of a folder; the kernel wants a second, empty one below it."""
    lower = f"/proc/self/fd/{source}:/proc/self/fd/{empty}"
    return kernel.new_mount("overlay", (("lowerdir", lower),), _SHUT)


def _make_folders(path: str) -> None:
    at = ""
    for part in path.strip("/").split("/") if path.strip("/") else ():
        at += "/" + part
        if not os.path.isdir(at):
            os.mkdir(at, 0o755)
