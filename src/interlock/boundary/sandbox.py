"""Starts a sandbox, runs its command and takes it down; the monitor's side."""

import contextlib
import hashlib
import os
import resource
import signal
import socket
import stat
from collections.abc import Callable, Iterator, Mapping

from interlock.boundary import (
    bpf,
    cgroup,
    inside,
    kernel,
    landlock,
    layout,
    mounts,
    ownerless,
    surroundings,
    waiting,
)  # fmt: skip
from interlock.boundary.activity import Watch
from interlock.boundary.launch import end, launch, map_all
from interlock.boundary.line import Line, await_ready
from interlock.boundary.net.doors import Doors, Serve, take_over
from interlock.boundary.plan import ExitStatus, SandboxPlan
from interlock.boundary.terminal import Terminal
from interlock.model.errors import BoundaryError, InputError
from interlock.model.events import ActivityLost, ActivityObserved, Standing

Observe = Callable[[ActivityObserved | ActivityLost], None]

NO_EVENTS = "file events need root on this kernel"
_GRACE_S = 5.0
_FROM_TERMINAL = 0x80
"""The si_code of a signal that the terminal itself sent."""


class Sandbox:
    """A sandbox that stands: its command is ready up to exec and holds until `run`.

    Takes: `standing`; `receipt`, what the kernel enforces; `degraded`, what it cannot; `events`, how file
    events are had; `xattr_prefix`, of the overlays' own attributes in the upper layers.
    Holds: it ends with the thread that started it.
    """

    def __init__(
        self,
        *,
        plan: SandboxPlan,
        pid: int,
        line: Line,
        group: cgroup.Group,
        watch: Watch | None,
        doors: Doors,
        terminal: Terminal,
        views: Mapping[int, int],
        facts: tuple[tuple[str, str], ...],
        degraded: tuple[str, ...],
        root: bool,
    ) -> None:
        self.standing = Standing.ROOT if root else Standing.USER
        self.receipt = facts
        self.degraded = degraded
        self.events = "fanotify" if watch else "none"
        self.xattr_prefix = "trusted.overlay." if root else "user.overlay."
        self._plan = plan
        self._pid = pid
        self._line = line
        self._group = group
        self._watch = watch
        self._doors = doors
        self._terminal = terminal
        self._views = views
        self._alive = True
        self._closed = False
        self._paused = False
        self._frozen = False

    @property
    def ended(self) -> bool:
        """Say whether the whole process tree is gone."""
        return not self._alive or self._line.gone()

    def run(
        self, observe: Observe, serve: Serve | None = None, control: tuple[waiting.Source, ...] = ()
    ) -> ExitStatus:
        """Start the command and wait until its whole process tree is gone.

        Takes: `observe`, called with file activity while the command runs, last before the return; `serve`,
        called once, when somebody first waits at a door: from then on all waiting goes on in its loop, and it is
        closed before the return. Without it the doors are closed at once; `control`, what else is waited for: each
        is left alone once the command's tree is gone.
        Raises: BoundaryError, if the sandbox's first process fell, or the loop was stopped; then all its
        processes are gone too. What `serve` raises goes up, after they are gone.
        """
        if self._watch is None:
            if any(overlay.observed for overlay in self._plan.overlays):
                observe(ActivityLost(reason=NO_EVENTS))
        else:
            self._watch.observe = observe
        if serve is None:
            self._doors.close()
        forwarded = frozenset(
            number
            for number in (*inside.FORWARDED, signal.SIGCONT)
            if signal.getsignal(number) != signal.SIG_IGN
        )
        before = signal.pthread_sigmask(signal.SIG_BLOCK, forwarded)
        signals = kernel.signal_descriptor(forwarded)
        try:
            self._line.go()
            self._wait(signals, serve, control)
            return self._outcome()
        except BrokenPipeError:
            self._reap()
            raise BoundaryError(
                "the sandbox's first process ended early", hint="run `interlock doctor`"
            ) from None
        finally:
            os.close(signals)
            self._terminal.take_back()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _wait(self, signals: int, serve: Serve | None, control: tuple[waiting.Source, ...]) -> None:
        line, watch = self._line, self._watch
        sources = [
            waiting.Source(descriptor=line.fileno(), react=self._hear),
            waiting.Source(descriptor=signals, react=lambda: self._forward(signals)),
            *control,
        ]
        if watch is not None:
            sources.append(waiting.Source(descriptor=watch.descriptor, react=watch.drain, rests=True))
            sources.append(waiting.Source(descriptor=watch.pulse, react=watch.glance))
        doors = tuple(one.fileno() for one in self._doors.all()) if serve is not None else ()
        if not waiting.by_poll(tuple(sources), doors, lambda: line.ended) or serve is None:
            return
        try:
            serving = serve(self._doors)
        except BaseException:
            self._kill()
            raise
        try:
            whole = waiting.by_loop(serving.loop, tuple(sources), lambda: line.ended)
        finally:
            serving.close()
        if not whole:
            self._kill()
            raise BoundaryError(
                "nobody serves the sandbox's network any more: its processes were ended",
                hint="see the message before this one",
            )

    def _hear(self) -> None:
        self._line.hear()
        self._heed_stop()

    def _heed_stop(self) -> None:
        if self._line.stopped and not self._paused:
            self._line.stopped = False
            self._terminal.stop()

    def _outcome(self) -> ExitStatus:
        self._reap()
        if self._watch is not None:
            self._watch.finish()
        if self._line.status is None:
            # Something killed process 1 itself; the kernel killed the rest with it.
            raise BoundaryError(
                "the sandbox was killed from outside",
                hint="see the system's log for the reason",
            )
        return self._line.status

    def _forward(self, signals: int) -> None:
        for number, code in kernel.read_signals(signals):
            if number == signal.SIGCONT:
                if not self._paused:
                    self._terminal.resume()
                    self._line.signal(number)
            elif not (code == _FROM_TERMINAL and self._terminal.shared):
                self._line.signal(number)

    def pause(self) -> None:
        """Let the whole tree stand still, and take the terminal, while a person is asked.

        It may be called from whatever `run` calls; a second call, or one when all has ended, changes nothing.
        Raises: BoundaryError, if it did not come to a stand; then it goes on.
        """
        if self._paused or self.ended:
            return
        self._stop("resolve with `--oracle strict`, which does not ask in mid-run")
        self._terminal.borrow()

    def resume(self) -> None:
        """Give the terminal back, and let the tree go on."""
        if not self._paused:
            return
        self._terminal.give_back()
        self._go_on()

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Let the whole tree stand still inside, with the terminal as it is: for a snapshot of the staged layers.

        In a pause, or when all has ended, it changes nothing.
        Raises: BoundaryError, if it did not come to a stand; then it goes on.
        """
        if self._paused or self.ended:
            yield
            return
        self._stop("let the command end, then resolve what it did")
        try:
            yield
        finally:
            self._go_on()

    def _stop(self, hint: str) -> None:
        self._paused = True
        frozen = self._group.freeze()
        self._frozen = frozen is True
        if not (self._line.stop_all() if frozen is None else frozen or self.ended):
            self._paused = False
            raise BoundaryError(
                "the sandbox could not be paused: some of its processes did not stop", hint=hint
            )

    def _go_on(self) -> None:
        if self._frozen:
            self._group.thaw()
        else:
            self._line.go_on()
        self._paused = self._frozen = False
        self._heed_stop()

    def view(self, name: str) -> str:
        """Return a path to what the command sees of a staged folder, for this process alone.

        It leads to the mount itself, whatever the processes inside are and wherever it lies in their tree, until
        `close`.
        Raises: KeyError, if no overlay of the plan has the name.
        """
        for index, overlay in enumerate(self._plan.overlays):
            if overlay.name == name:
                return f"/proc/self/fd/{self._views[index]}"
        raise KeyError(name)

    def stop(self) -> None:
        """Ask the command to end (SIGTERM); what is still there after five seconds is ended by force."""
        from threading import Timer

        self._line.signal(signal.SIGTERM)
        timer = Timer(_GRACE_S, self._line.signal, (signal.SIGKILL,))
        timer.daemon = True
        timer.start()

    def catch_up(self) -> None:
        """Report the file activity until now without waiting for its turn; what is open counts as read."""
        if self._watch is not None:
            self._watch.catch_up()

    def not_before_ns(self, order: int) -> int:
        """Return a time before which the file event of this order had not happened, 0 where nothing is known."""
        return 0 if self._watch is None else self._watch.times.before(order)

    def _reap(self) -> None:
        if self._alive:
            os.waitpid(self._pid, 0)
            self._alive = False

    def _kill(self) -> None:
        if self._alive:
            os.kill(self._pid, signal.SIGKILL)
            self._reap()

    def close(self) -> None:
        """End whatever runs, and remove what this made. May be called again."""
        if self._closed:
            return
        self._closed = True
        self._kill()
        self._line.close()
        self._doors.close()
        if self._watch is not None:
            self._watch.close()
        for mount in self._views.values():
            os.close(mount)
        self._group.remove()
        _settle_layers(self._plan)


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
        made.callback(_settle_layers, plan)
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
        for tag, descriptor in received:
            if tag.startswith(inside.VIEW):
                staged[int(tag.removeprefix(inside.VIEW))] = descriptor
                made.callback(os.close, descriptor)
        tagged = [one for one in received if not one[0].startswith(inside.VIEW)]
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


def _settle_layers(plan: SandboxPlan) -> None:
    """Let the layers be mounted again: nothing crashed, so the kernel's `volatile` warning does not hold."""
    for overlay in plan.overlays:
        marks = f"{overlay.work}/work"
        with contextlib.suppress(OSError):
            # As an ordinary user: the kernel made them 000.
            for folder in (marks, f"{marks}/incompat", f"{marks}/incompat/volatile"):
                os.chmod(folder, 0o700)
            os.unlink(f"{marks}/incompat/volatile/dirty")
            os.rmdir(f"{marks}/incompat/volatile")
            os.rmdir(f"{marks}/incompat")


def _need(plan: SandboxPlan, degraded: list[str], kept: bool, what: str, fix: str) -> None:
    if kept:
        return
    if not plan.allow_degraded:
        raise BoundaryError(what, hint=fix)
    degraded.append(what)
