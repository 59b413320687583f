"""The human oracle: one review at the scope's end, on the terminal."""

import termios

from interlock.model.events import OracleAnswered
from interlock.oracle.asking import Way
from interlock.oracle.listing import arrange
from interlock.oracle.question import Question, sanity
from interlock.oracle.review import Review, Stage, State
from interlock.oracle.terminal import INTERRUPT, SilenceError, Terminal, WithdrawnError


class Human:
    """Asks whoever sits at the terminal.

    Takes: `reader`, `writer`, descriptors to use instead of the controlling terminal; `deadline_s`, how long
    the user may be silent, None for ever.
    Holds: releases only what the user confirmed by `y`. Silence and nonsense refuse; the end of input, Ctrl-C
    and a lost terminal leave the scope open, so that nothing is released and no work is lost.
    """

    name = "human"
    way = Way.TERMINAL

    def __init__(
        self, reader: int | None = None, writer: int | None = None, *, deadline_s: float | None = None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._deadline_s = deadline_s

    def resolve(self, question: Question) -> OracleAnswered:
        """Show what was deferred, let the user choose, and return one answer for each effect."""
        return self.resolve_unless(question, None)

    def resolve_unless(self, question: Question, withdrawn: int | None) -> OracleAnswered:
        """Do the same, and give up once `withdrawn` can be read: the question was settled elsewhere."""
        if not question.deferred:
            return OracleAnswered(oracle=self.name, answers=())
        try:
            with self._open(withdrawn, goes_on=question.now) as terminal:
                answered = self._converse(question, terminal)
        except SilenceError:
            answered = self._fault(f"no answer within {self._deadline_s:g} s")
        except WithdrawnError:
            answered = OracleAnswered(oracle=self.name, answers=(), leave_open=True)
        except (OSError, termios.error, KeyboardInterrupt):
            # The terminal is gone, or there never was one: as if the user had left.
            answered = OracleAnswered(oracle=self.name, answers=(), leave_open=True)
        return sanity(answered, question)

    def _open(self, withdrawn: int | None, *, goes_on: bool) -> Terminal:
        if self._reader is None or self._writer is None:
            return Terminal.controlling(withdrawn, goes_on=goes_on)
        return Terminal(self._reader, self._writer, withdrawn=withdrawn, goes_on=goes_on)

    def _converse(self, question: Question, terminal: Terminal) -> OracleAnswered:
        review = Review(
            question=question,
            items=arrange(question.deferred, question.moved, question.ties),
            screen=terminal.screen,
        )
        state = State()
        terminal.write("\n" + review.opening())
        while state.stage in {Stage.CHOOSING, Stage.PAGING, Stage.CONFIRMING}:
            terminal.write(review.prompt(state))
            try:
                line = terminal.read_line(self._deadline_s)
            except WithdrawnError:
                terminal.write("\nThis question was settled elsewhere.\n")
                raise
            if line is None or line == INTERRUPT:
                terminal.write("\n")
                return OracleAnswered(oracle=self.name, answers=(), leave_open=True)
            was = state.stage
            state, text = review.step(state, line)
            if state.stage is Stage.CONFIRMING and was is not Stage.CONFIRMING:
                # A confirmation typed ahead, or pasted along, confirms nothing.
                terminal.forget_input()
            terminal.write(text)
        if state.stage is Stage.LEFT_OPEN:
            return OracleAnswered(oracle=self.name, answers=(), leave_open=True)
        if state.stage is Stage.CONFUSED:
            return self._fault("three answers in a row made no sense")
        return OracleAnswered(oracle=self.name, answers=review.answers(state))

    def _fault(self, reason: str) -> OracleAnswered:
        return OracleAnswered(oracle=self.name, answers=(), fault=reason)
