"""The terminal that a question borrows from a full-screen agent: given back as it was, and never fooled by old keys."""

from __future__ import annotations

import os
import pty
import re
import termios
import threading
import tty

import pytest

from interlock.oracle.terminal import Terminal, WithdrawnError


def _emulator(
    master: int, modes: dict[int, int], seen: bytearray, *, answers: bool = True
) -> threading.Thread:
    """A terminal emulator in small: it keeps modes, and answers questions about them."""

    def run() -> None:
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:
                return
            seen.extend(part)
            for number, what in re.findall(rb"\x1b\[\?(\d+)([hl])", part):
                modes[int(number)] = 1 if what == b"h" else 2
            if answers:
                for number in re.findall(rb"\x1b\[\?(\d+)\$p", part):
                    os.write(master, b"\x1b[?%s;%d$y" % (number, modes.get(int(number), 2)))
                if b"\x1b[c" in part:
                    os.write(master, b"\x1b[?64;1c")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("answers", [True, False])
def test_a_full_screen_agent_gets_its_modes_back_and_typed_ahead_keys_are_no_answer(
    answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    tty.setraw(slave)
    raw = termios.tcgetattr(slave)
    modes = {1049: 1, 1006: 1, 2004: 1, 25: 2}
    before = dict(modes)
    seen = bytearray()
    _emulator(master, modes, seen, answers=answers)
    os.write(master, b"a\ny\n")  # typed for the agent, before the question
    stop = os.eventfd(0)
    with Terminal(slave, slave, withdrawn=stop, goes_on=True) as terminal:
        os.eventfd_write(stop, 1)
        with pytest.raises(WithdrawnError):
            terminal.read_line(5)
    os.write(slave, b"")
    for _ in range(100):
        if not answers or {number: modes.get(number) for number in before} == before:
            break
        threading.Event().wait(0.01)
    if answers:
        assert {number: modes.get(number) for number in before} == before
        assert 1000 not in modes or modes[1000] == 2
    assert termios.tcgetattr(slave) == raw
    os.close(slave)
    os.close(master)
    os.close(stop)
