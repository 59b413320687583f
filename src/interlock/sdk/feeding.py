"""The fold of a scope, fed one event at a time, and what became of those who wait for its word.

Holds: nobody holds the lock while an oracle thinks or a function runs.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.errors import InterlockError
from interlock.model.phases import Phase
from interlock.model.tools import ToolResult
from interlock.model.verdicts import SemanticException
from interlock.runtime.performer import LedgerLost, now_ns
from interlock.sdk import answers, jobs
from interlock.sdk.branching import branch_in
from interlock.sdk.confining import denials
from interlock.sdk.errors import NoScope
from interlock.sdk.holding import OVER, Holding, Open, Passage, Passed, TurnedAway, Unwanted, Work
from interlock.sdk.placeholder import Placeholder

if TYPE_CHECKING:
    from interlock.monitor.state import State
    from interlock.runtime.folders import RunLock
    from interlock.runtime.performer import Performer

WAITING, MADE, FAILED, DROPPED = "waiting", "made", "failed", "dropped"


class Kept:
    """A call that waits: how it is made, and what became of it."""

    placeholder: Placeholder

    def __init__(self, make: jobs.Make, text: str) -> None:
        self.make = make
        self.tool = make.guarded.name
        self.text = text
        self.state = WAITING
        self.value: Any = None
        self.told = ""
        self.error: BaseException | None = None
        self.why = ""
        self.exception: SemanticException = OVER

    def changed(self) -> bool:
        """Say whether the arguments are others now than those that were decided."""
        try:
            return self.make.text() != self.text
        except InterlockError:
            return True


class StepLock:
    """The lock of a scope's events. Raises: NoScope, in a forked child."""

    __slots__ = ("_lock", "process")

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        # First: in a child the lock may be held by a thread that is not there.
        if os.getpid() != self.process:
            raise NoScope(
                f"this scope belongs to process {self.process}: a forked child must not write its ledger",
                hint="open a scope of its own in the child: with monitor.scope(task): …",
            )
        self._lock.acquire()

    def __exit__(self, *_raised: object) -> None:
        self._lock.release()


class Feeding:
    """Feeds a run's core under a lock.

    Takes: `performer`, whose core decides; `lock`, on the run's folder; `choice`, how the scope goes on after a call
    that waited and failed.
    """

    def __init__(self, performer: Performer, lock: RunLock, choice: ev.StuckChoice) -> None:
        self.run_id = performer.folder.run_id
        self.path = performer.folder.path
        self._performer = performer
        self._run_lock = lock
        self._choice = choice
        self._step = StepLock()
        self._quiet: Future[None] | None = None
        self._holding = Holding()
        self._awaited: dict[str, Future[Passage]] = {}
        self._kept: dict[str, Kept] = {}
        self._tokens: dict[str, str] = {}
        self._closing = False
        self._closed = False
        self._lost: LedgerLost | None = None
        performer.traffic = self._holding
        performer.on_ask = self._open
        performer.falls_with_agent = True
        self._reads: dict[str, bool] = {}

    @property
    def is_forked(self) -> bool:
        """Say whether this is a child that was forked while the scope was open."""
        return os.getpid() != self._step.process

    def returned(self, effect_id: str, result: ToolResult, *, at_once: bool) -> None:
        """Record how a call came back. Takes: `at_once`, whether a fall of the program may not lose it."""
        with self._step:
            state = self._performer.state
            if state.phase is not Phase.RUNNING or effect_id not in state.flying or self._lost is not None:
                return  # the scope is over: it stands there as unknown
            self._feed(ev.ToolReturned(effect_id=effect_id, result=result))
            self._tell_denied()
            if at_once:
                self._sign()

    def _tell_denied(self) -> None:
        """Record the system calls that the kernel denied to a process that confined itself to this plan."""
        knowledge = self._performer.state.knowledge
        if knowledge is None or knowledge.manifest is None:
            return
        for one in denials():
            self._feed(
                ev.CallDenied(
                    name=one.name,
                    number=one.number,
                    count=one.count,
                    detail=one.detail,
                    advice=one.advice,
                    branch=branch_in(self),
                )
            )

    def told(self, event: ev.ToolsListed | ev.TrafficRefused) -> State:
        """Record what a tool server said that asks for no decision. Returns: where the fold stands.

        Raises: NoScope, LedgerLost.
        """
        with self._step:
            self._check_open("a listing of tools")
            self._feed(event)
            return self._performer.state

    def _check_open(self, tool: str) -> None:
        if self._lost is not None:
            raise self._lost
        if self._closing or self._performer.state.phase is not Phase.RUNNING:
            raise NoScope(
                f"`{tool}` was called after its scope had ended (run {self.run_id})",
                hint="call it inside of `with monitor:`",
            )

    def _put(self, event: ev.ToolCalled | ev.RequestMade) -> tuple[str, Any, tuple[Work, ...]]:
        effect_id = f"e{self._performer.state.proposed + 1}"
        work = self._feed(event)
        passage: Any = self._holding.passages.pop(effect_id, None)
        if passage is None:
            passage = Future()
            if self._performer.state.phase is Phase.RUNNING:
                self._awaited[effect_id] = passage
            else:
                passage.set_result(TurnedAway(exception=OVER))
        return effect_id, passage, work

    def _feed(self, event: ev.Event) -> tuple[Work, ...]:
        """Take an event, and hand on what became of those who wait. Returns: what has to be done now."""
        try:
            self._performer.feed(event)
            while (stuck := self._performer.state.stuck_on) and self._performer.state.phase is Phase.STUCK:
                self._performer.feed(
                    ev.StuckSettled(effect_id=stuck, choice=self._choice, settled_at_ns=now_ns())
                )
        except LedgerLost as error:
            self._lost = error
            for future in self._awaited.values():
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            self._awaited.clear()
            self._now_quiet()
            raise
        if self._awaited or self._kept:
            self._hand_on()
            if not self._performer.state.sending:
                self._now_quiet()
        return self._holding.take() if self._holding.work else ()

    def _now_quiet(self) -> None:
        if self._quiet is not None:
            self._quiet.set_result(None)
            self._quiet = None

    def _hand_on(self) -> None:
        passages = self._holding.passages
        for effect_id in [*passages]:
            passage = passages[effect_id]
            kept = self._kept.get(effect_id)
            if kept is not None and isinstance(passage, TurnedAway):
                kept.state, kept.exception = DROPPED, passage.exception
                del passages[effect_id]
            elif effect_id in self._awaited:
                del passages[effect_id]
                future = self._awaited.pop(effect_id)
                if future.set_running_or_notify_cancel():
                    future.set_result(passage)
                elif isinstance(passage, Passed):
                    self._holding.work.append(Unwanted(effect_id=effect_id))
        if self._performer.state.phase is not Phase.RUNNING:
            for future in self._awaited.values():
                if future.set_running_or_notify_cancel():
                    future.set_result(TurnedAway(exception=OVER))
            self._awaited.clear()

    def _waited(self, effect_id: str, future: Future[Passage]) -> jobs.Steps[Passage]:
        try:
            passage: Passage = yield jobs.Wait(future=future)
        except BaseException:
            # Whoever made the call is gone: should it be released yet, it is recorded as not made.
            if not future.cancel() and future.exception() is None and isinstance(future.result(), Passed):
                self.returned(effect_id, answers.not_made("whoever made the call was gone"), at_once=True)
            raise
        return passage

    def _open(self, command: cmd.Ask) -> None:
        """Take a question out of the core's step."""
        performer = self._performer
        if not command.now:
            self._holding.work.append(Open(question=performer.question(command), asked=()))
            return
        own = tuple(effect.id for effect, _verdict in command.deferred)
        resolving = performer.state.resolving
        asked = resolving if set(own) <= set(resolving) else own
        self._holding.work.append(Open(question=performer.question_now(command), asked=asked))

    def _sign(self) -> None:
        if self._performer.state.phase is Phase.CLOSED:
            return  # the seal signs all
        try:
            self._performer.sign()
        except LedgerLost as error:
            self._lost = error
            raise
