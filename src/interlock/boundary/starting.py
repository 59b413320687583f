"""Sets a sandbox up, or says which promise cannot be kept here; the monitor's side."""

import contextlib
import hashlib
import os
import resource
import signal
import socket
import stat
from collections.abc import Callable

from interlock.boundary import bpf, cgroup, inside, landlock, layout, mounts, ownerless, surroundings
from interlock.boundary.activity import Watch
from interlock.boundary.launch import end, launch, map_all
from interlock.boundary.line import Line, await_ready
from interlock.boundary.net.doors import take_over
from interlock.boundary.plan import SandboxPlan
from interlock.boundary.sandbox import Sandbox, settle_layers
from interlock.boundary.terminal import Terminal
from interlock.model.errors import BoundaryError, InputError


def start(plan: SandboxPlan, meanwhile: Callable[[], None] | None = None) -> Sandbox:
    """Set a sandbox up and ready its command; nothing of the command runs before `Sandbox.run`.

    Takes: `meanwhile`, what the caller has to do anyway, done while the sandbox's first process mounts.
    Raises: BoundaryError, if a promise cannot be kept here; InputError, if the plan or its command cannot be
    used.
    """
    machine = os.uname().machine
    if machine != "x86_64":
        raise BoundaryError(
            f"this build knows the system calls of x86_64, not of `{machine}`", hint="use an x86_64 machine"
        )
    for name, descriptor in (("input", 0), ("output", 1), ("error output", 2)):
        if _is_folder(descriptor):
            raise InputError(
                f"the standard {name} is a folder of the host: everything below it could be reached",
                hint="give a file, a pipe or a terminal",
            )
    root = surroundings.stands_as_root()
    if root and (missing_capabilities := surroundings.lacking()):
        raise BoundaryError(
            f"root lacks capabilities here that mounts and file events need: {', '.join(missing_capabilities)}",
            hint=surroundings.capabilities_fix(surroundings.look()),
        )
    if plan.authorised is not None:
        import interlock.boundary.planned  # noqa: F401 - inside, our own files are out of sight
    degraded: list[str] = []
    tree = layout.compute(plan)
    program = bpf.program(nested=plan.nested)
    version = landlock.abi()
    _need(
        plan, degraded, version > 0,
        "Landlock is off: files are guarded by mounts alone", "boot with `lsm=landlock,…`",
    )  # fmt: skip
    _need(
        plan, degraded, version == 0 or version >= 6,
        "Landlock here does not scope signals and abstract sockets", "use Linux 6.12 or newer",
    )  # fmt: skip
    leaves = cores_leave(_core_pattern(), resource.getrlimit(resource.RLIMIT_CORE)[1])
    _need(
        plan, degraded, not leaves, "a crash inside would be handed to the host's core-dump program",
        "sysctl kernel.core_pattern=core, or raise the hard limit: ulimit -Hc unlimited",
    )  # fmt: skip
    group, missing = cgroup.make(plan.limits)
    made = contextlib.ExitStack()
    try:
        made.callback(settle_layers, plan)
        made.callback(group.remove)
        if "pids" in missing and not surroundings.limits_bind():
            _need(
                plan, degraded, False, "the number of processes cannot be limited for root without a cgroup",
                "run as an ordinary user, or where /sys/fs/cgroup is writable "
                "(docker run --security-opt writable-cgroups=true)",
            )  # fmt: skip
        if "memory" in missing:
            _need(
                plan, degraded, False, "memory cannot be limited without a cgroup",
                "leave the memory limit out, or run where /sys/fs/cgroup is writable",
            )  # fmt: skip
        staged: dict[int, int] = {}
        shown: dict[str, int] = {}
        facts: list[str] = []
        if root:
            for index, overlay in enumerate(plan.overlays):
                staged[index], options = mounts.stage_overlay(plan, index, root=True)
                made.callback(os.close, staged[index])
                facts.append(f"overlay:{overlay.name}={options}")
            shown = ownerless.mounts_of(tree)
            for mount in shown.values():
                made.callback(os.close, mount)
        watch: Watch | None = None
        observed = [(index, one) for index, one in enumerate(plan.overlays) if one.observed]
        if root and observed:
            watch = Watch(tuple((one, staged[index]) for index, one in observed))
            made.callback(watch.close)
        terminal = Terminal.find()
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        made.callback(channel.close)
        order = inside.Order(
            plan=plan, tree=tree, root=root, uid=os.geteuid(), gid=os.getegid(), staged=staged,
            ownerless=shown, program=program, abi=version, own_group=not terminal.shared, foreground=terminal.taken,
            mask=frozenset(int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        )  # fmt: skip
        with theirs:
            pid = launch(lambda: inside.begin(order, theirs))
        made.callback(end, pid)
        if root:
            map_all(pid)
        # The move takes the kernel a while: meanwhile the first process mounts. It waits for our word before it
        # makes the command, which is born into the cgroup.
        channel.send(b"map")
        try:
            group.add(pid)
        except OSError:
            _need(
                plan,
                degraded,
                not root,
                "the sandbox could not be put into its cgroup",
                "run as an ordinary user",
            )
        with contextlib.suppress(BrokenPipeError):
            channel.send(b"in")  # if it fell, its last words say why
        if meanwhile is not None:
            meanwhile()
        told, received = await_ready(channel)
        refusals = None
        for tag, descriptor in received:
            if tag.startswith(inside.VIEW):
                staged[int(tag.removeprefix(inside.VIEW))] = descriptor
                made.callback(os.close, descriptor)
            elif tag.startswith(inside.REFUSALS):
                from interlock.boundary.notifying import Refusals

                refusals = Refusals(descriptor, first=tag != inside.REFUSALS)
                made.callback(refusals.close)
        tagged = [one for one in received if not one[0].startswith((inside.VIEW, inside.REFUSALS))]
        doors = take_over(plan.net.published if plan.net is not None else (), tagged)
        made.callback(doors.close)
        for mount in shown.values():
            os.close(mount)
        made.pop_all()
    except OSError as error:
        raise BoundaryError(
            f"the sandbox could not be set up: {error.strerror or error}", hint=surroundings.start_fix(error)
        ) from None
    finally:
        made.close()
    facts.extend(one for one in told if not one.startswith("!"))
    degraded.extend(one[1:] for one in told if one.startswith("!"))
    pairs = [tuple(fact.partition("=")[::2]) for fact in facts]
    pairs.append(("seccomp", hashlib.sha256(program).hexdigest()))
    pairs.append(("namespaces", "user mount pid net ipc uts"))
    pairs.append(("cgroup", " ".join(group.facts) or "none"))
    pairs.append(("mounts", hashlib.sha256(repr(tree.steps).encode("utf-8", "surrogateescape")).hexdigest()))
    return Sandbox(
        plan=plan, pid=pid, line=Line(channel), group=group, watch=watch, doors=doors, terminal=terminal,
        views=staged, facts=tuple(sorted((name, value) for name, value in pairs)), degraded=tuple(degraded), root=root,
        refusals=refusals,
    )  # fmt: skip


def _core_pattern() -> str:
    try:
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def cores_leave(pattern: str, hard_limit: int) -> bool:
    """Say whether the host takes cores by a program or a socket, and our limit of 1 cannot keep them.

    Source: core(5): a program is run at every limit but 1, and ours cannot be above the hard one.
    """
    return pattern.startswith("@") or (pattern.startswith("|") and hard_limit == 0)


def _is_folder(descriptor: int) -> bool:
    try:
        return stat.S_ISDIR(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _need(plan: SandboxPlan, degraded: list[str], kept: bool, what: str, fix: str) -> None:
    if kept:
        return
    if not plan.allow_degraded:
        raise BoundaryError(what, hint=fix)
    degraded.append(what)
