"""A terminal that an agent has used before: made sane, read line by line, given back as it was found."""

import os
import select
import termios
import time
from types import TracebackType

from interlock.oracle.review import Screen

INTERRUPT = "\x03"
_SETTLE_S = 0.05
_LINE_LIMIT_BYTES = 4096
_UNDO = (
    "\x0f"  # shift out of the line-drawing set: letters read as letters again
    "\x1b(B"
    "\x1b[?1047l"  # leave the alternate screen, without the cursor jump of 1049
    "\x1b[!p"  # soft reset: hidden text, margins, insert and origin mode, hidden cursor
    "\x1b[0m"
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l"  # mouse clicks are no answers
    "\x1b[?1004l"  # nor is a change of focus
    "\x1b[?2004l"  # nor are the marks around a paste
    "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\"  # colours under which text could vanish
)
"""What is written before the review, since the agent may have left the terminal so that it misleads."""


class SilenceError(Exception):
    """Nobody typed a line before the deadline."""


class Terminal:
    """Two descriptors of a terminal (or of pipes), as lines in and text out.

    Holds: after `close`, the terminal's modes are those it was found with. Reads only the descriptors: a line
    that was typed before its question was shown is thrown away by `forget_input`.
    """

    def __init__(self, reader: int, writer: int, *, owned: tuple[int, ...] = ()) -> None:
        self._reader = reader
        self._writer = writer
        self._owned = owned
        self._pending = bytearray()
        self._found: list[int | list[bytes | int]] | None = None
        self._is_terminal = os.isatty(reader)

    @classmethod
    def controlling(cls) -> "Terminal":
        """Open the controlling terminal, else standard input and error where both are terminals.

        Raises: OSError, where there is neither.
        """
        try:
            descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            if not (os.isatty(0) and os.isatty(2)):
                raise
            return cls(0, 2)
        return cls(descriptor, descriptor, owned=(descriptor,))

    def __enter__(self) -> "Terminal":
        if self._is_terminal:
            self._found = termios.tcgetattr(self._reader)
            self._set_modes()
            if os.isatty(self._writer) and os.environ.get("TERM", "dumb") not in {"dumb", ""}:
                self.write(_UNDO)
            # The agent may have asked the terminal for a report; its answer would read as typed by the user.
            time.sleep(_SETTLE_S)
            termios.tcflush(self._reader, termios.TCIFLUSH)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._found is not None:
                termios.tcsetattr(self._reader, termios.TCSADRAIN, self._found)
        except termios.error:
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

        Raises: SilenceError, after `deadline_s` seconds without a line; OSError, if the terminal is gone.
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
            if not select.select([self._reader], [], [], deadline_s)[0]:
                raise SilenceError
            try:
                piece = os.read(self._reader, _LINE_LIMIT_BYTES)
            except BlockingIOError:
                continue
            if not piece:
                return None
            self._pending += piece

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
