"""The first process of the sandbox: readies all up to exec, holds, reaps, and ends with its monitor."""

import contextlib
import errno
import gc
import os
import resource
import select
import signal
import socket
import struct
from typing import TYPE_CHECKING, NoReturn

from interlock.boundary import bpf, capabilities, kernel, landlock, layout, mounts, stopping
from interlock.boundary.net import doors, wiring
from interlock.boundary.plan import SandboxPlan
from interlock.model.errors import BoundaryError, InputError
from interlock.model.records import dataclass

if TYPE_CHECKING:
    from interlock.boundary.planned import Bound

FORWARDED = frozenset(
    (
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGTERM,
        signal.SIGWINCH,
    )
)

_CAP_KILL = 5
VIEW = "view "
"""Begins the tag of a descriptor that is an overlay's mount; its index follows."""
REFUSALS = "refusals"
"""The tag of the descriptor at which calls are told that the command's plan does not authorise; `first` may follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the monitor hands to the sandbox's first process across the fork.

    Takes: `staged`, the overlays' mount descriptors by index, and `ownerless`, those of the host's folders by
    source (root only); `program`, the filter; `abi`, of
    Landlock; `own_group`, whether the command gets a process group of its own; `foreground`, whether that
    group takes the terminal.
    """

    plan: SandboxPlan
    tree: layout.Layout
    root: bool
    uid: int
    gid: int
    staged: dict[int, int]
    ownerless: dict[str, int]
    program: bytes
    abi: int
    own_group: bool
    foreground: bool
    mask: frozenset[int]


class _Failure(Exception):
    """Ends the start. Takes: the kind, `boundary` or `input`, the message and the hint."""


def begin(order: Order, channel: socket.socket) -> NoReturn:
    """Be process 1 of the sandbox; never returns."""
    status = 1
    try:
        _live(order, channel)
        status = 0
    except _Failure as failure:
        _send(channel, b"E" + "\0".join(failure.args).encode("utf-8", "surrogateescape"))
    except (BoundaryError, InputError) as error:
        text = f"{error.code}\0{error.message}\0{error.hint}"
        _send(channel, b"E" + text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        from interlock.boundary.surroundings import start_fix

        text = f"boundary\0the sandbox could not be set up: {error.strerror or error}\0{start_fix(error)}"
        _send(channel, b"E" + text.encode("utf-8", "surrogateescape"))
    except BaseException as error:  # noqa: BLE001 - nothing may escape into the caller's copy of the stack
        _send(
            channel, b"E" + f"boundary\0the sandbox's first process failed: {type(error).__name__}\0".encode()
        )
    finally:
        os._exit(status)


def _send(channel: socket.socket, message: bytes) -> None:
    with contextlib.suppress(OSError):
        channel.send(message)


def _live(order: Order, channel: socket.socket) -> None:
    # Ends us with the monitor even while we are busy; the channel's end does so while we wait.
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if order.own_group:
        os.setpgid(0, 0)
    # The monitor's own files must not live on here, its end of the channel least of all: its death must show.
    # Its objects must not be collected, or they would close numbers that are ours by now.
    gc.disable()
    kernel.close_except((0, 1, 2, channel.fileno(), *order.staged.values(), *order.ownerless.values()))
    # Python's own handler would make `kill -INT 1` an exception, and so an end of the run.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _become(order, channel)
    umask = os.umask(0)
    staged = dict(order.staged)
    facts: list[str] = []
    if not order.root:
        for index, overlay in enumerate(order.plan.overlays):
            staged[index], options = mounts.stage_overlay(order.plan, index, root=False)
            facts.append(f"overlay:{overlay.name}={options}")
    builder = mounts.Builder(order.plan, order.tree, staged, order.ownerless)
    builder.build()
    if not order.root:
        for index, mount in staged.items():
            socket.send_fds(channel, [f"D{VIEW}{index}".encode()], [mount])
    kernel.close_except((0, 1, 2, channel.fileno()))
    wiring.raise_loopback()
    if order.plan.net is not None:
        tagged, note = wiring.wire(order.plan.net.published)
        if order.plan.net.signing is not None:
            from interlock.boundary.signing.place import open_socket

            tagged.append(open_socket(order.plan.net.signing.socket))
            facts.append(f"signing={' '.join(order.plan.net.signing.namespaces)}")
        doors.hand_over(channel, tagged)
        facts.append(f"net={note}")
    os.umask(umask)
    facts.extend(builder.facts)
    top = sorted(source for source in builder.ownerless_sources if source.count("/") == 1)
    facts.append(f"ownerless={' '.join(top) or 'none'}")
    facts.extend(_confine(order, builder.degraded))
    program = _find_program(order.plan)
    bound = None
    if order.plan.authorised is not None:
        from interlock.boundary.planned import bind

        bound = bind(order.plan, order.plan.authorised, program, order.abi)
        builder.degraded.extend(bound.degraded)
    if channel.recv(16) != b"in":
        os._exit(1)
    hold, release = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(release)
        if bound is not None:
            _become_planned(order, bound)
        _become_command(order, program, hold)
    os.close(hold)
    if bound is not None:
        facts.extend(_hold(order, bound, child, channel))
    # Root's own programs may become other users, whom a pause must stop too.
    capabilities.keep(capabilities.kept_mask(root=order.root) & 1 << _CAP_KILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    if order.own_group:
        with contextlib.suppress(OSError):
            os.setpgid(child, child)
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    report = "\0".join([*facts, *(f"!{text}" for text in builder.degraded)])
    _send(channel, b"R" + report.encode("utf-8", "surrogateescape"))
    _watch(order, channel, child, release, bound)


def _become(order: Order, channel: socket.socket) -> None:
    if order.root:
        if channel.recv(16) != b"map":
            os._exit(1)
        return
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{order.uid} {order.uid} 1"),
        ("gid_map", f"{order.gid} {order.gid} 1"),
    ):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    if channel.recv(16) != b"map":
        os._exit(1)


def _confine(order: Order, degraded: list[str]) -> list[str]:
    plan = order.plan
    limits = [
        ("FSIZE", resource.RLIMIT_FSIZE, plan.limits.file_size_bytes),
        # Not 0: a host's core-dump program is run at every limit but 1 (core(5)); a file of 1 byte is none.
        ("CORE", resource.RLIMIT_CORE, 1),
    ]
    if not order.root:
        limits.append(("NPROC", resource.RLIMIT_NPROC, plan.limits.processes))
    if plan.limits.open_files is not None:
        limits.append(("NOFILE", resource.RLIMIT_NOFILE, plan.limits.open_files))
    for _, number, value in limits:
        hard = resource.getrlimit(number)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (bound, bound))
    mask = capabilities.kept_mask(root=order.root, nested=plan.nested)
    capabilities.bound(mask)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    facts = [
        "rlimits=" + " ".join(f"{name}={value}" for name, _, value in limits),
        f"capabilities={mask:#x}",
        "no_new_privs=1",
    ]
    if order.abi:
        writable = tuple(os.fsencode(path) for path in order.tree.writable)
        rules = landlock.restrict(order.abi, writable=writable, files=not plan.nested)
        facts.append(f"landlock=abi{order.abi} {rules}")
    if plan.nested:
        degraded.append(
            "nested sandboxes allowed: the command may make namespaces and mounts; no Landlock file rules"
        )
    capabilities.keep(mask)
    try:
        os.chdir(plan.working_directory)
    except OSError as error:
        raise _Failure(
            "input",
            f"the working directory cannot be entered inside the sandbox: {error.strerror}",
            "choose a folder in the workspace",
        ) from None
    if plan.authorised is None:
        bpf.install(order.program)  # else the command has its plan's, in which this one is contained
    return facts


def _find_program(plan: SandboxPlan) -> str:
    name = plan.argv[0]
    if "/" in name:
        candidates = [name]
    else:
        search = plan.environment.get("PATH", "/usr/local/bin:/usr/bin:/bin")
        candidates = [f"{folder or '.'}/{name}" for folder in search.split(":")]
    seen = False
    for path in candidates:
        if os.path.isfile(path):
            seen = True
            if os.access(path, os.X_OK):
                return path
    if seen or os.path.exists(name):
        raise _Failure("input", f"`{name}` cannot be executed", "check that it is a program and its mode")
    raise _Failure(
        "input",
        f"`{name}` is not found inside the sandbox",
        "check the name and the PATH, or expose its folder",
    )


def _become_command(order: Order, program: str, hold: int) -> NoReturn:
    try:
        if order.own_group:
            os.setpgid(0, 0)
        if os.read(hold, 1) != b"g":
            os._exit(125)
        _take_streams(order)
        kernel.close_from(3)
        environment = order.plan.environment
        try:
            os.execve(program, order.plan.argv, environment)  # noqa: S606
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without a first line that names its interpreter, as shells run it.
            os.execve("/bin/sh", ("sh", program, *order.plan.argv[1:]), environment)  # noqa: S606
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(
                2, f"interlock: {order.plan.argv[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape")
            )
        os._exit(127 if error.errno == errno.ENOENT else 126)
    finally:
        os._exit(125)


def _become_planned(order: Order, bound: "Bound") -> NoReturn:
    try:
        if order.own_group:
            os.setpgid(0, 0)
        _take_streams(order)
        kernel.close_from(3)
        bound.be_command()
        with contextlib.suppress(OSError):
            os.write(2, b"interlock: the command could not be started under its plan\n")
        os._exit(126)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(2, f"interlock: the command could not be bound to its plan: {error.strerror}\n".encode())
    finally:
        os._exit(125)


def _hold(order: Order, bound: "Bound", child: int, channel: socket.socket) -> list[str]:
    """Hold the command once it is bound, and hand over where its refused calls are told. Returns: the receipt."""
    listener = bound.hold(child)
    bpf.install(order.program)
    if listener is not None:
        tag = f"{REFUSALS} first" if bound.policy.first else REFUSALS
        socket.send_fds(channel, [b"D" + tag.encode()], [listener])
        os.close(listener)  # or nobody would be told that the monitor is gone
    withheld = [f"kernel/withheld={' '.join(bound.policy.withheld)}"] if bound.policy.withheld else []
    return [*(f"{name}={value}" for name, value in bound.rows()), *withheld]


def _take_streams(order: Order) -> None:
    """Take the terminal, and signals as a program expects them."""
    if order.foreground:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
        with contextlib.suppress(OSError):
            os.tcsetpgrp(0, os.getpgrp())
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python had them ignored
    signal.pthread_sigmask(signal.SIG_SETMASK, order.mask)


def _watch(order: Order, channel: socket.socket, child: int, release: int, bound: "Bound | None") -> None:
    kernel_signals = frozenset((signal.SIGCHLD,))
    signal.pthread_sigmask(signal.SIG_SETMASK, kernel_signals)
    children = kernel.signal_descriptor(kernel_signals)
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(children, select.POLLIN)
    # While all stand still at the monitor's word: those that stood still before.
    before: frozenset[int] | None = None
    if _reap(channel, child, before):
        return
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == children:
                kernel.read_signals(children)
                if _reap(channel, child, before):
                    return
            else:
                message = channel.recv(16)
                if not message:
                    return  # the monitor is gone; with us go all the others
                if message == b"p":
                    if _reap(channel, child, before):  # what happened until now is told as it is
                        return
                    before = stopping.stop_all() if before is None else before
                    if _reap(channel, child, before):
                        return
                    _send(channel, b"F" if before is None else b"P")
                elif message == b"r" and before is not None:
                    stopping.go_on(before)
                    before = None
                else:
                    _obey(order, message, child, release, bound)


def _reap(channel: socket.socket, child: int, before: frozenset[int] | None) -> bool:
    """Take note of who ended or was stopped. Returns: whether the command ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return False
        if pid == 0:
            return False
        if pid != child:
            continue
        if os.WIFSTOPPED(status):
            if before is None or child in before:
                _send(channel, b"T")
            continue
        if os.WIFSIGNALED(status):
            _send(channel, struct.pack("=cii", b"X", -1, os.WTERMSIG(status)))
        else:
            _send(channel, struct.pack("=cii", b"X", os.WEXITSTATUS(status), 0))
        return True


def _obey(order: Order, message: bytes, child: int, release: int, bound: "Bound | None") -> None:
    with contextlib.suppress(ProcessLookupError):
        if message == b"go":
            if bound is not None:
                bound.let_go(child)
            else:
                os.write(release, b"g")
        elif message[:1] == b"s":
            if order.own_group:
                os.killpg(child, message[1])
            else:
                os.kill(child, message[1])
