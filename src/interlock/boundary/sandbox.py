"""A sandbox that stands: its command runs, stands still and is taken down; the monitor's side."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from interlock.boundary import cgroup, inside, kernel, waiting
from interlock.boundary.activity import Watch
from interlock.boundary.line import Line
from interlock.boundary.net.doors import Doors, Serve
from interlock.boundary.plan import ExitStatus, SandboxPlan
from interlock.boundary.terminal import Terminal
from interlock.model.errors import BoundaryError
from interlock.model.events import ActivityLost, ActivityObserved, Standing

if TYPE_CHECKING:
    from interlock.boundary.notifying import Denial, Refusals

Observe = Callable[[ActivityObserved | ActivityLost], None]
Refused = Callable[[tuple["Denial", ...]], None]

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
        refusals: "Refusals | None" = None,
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
        self._refusals = refusals
        self._refused: Refused | None = None
        self._alive = True
        self._closed = False
        self._paused = False
        self._frozen = False

    @property
    def ended(self) -> bool:
        """Say whether the whole process tree is gone."""
        return not self._alive or self._line.gone()

    def run(
        self,
        observe: Observe,
        serve: Serve | None = None,
        control: tuple[waiting.Source, ...] = (),
        refused: Refused | None = None,
    ) -> ExitStatus:
        """Start the command and wait until its whole process tree is gone.

        Takes: `observe`, called with file activity while the command runs, last before the return; `serve`,
        called once, when somebody first waits at a door: from then on all waiting goes on in its loop, and it is
        closed before the return. Without it the doors are closed at once; `control`, what else is waited for: each
        is left alone once the command's tree is gone; `refused`, called with the system calls that the command's plan
        does not authorise: each kind when it is new, and at the end once more where it came again.
        Raises: BoundaryError, if the sandbox's first process fell, or the loop was stopped; then all its
        processes are gone too. What `serve` raises goes up, after they are gone.
        """
        if self._watch is None:
            if any(overlay.observed for overlay in self._plan.overlays):
                observe(ActivityLost(reason=NO_EVENTS))
        else:
            self._watch.observe = observe
        self._refused = refused
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
        if self._refusals is not None:
            sources.append(waiting.Source(descriptor=self._refusals.descriptor, react=self._refuse))
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

    def _refuse(self) -> None:
        assert self._refusals is not None
        self._refusals.react()
        new = self._refusals.fresh()
        if new and self._refused is not None:
            self._refused(new)

    def _tell_the_rest(self) -> None:
        again = self._refusals.again() if self._refusals is not None else ()
        if again and self._refused is not None:
            self._refused(again)

    def _outcome(self) -> ExitStatus:
        self._reap()
        self._tell_the_rest()
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

    @property
    def first_process(self) -> int:
        """Return the process below which all of the command's are, as the host numbers it."""
        return self._pid

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
        if self._refusals is not None:
            self._refusals.close()
        if self._watch is not None:
            self._watch.close()
        for mount in self._views.values():
            os.close(mount)
        self._group.remove()
        settle_layers(self._plan)


def settle_layers(plan: SandboxPlan) -> None:
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
