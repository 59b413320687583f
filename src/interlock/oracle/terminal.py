"""A terminal that an agent has used before: made sane, read line by line, given back as it was found."""

import os
import re
import select
import termios
import time
from types import TracebackType

from interlock.oracle.review import Screen

INTERRUPT = "\x03"
_SETTLE_S = 0.05
_LINE_LIMIT_BYTES = 4096
_LEAVE = "\x1b[?1047l"
_UNDO = (
    "\x0f"  # shift out of the line-drawing set: letters read as letters again
    "\x1b(B"
    + _LEAVE  # the alternate screen, without the cursor jump of 1049
    + "\x1b[!p"  # soft reset: hidden text, margins, insert and origin mode, hidden cursor
    "\x1b[0m"
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l"  # mouse clicks are no answers
    "\x1b[?1004l"  # nor is a change of focus
    "\x1b[?2004l"  # nor are the marks around a paste
    "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\"  # colours under which text could vanish
)
"""What is written before the review, since the agent may have left the terminal so that it misleads."""


_ASKED = (1049, 1047, 47, 1000, 1002, 1003, 1006, 1004, 2004, 25, 1)
"""Private modes of which the terminal is asked before, so that a full-screen agent gets its own back."""
_ASK = "".join(f"\x1b[?{mode}$p" for mode in _ASKED) + "\x1b[c"
_ANSWER_S = 0.25
"""A terminal that does not answer the last question (which all know) by then is asked nothing more."""
_TOLD = re.compile(rb"\x1b\[\?(\d{1,5});([0-4])\$y")
_LAST = re.compile(rb"\x1b\[\?[\d;]*c")


class SilenceError(Exception):
    """Nobody typed a line before the deadline."""


class WithdrawnError(Exception):
    """The question was settled elsewhere while it was on the screen."""


class Terminal:
    """Two descriptors of a terminal (or of pipes), as lines in and text out.

    Holds: after `close`, the terminal's modes are those it was found with. Reads only the descriptors: a line
    that was typed before its question was shown is thrown away by `forget_input`.
    Takes: `withdrawn`, a descriptor that can be read once the question is settled elsewhere; `goes_on`,
    whether the agent has the terminal again afterwards.
    """

    def __init__(
        self,
        reader: int,
        writer: int,
        *,
        owned: tuple[int, ...] = (),
        withdrawn: int | None = None,
        goes_on: bool = False,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._owned = owned
        self._withdrawn = withdrawn
        self._goes_on = goes_on
        self._restores = ""
        self._pending = bytearray()
        self._found: list[int | list[bytes | int]] | None = None
        self._is_terminal = os.isatty(reader)

    @classmethod
    def controlling(cls, withdrawn: int | None = None, *, goes_on: bool = False) -> "Terminal":
        """Open the controlling terminal, else standard input and error where both are terminals.

        Raises: OSError, where there is neither.
        """
        try:
            descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            if not (os.isatty(0) and os.isatty(2)):
                raise
            return cls(0, 2, withdrawn=withdrawn, goes_on=goes_on)
        return cls(descriptor, descriptor, owned=(descriptor,), withdrawn=withdrawn, goes_on=goes_on)

    def __enter__(self) -> "Terminal":
        if self._is_terminal:
            self._found = termios.tcgetattr(self._reader)
            self._set_modes()
            if os.isatty(self._writer) and os.environ.get("TERM", "dumb") not in {"dumb", ""}:
                restores = self._ask_modes() if self._goes_on else ""
                self._restores = restores or ""
                if restores is None:
                    # Nobody knows which screen the agent is on: stay there, and scroll what it shows out of sight.
                    self.write(_UNDO.replace(_LEAVE, "") + "\n" * self.screen.height)
                else:
                    self.write(_UNDO)
            # The agent may have asked the terminal for a report; its answer would read as typed by the user.
            time.sleep(_SETTLE_S)
            termios.tcflush(self._reader, termios.TCIFLUSH)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._restores:
                self.write(self._restores)
            if self._found is not None:
                termios.tcsetattr(self._reader, termios.TCSADRAIN, self._found)
        except (OSError, termios.error):
            pass  # it hung up: there is nothing left to give back
        finally:
            for descriptor in self._owned:
                os.close(descriptor)

    @property
    def screen(self) -> Screen:
        """Return the terminal's size and whether it shows colours."""
        if not os.isatty(self._writer):
            return Screen()
        size = os.terminal_size((80, 24))
        found = os.get_terminal_size(self._writer)
        width = found.columns if found.columns >= 40 else size.columns
        height = found.lines if found.lines >= 10 else size.lines
        colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") not in {"dumb", ""}
        return Screen(width=min(width, 200), height=height, colours=colours)

    def write(self, text: str) -> None:
        """Write all of the text.

        Raises: OSError, if the terminal is gone.
        """
        data = memoryview(text.encode("utf-8", "backslashreplace"))
        while data:
            try:
                data = data[os.write(self._writer, data) :]
            except BlockingIOError:
                # The agent may have left the descriptor non-blocking; it is shared, so leave it so and wait.
                select.select([], [self._writer], [])

    def forget_input(self) -> None:
        """Throw away what was typed so far: it answers no question that was shown."""
        self._pending.clear()
        if self._is_terminal:
            termios.tcflush(self._reader, termios.TCIFLUSH)

    def read_line(self, deadline_s: float | None) -> str | None:
        """Return the next line without its end, INTERRUPT for a Ctrl-C, or None at the end of input.

        Raises: SilenceError, after `deadline_s` seconds without a line; WithdrawnError; OSError, if the terminal is
        gone.
        """
        if self._is_terminal:
            self._set_modes()
        while True:
            end = self._pending.find(b"\n")
            stop = self._pending.find(b"\x03")
            if stop >= 0 and (end < 0 or stop < end):
                self._pending.clear()
                return INTERRUPT
            if end >= 0:
                line = self._pending[:end].decode("utf-8", "replace")
                del self._pending[: end + 1]
                return line
            if len(self._pending) > _LINE_LIMIT_BYTES:
                line = self._pending.decode("utf-8", "replace")
                self._pending.clear()
                return line
            ready = select.select(
                [self._reader, *([] if self._withdrawn is None else [self._withdrawn])], [], [], deadline_s
            )[0]
            if not ready:
                raise SilenceError
            if self._withdrawn in ready:
                raise WithdrawnError
            try:
                piece = os.read(self._reader, _LINE_LIMIT_BYTES)
            except BlockingIOError:
                continue
            if not piece:
                return None
            self._pending += piece

    def _ask_modes(self) -> str | None:
        """Ask the terminal how the agent left it. Returns: what sets it so again; None where it does not say."""
        modes = termios.tcgetattr(self._reader)
        modes[3] &= ~(termios.ICANON | termios.ECHO)
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 0, 0
        try:
            termios.tcsetattr(self._reader, termios.TCSAFLUSH, modes)
            self.write(_ASK)
            said = bytearray()
            end = time.monotonic() + _ANSWER_S
            while _LAST.search(said) is None and len(said) < _LINE_LIMIT_BYTES:
                left = end - time.monotonic()
                if left <= 0 or not select.select([self._reader], [], [], left)[0]:
                    break
                said += os.read(self._reader, _LINE_LIMIT_BYTES)
        finally:
            self._set_modes()
        told = {int(one[1]): one[2] for one in _TOLD.finditer(said)}
        if not told.get(1049, b"0").strip(b"0"):
            return None
        on = [mode for mode in _ASKED if told.get(mode) == b"1" and mode != 25]
        screens = [mode for mode in on if mode in (1049, 1047, 47)]
        wanted = [*screens[:1], *(mode for mode in on if mode not in screens)]
        hidden = "\x1b[?25l" if told.get(25) == b"2" else ""
        return "".join(f"\x1b[?{mode}h" for mode in wanted) + hidden

    def _set_modes(self) -> None:
        """Set whole lines with echo; Ctrl-C ends a line instead of raising a signal that others may hold."""
        modes = termios.tcgetattr(self._reader)
        modes[0] = (modes[0] | termios.ICRNL) & ~(termios.INLCR | termios.IGNCR | termios.ISTRIP)
        modes[1] |= termios.OPOST | termios.ONLCR
        modes[3] |= termios.ICANON | termios.ECHO | termios.ECHOE | termios.ECHOK | termios.ISIG
        # Ctrl-D and Backspace too: an agent may have moved them.
        modes[6][termios.VINTR] = b"\x00"
        modes[6][termios.VEOL] = b"\x03"
        modes[6][termios.VEOL2] = b"\x00"
        modes[6][termios.VEOF] = b"\x04"
        modes[6][termios.VERASE] = b"\x7f"
        termios.tcsetattr(self._reader, termios.TCSADRAIN, modes)
