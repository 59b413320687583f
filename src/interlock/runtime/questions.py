"""Questions of a living command that wait for an answer from another terminal, while the run goes on.

Only the requests that are asked about wait. The first complete answer to a question closes it; an answer that comes
later, or to a question that was never there, is told so and changes nothing. What is open when the command ends is
refused by the core.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.errors import InputError
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.oracle import Elsewhere
from interlock.oracle.asking import Way, way_of
from interlock.oracle.question import Question, sanity
from interlock.runtime.at_terminal import AtTerminal
from interlock.runtime.away import Away

if TYPE_CHECKING:
    from interlock.runtime.performer import Performer

OPEN_AT_MOST = 256
"""More questions at once are refused: nobody answers them, and each holds a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question that waits.

    Takes: `mark`, by which its answer names it; `asked`, the effects that the answer settles.
    """

    mark: str
    question: Question
    asked: tuple[str, ...]


class Questions:
    """The open questions of one run, on the monitor's thread.

    Takes: `performer`, of the run; `deadline_s`, after which a question is refused, None for never; `say`, called with
    one line for each that opens.
    """

    def __init__(self, performer: Performer, deadline_s: float | None, say: Callable[[str], None]) -> None:
        self._performer = performer
        self._deadline_s = deadline_s
        self._say = say
        self._open: dict[str, OpenQuestion] = {}
        asks = Away if way_of(performer.oracle) is Way.AWAY else AtTerminal
        self._asks = asks(performer, self._answered_here)

    def ask(self, command: cmd.Ask) -> ev.OracleAnswered | None:
        """Open a question. Returns: None where it waits now, else the refusal."""
        state = self._performer.state
        own = tuple(effect.id for effect, _verdict in command.deferred)
        asked = state.resolving if set(own) <= set(state.resolving) else own
        question = self._performer.question_now(command)
        if isinstance(self._performer.oracle, Elsewhere):
            question = replace(question, now=False)
        if len(self.pending()) >= OPEN_AT_MOST:
            return self._refusal(question, asked, f"{OPEN_AT_MOST} questions wait already")
        one = OpenQuestion(mark=secrets.token_hex(8), question=question, asked=asked)
        if self._deadline_s is not None:
            try:
                asyncio.get_running_loop().call_later(self._deadline_s, self._expire, one.mark)
            except RuntimeError:
                return self._refusal(question, asked, "nothing could end the wait for its answer")
        self._open[one.mark] = one
        if isinstance(self._performer.oracle, Elsewhere):
            self._tell(one)
        else:
            self._asks.put(one)
        return None

    def settle(self) -> None:
        """Take what is closed off the terminal; called after each step of the core."""
        if self._open:
            before = set(self._open)
            self.pending()
            if closed := before - set(self._open):
                self._asks.withdraw(closed)

    def close(self) -> None:
        """The command is gone, however it ended: no question stays on the terminal."""
        marks = set(self._open)
        self._open.clear()
        self._asks.withdraw(marks)

    def pending(self) -> tuple[OpenQuestion, ...]:
        """Return the questions that still wait, the oldest first."""
        state = self._performer.state
        waiting = {item.effect.id for item in state.opened} | set(state.resolving)
        if state.phase is not Phase.RUNNING:
            waiting = set()
        self._open = {mark: one for mark, one in self._open.items() if not waiting.isdisjoint(one.asked)}
        return tuple(self._open.values())

    def answer(self, mark: str, said: ev.OracleAnswered) -> ev.OracleAnswered:
        """Close a question by the first complete answer; the rest is refused with it.

        Returns: what of the answer counts.
        Raises: InputError, if the question is not open (any more).
        """
        self.pending()
        one = self._open.get(mark)
        if one is None:
            raise InputError(
                "this question is closed: it was answered already, its time was up, or its request is gone",
                hint=f"see what came of it: interlock show {self._performer.folder.run_id}",
            )
        if said.leave_open:
            return said  # nothing was decided, so it goes on waiting
        sane = sanity(said, one.question)
        del self._open[mark]
        self._asks.withdraw((mark,))
        self._performer.feed(_settling(sane, one.asked))
        return sane

    def _answered_here(self, mark: str, said: ev.OracleAnswered) -> None:
        """Take what the run's own oracle said. Called by the loop; whatever it is, the wait is over."""
        from interlock.runtime.performer import LedgerLost

        one = self._open.pop(mark, None)
        try:
            if one is not None:
                self._performer.feed(_settling(said, one.asked))
            elif self._performer.state.phase in (Phase.RUNNING, Phase.DEFERRED):
                # It decides nothing any more; that models were asked stays on record.
                for inference in said.inferences:
                    self._performer.feed(ev.ModelAsked(inference=inference))
        except LedgerLost:
            asyncio.get_running_loop().stop()

    def _expire(self, mark: str) -> None:
        """Refuse a question whose time is up. Called by the loop."""
        from interlock.runtime.performer import LedgerLost

        self.pending()
        one = self._open.pop(mark, None)
        if one is None:
            return
        self._asks.withdraw((mark,))
        try:
            self._performer.feed(
                self._refusal(one.question, one.asked, f"nobody answered within {self._deadline_s:g} s")
            )
        except LedgerLost:
            # The ledger holds nothing more, so nothing may pass: without its loop the sandbox ends.
            asyncio.get_running_loop().stop()

    def _refusal(self, question: Question, asked: tuple[str, ...], fault: str) -> ev.OracleAnswered:
        said = ev.OracleAnswered(oracle=self._performer.oracle.name, answers=(), fault=fault)
        return _settling(sanity(said, question), asked)

    def _tell(self, one: OpenQuestion) -> None:
        run_id = self._performer.folder.run_id
        count = len(one.question.deferred)
        what = "a request waits" if count == 1 else f"{count} requests wait"
        if os.isatty(2):
            # The screen is the agent's: a line in it would be lost or would spoil it. A bell does neither.
            with suppress(OSError):
                os.write(2, b"\a")
        else:
            self._say(f"{what} for your answer: interlock review {run_id}")


def _settling(said: ev.OracleAnswered, asked: tuple[str, ...]) -> ev.OracleAnswered:
    return replace(said, asked=asked)
