"""The command at a terminal: it holds it, is interrupted and stopped at it, and gives it back."""

import contextlib
import os
import pty
import select
import signal
import time
from collections.abc import Callable

import pytest
from tests.boundary.conftest import Box, run_here


class Screen:
    """The user's side of a pseudo-terminal with a small shell on it that runs one sandbox as a job."""

    def __init__(self, box: Box, *argv: str) -> None:
        plan = box.plan(argv)
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                _shell(lambda: (box.become(), run_here(plan))[1])
            finally:
                os._exit(99)

    def until(self, word: str, count: int = 1) -> None:
        end = time.monotonic() + 20
        while self.text.count(word) < count:
            if time.monotonic() > end:
                pytest.fail(f"`{word}` did not appear: {self.text!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    pytest.fail(f"the terminal closed before `{word}`: {self.text!r}")

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")  # print is pytest's here


def _shell(job: Callable[[], dict[str, object]]) -> None:
    """Run the job in the foreground; when it stops, take the terminal, wait for a line, and continue it."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        result = job()
        held = os.tcgetpgrp(0) == os.getpgrp()
        say(f"JOB {result.get('status')} {result.get('error', '')} terminal={held}")
        os._exit(0)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    os.tcsetpgrp(0, pid)
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        os.tcsetpgrp(0, os.getpgrp())
        say(f"SHELL stopped by {os.WSTOPSIG(status)}")
        os.read(0, 100)
        os.tcsetpgrp(0, pid)
        os.killpg(pid, signal.SIGCONT)
    say("SHELL done")
    os.read(0, 100)
    os._exit(0)


def test_terminal_is_the_commands(box: Box) -> None:
    screen = Screen(
        box, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo IS A TTY; stty size; tty; read a; echo GOT-$a; echo x > /dev/tty"
    )  # fmt: skip
    try:
        screen.until("IS A TTY")
        screen.until("/dev/console")
        screen.type("line\n")
        screen.until("GOT-line")
        screen.until("SHELL done")
        assert "JOB ExitStatus(code=0, signal=0)  terminal=True" in screen.text
    finally:
        screen.close()


def test_terminal_interrupt_reaches_the_command_not_us(box: Box) -> None:
    screen = Screen(
        box, "sh", "-c", "trap 'echo INTERRUPTED; exit 3' INT; echo READY; while :; do sleep 0.05; done"
    )
    try:
        screen.until("READY")
        screen.type("\x03")
        screen.until("INTERRUPTED")
        screen.until("SHELL done")
        assert "JOB ExitStatus(code=3, signal=0)  terminal=True" in screen.text
    finally:
        screen.close()


def test_terminal_stop_and_go_on(box: Box) -> None:
    screen = Screen(box, "sh", "-c", "echo READY; read a; echo GOT-$a; read b; echo GOT-$b")
    try:
        screen.until("READY")
        for round_, word in enumerate(("first", "second"), 1):
            screen.type("\x1a")
            screen.until("SHELL stopped", round_)
            screen.type("fg\n")
            time.sleep(0.2)
            screen.type(f"{word}\n")
            screen.until(f"GOT-{word}")
        screen.until("SHELL done")
        assert "JOB ExitStatus(code=0, signal=0)  terminal=True" in screen.text
    finally:
        screen.close()


def test_terminal_injection_is_refused(box: Box) -> None:
    screen = Screen(
        box, "/usr/bin/python3", "-c",
        "import fcntl\ntry: fcntl.ioctl(0,0x5412,b'x'); print('INJECTED')\nexcept OSError as e: print('ERRNO',e.errno)",
    )  # fmt: skip
    try:
        screen.until("ERRNO 1")
    finally:
        screen.close()
