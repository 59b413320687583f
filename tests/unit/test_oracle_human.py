"""The human oracle on a real terminal (a pty), driven as a user would."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.deferred import deferred

from interlock.model.events import OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle import Human, Question, ask

WAIT_S = 20.0


PAIRS = (
    deferred(1, "Makefile", "make-target"),
    deferred(2, "b/x", "pth"),
    deferred(3, "c/\x1b[2J", "git-hook"),
)
QUESTION = Question(task="mend\x1b]0;owned\x07 it", deferred=PAIRS, diff=lambda effect: "+a\n+b\x1b[8m\n")


class Session:
    """A review on a pty: the master side in the hands of the test."""

    def __init__(self, *, deadline_s: float | None = None, question: Question = QUESTION) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.seen = ""
        self.answered: OracleAnswered | None = None
        self._question = question
        self._human = Human(self.slave, self.slave, deadline_s=deadline_s)
        self._thread = threading.Thread(target=self._resolve)

    def _resolve(self) -> None:
        self.answered = ask(self._human, self._question)

    def start(self) -> None:
        self._thread.start()

    def expect(self, words: str) -> str:
        """Read until `words` appear after what was expected before; return what came."""
        came = ""
        end = time.monotonic() + WAIT_S
        while words not in came:
            assert select.select([self.master], [], [], max(end - time.monotonic(), 0))[0], f"only: {came!r}"
            came += os.read(self.master, 1).decode("latin-1")
        self.seen += came
        return came

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def answer(self) -> OracleAnswered:
        end = time.monotonic() + WAIT_S
        while self._thread.is_alive() and time.monotonic() < end:
            # Keep the pty empty, so that the review never waits for room in it.
            if select.select([self.master], [], [], 0.01)[0]:
                self.seen += os.read(self.master, 4096).decode("latin-1")
        assert self.answered is not None
        return self.answered

    def close(self) -> None:
        os.close(self.slave)
        if self.master >= 0:
            os.close(self.master)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    made = Session()
    yield made
    made.close()


def released(answered: OracleAnswered) -> set[str]:
    assert not answered.fault
    assert not answered.leave_open
    assert {answer.effect_id for answer in answered.answers} == {"e1", "e2", "e3"}
    return {answer.effect_id for answer in answered.answers if answer.decision is Decision.RELEASE}


def test_accept_some(session: Session) -> None:
    session.start()
    session.expect("] > ")
    session.type("s 2\n")
    diff = session.expect("] > ")
    assert "\x1b[32m+b\\x1b[8m\x1b[0m" in diff
    session.type("1\n")
    session.expect("] > ")
    session.type("d\n")
    session.expect("confirm? [y/n] ")
    session.type("y\n")
    assert released(session.answer()) == {"e1"}
    # Nothing of the agent's reached the terminal raw: all that steers it is our own reset and colours.
    assert "\x1b[2J" not in session.seen
    assert "\x1b]0;" not in session.seen
    assert "c/\\x1b[2J" in session.seen
    assert "mend\\x1b]0;owned\\x07 it" in session.seen


@pytest.mark.parametrize(("word", "ids"), [("a", {"e1", "e2", "e3"}), ("r", set())])
def test_accept_all_or_none(session: Session, word: str, ids: set[str]) -> None:
    session.start()
    session.expect("] > ")
    session.type(f"{word}\n")
    session.expect("confirm? [y/n] ")
    session.type("y\n")
    assert released(session.answer()) == ids


@pytest.mark.parametrize("keys", ["q\n", "\x03", "1\x03", "\x04", "1\x04\x04", "a\nq\n"])
def test_leaving_keeps_the_scope_open(session: Session, keys: str) -> None:
    session.start()
    session.expect("] > ")
    first, newline, rest = keys.partition("\n")
    session.type(first + newline)
    if rest:
        session.expect("confirm? [y/n] ")
        session.type(rest)
    answered = session.answer()
    assert answered.leave_open
    assert answered.answers == ()
    assert not answered.fault


def test_a_lost_terminal_keeps_the_scope_open(session: Session) -> None:
    session.start()
    session.expect("] > ")
    os.close(session.master)
    session.master = -1
    session._thread.join(WAIT_S)
    assert session.answered is not None
    assert session.answered.leave_open


def test_silence_refuses() -> None:
    session = Session(deadline_s=0.3)
    try:
        session.start()
        session.expect("] > ")
        answered = session.answer()
    finally:
        session.close()
    assert answered.fault == "no answer within 0.3 s"
    assert {answer.decision for answer in answered.answers} == {Decision.REFUSE}
    assert len(answered.answers) == 3


def test_nonsense_refuses(session: Session) -> None:
    session.start()
    for line in ("fish", "", "chips"):
        session.expect("] > ")
        session.type(f"{line}\n")
    answered = session.answer()
    assert "no sense" in answered.fault
    assert {answer.decision for answer in answered.answers} == {Decision.REFUSE}


def test_a_confirmation_typed_ahead_confirms_nothing(session: Session) -> None:
    session.start()
    session.expect("] > ")
    session.type("a\ny\n")
    session.expect("confirm? [y/n] ")
    time.sleep(0.1)
    assert session.answered is None
    session.type("n\n")
    session.expect("] > ")
    session.type("q\n")
    assert session.answer().leave_open


def test_what_was_typed_before_the_review_answers_nothing(session: Session) -> None:
    session.type("a\ny\n")
    session.start()
    session.expect("] > ")
    session.type("q\n")
    assert session.answer().leave_open


def test_a_terminal_left_in_disorder_is_mended_and_given_back(session: Session) -> None:
    raw = termios.tcgetattr(session.slave)
    raw[0] &= ~termios.ICRNL
    raw[1] &= ~termios.OPOST
    raw[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(session.slave, termios.TCSANOW, raw)
    found = termios.tcgetattr(session.slave)
    session.start()
    session.expect("\x1b[!p")
    opening = session.expect("] > ")
    assert opening.count("\r\n") == opening.count("\n") > 3
    session.type("r\r")
    assert "r" in session.expect("confirm? [y/n] ")
    session.type("y\r")
    assert released(session.answer()) == set()
    assert termios.tcgetattr(session.slave) == found


def test_an_overlong_line_is_nonsense(session: Session) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"a" * 60_000)
        os.close(writer)
        answered = ask(Human(reader, session.slave), QUESTION)
    finally:
        os.close(reader)
    assert "no sense" in answered.fault


def test_no_colours_where_they_are_not_wanted(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    session.start()
    session.expect("] > ")
    session.type("s 1\n")
    session.expect("] > ")
    session.type("q\n")
    session.answer()
    assert "\x1b" not in session.seen


def test_nothing_deferred_asks_nothing() -> None:
    answered = ask(Human(reader=987, writer=987), Question(task="", deferred=(), diff=lambda effect: ""))
    assert answered.answers == ()
    assert not answered.leave_open


@pytest.mark.parametrize("with_terminal", [True, False])
def test_the_controlling_terminal_is_found(session: Session, with_terminal: bool) -> None:
    """With standard streams elsewhere, the review takes /dev/tty; without one, the scope stays open."""
    arguments = [
        sys.executable,
        "-m",
        "tests.unit.test_oracle_human",
        str(session.slave) if with_terminal else "none",
    ]
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        pass_fds=[session.slave],
        start_new_session=True,
        cwd=Path(__file__).parents[2],
        text=True,
    ) as child:
        try:
            if with_terminal:
                session.expect("] > ")
                session.type("a\n")
                session.expect("confirm? [y/n] ")
                session.type("y\n")
            out, _ = child.communicate(timeout=WAIT_S)
        finally:
            child.kill()
    assert out == ("3 False\n" if with_terminal else "0 True\n")


def review_on_the_controlling_terminal(slave: str) -> None:
    if slave != "none":
        fcntl.ioctl(int(slave), termios.TIOCSCTTY, 0)
    answered = ask(Human(), QUESTION)
    count = sum(answer.decision is Decision.RELEASE for answer in answered.answers)
    print(count, answered.leave_open)


if __name__ == "__main__":
    review_on_the_controlling_terminal(sys.argv[1])
