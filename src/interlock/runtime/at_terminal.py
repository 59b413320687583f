"""Questions of a living command at the run's own terminal: one after the other, while the monitor's loop goes on.

The command stands still meanwhile, since it reads the same terminal; a thread of its own waits for the keys. The
loop alone touches the run: the thread hands it what the person said, and ends.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from interlock.model import events as ev
from interlock.model.errors import InterlockError
from interlock.oracle.asking import resolve_unless
from interlock.oracle.question import sanity

if TYPE_CHECKING:
    from interlock.runtime.performer import Performer
    from interlock.runtime.questions import OpenQuestion


class AtTerminal:
    """Puts questions to the person at the terminal.

    Takes: `performer`, of the run; `answered`, called by the loop with a question's mark and what came of it.
    Holds: while a question is on the screen, the command stands still; after `withdraw` of the last one it goes on.
    """

    def __init__(self, performer: Performer, answered: Callable[[str, ev.OracleAnswered], None]) -> None:
        self._performer = performer
        self._answered = answered
        self._queue: deque[OpenQuestion] = deque()
        self._shown: OpenQuestion | None = None
        self._withdrawn = -1
        self._thread: Thread | None = None

    def put(self, one: OpenQuestion) -> None:
        """Ask, at once or after those before it. Raises: BoundaryError, if the command would not stand still."""
        self._queue.append(one)
        if self._shown is None:
            self._next()

    def withdraw(self, marks: Collection[str]) -> None:
        """Take questions back that are settled; one that is on the screen has left it when this returns."""
        self._queue = deque(one for one in self._queue if one.mark not in marks)
        if self._shown is not None and self._shown.mark in marks:
            os.eventfd_write(self._withdrawn, 1)
            self._over()
            self._next()

    def _next(self) -> None:
        sandbox = self._performer.sandbox
        if not self._queue:
            if sandbox is not None:
                sandbox.resume()
            return
        if sandbox is not None:
            sandbox.pause()
        self._shown = one = self._queue.popleft()
        self._withdrawn = os.eventfd(0, os.EFD_CLOEXEC)
        loop = asyncio.get_running_loop()

        def wait() -> None:
            said = self._ask(one)
            with suppress(RuntimeError):  # the loop is over, and with it the question
                loop.call_soon_threadsafe(self._done, one, said)

        self._thread = Thread(target=wait, name="interlock-question", daemon=True)
        self._thread.start()

    def _ask(self, one: OpenQuestion) -> ev.OracleAnswered:
        """Ask in the thread. Holds: whatever goes wrong refuses."""
        oracle = self._performer.oracle
        try:
            return resolve_unless(oracle, one.question, self._withdrawn)
        except InterlockError as error:
            fault = error.message
        except Exception as error:  # noqa: BLE001 - an oracle that breaks is an oracle that refuses
            fault = f"broke off: {type(error).__name__}"
        return sanity(ev.OracleAnswered(oracle=oracle.name, answers=(), fault=fault), one.question)

    def _done(self, one: OpenQuestion, said: ev.OracleAnswered) -> None:
        if self._shown is not one:
            return  # it was withdrawn
        self._over()
        self._answered(one.mark, sanity(said, one.question))
        if self._shown is None:
            self._next()

    def _over(self) -> None:
        """Wait for the thread: it gives the terminal back as it found it."""
        if self._thread is not None:
            self._thread.join()
        os.close(self._withdrawn)
        self._shown = self._thread = None
        self._withdrawn = -1
