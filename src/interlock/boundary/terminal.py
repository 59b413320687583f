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
        self._lender = 0

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

    def borrow(self) -> None:
        """Take the terminal from the command while it stands still, whichever of its groups has it."""
        if not self.taken or self._lender:
            return
        with contextlib.suppress(OSError):
            holder = os.tcgetpgrp(0)
            if holder != os.getpgrp() and not _is_neighbour(holder):
                self._lender = holder
                _give(os.getpgrp())

    def give_back(self) -> None:
        """Give a borrowed terminal back, if it is still ours to give, and have its new holder draw itself again."""
        lender, self._lender = self._lender, 0
        if lender:
            with contextlib.suppress(OSError):
                if os.tcgetpgrp(0) == os.getpgrp():
                    _give(lender)
                    os.killpg(lender, signal.SIGWINCH)


def _is_neighbour(group: int) -> bool:
    """Say whether a process group is one of our own pid namespace (a shell's), not of a sandbox below it."""
    try:
        return _depth(group) <= _depth(os.getpid())
    except OSError:
        return False  # its leader is gone: a shell's would not be


def _depth(pid: int) -> int:
    with open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"NSpid:"):
                return len(line.split())
    return 0


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
