"""Who holds the terminal: handed to the command as a shell hands it to a job, and taken back."""

import contextlib
import os
import signal


class Terminal:
    """The terminal of one run.

    Takes: `taken`, whether the command's own group becomes the terminal's foreground group; `shared`, whether
    the command stays in our group because the terminal, or a neighbour in a pipeline, needs it there.
    """

    def __init__(self, *, taken: bool, shared: bool) -> None:
        self.taken = taken
        self.shared = shared
        self._job = 0

    @classmethod
    def find(cls) -> "Terminal":
        """Look at the terminal that this process stands at, if any."""
        try:
            device = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError:
            return cls(taken=False, shared=False)
        try:
            foreground = os.tcgetpgrp(device) == os.getpgrp()
        except OSError:
            foreground = False
        finally:
            os.close(device)
        taken = foreground and _is_terminal(0) and _is_terminal(1)
        return cls(taken=taken, shared=not taken)

    def take_back(self) -> None:
        """Make our own group the foreground group again."""
        if self.taken:
            _give(os.getpgrp())

    def stop(self) -> None:
        """Stop with the command that was stopped at the terminal, so that a shell sees us stopped."""
        if not self.taken:
            return
        with contextlib.suppress(OSError):
            if not self._job:
                # The command can be stopped first only while it has the terminal.
                self._job = os.tcgetpgrp(0)
            if os.tcgetpgrp(0) == self._job:
                self.take_back()
            os.kill(0, signal.SIGSTOP)

    def resume(self) -> None:
        """Hand the terminal over again, if whoever continued us gave it to us."""
        if self.taken and self._job:
            with contextlib.suppress(OSError):
                if os.tcgetpgrp(0) == os.getpgrp():
                    _give(self._job)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _give(group: int) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(0, group)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
