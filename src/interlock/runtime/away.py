"""Questions of a living command that take a while to answer, though nobody sits at this terminal: by a model, or by a
desk far away. In threads of their own, as many at a time as the oracle takes; the monitor and the command go on.

The loop alone touches the run: the thread hands it what the oracle said, and ends.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING

from interlock.model import events as ev
from interlock.oracle import ask
from interlock.oracle.asking import resolve_unless, together_of

if TYPE_CHECKING:
    from interlock.oracle import Oracle, Question
    from interlock.runtime.performer import Performer
    from interlock.runtime.questions import OpenQuestion


class Away:
    """Puts questions to an oracle that answers after a while.

    Takes: `performer`, of the run; `answered`, called by the loop with a question's mark and what came of it; also
    where it comes too late.
    Holds: the command goes on; no more questions are before the oracle than it takes at a time.
    """

    def __init__(self, performer: Performer, answered: Callable[[str, ev.OracleAnswered], None]) -> None:
        self._performer = performer
        self._answered = answered
        self._together = together_of(performer.oracle)
        self._queue: deque[OpenQuestion] = deque()
        self._asked: dict[str, _Asked] = {}
        self._busy = 0

    def put(self, one: OpenQuestion) -> None:
        """Ask, at once or after those before it."""
        self._queue.append(one)
        self._next()

    def withdraw(self, marks: Collection[str]) -> None:
        """Take questions back that are settled; what is still said on them decides nothing."""
        self._queue = deque(one for one in self._queue if one.mark not in marks)
        for mark in marks:
            if (asked := self._asked.pop(mark, None)) is not None:
                # A call of a model cannot be broken off: nobody waits for the thread, but the next question does.
                asked.withdraw()

    def _next(self) -> None:
        while self._queue and self._busy < self._together:
            self._ask(_Asked(self._queue.popleft()))

    def _ask(self, asked: _Asked) -> None:
        loop = asyncio.get_running_loop()
        self._asked[asked.one.mark] = asked
        self._busy += 1

        def wait() -> None:
            said = ask(asked.bound(self._performer.oracle), asked.one.question)
            with suppress(RuntimeError):  # the loop is over, and with it the question
                loop.call_soon_threadsafe(self._done, asked.one.mark, said)
            asked.close()

        Thread(target=wait, name="interlock-away", daemon=True).start()

    def _done(self, mark: str, said: ev.OracleAnswered) -> None:
        self._busy -= 1
        self._asked.pop(mark, None)
        self._answered(mark, said)
        self._next()


class _Asked:
    """One question that was put, and how it is taken back. Holds: the descriptor is open while the thread may look."""

    def __init__(self, one: OpenQuestion) -> None:
        self.one = one
        self._lock = Lock()
        self._withdrawn = os.eventfd(0, os.EFD_CLOEXEC)
        self._closed = False

    def bound(self, oracle: Oracle) -> Oracle:
        """Return the oracle as it answers this question."""
        return _Bound(oracle, self._withdrawn)

    def withdraw(self) -> None:
        with self._lock:
            if not self._closed:
                os.eventfd_write(self._withdrawn, 1)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            os.close(self._withdrawn)


class _Bound:
    def __init__(self, oracle: Oracle, withdrawn: int) -> None:
        self.name = oracle.name
        self._oracle = oracle
        self._withdrawn = withdrawn

    def resolve(self, question: Question) -> ev.OracleAnswered:
        return resolve_unless(self._oracle, question, self._withdrawn)
