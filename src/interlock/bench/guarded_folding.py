"""A run of tool calls through the SDK: what `folding.Folding` is, with a real ledger, as a guarded program has it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from interlock.bench import telling
from interlock.bench.folding import Answered, Fate, Judged, Oracle, Sender, returned_event
from interlock.model import events as ev
from interlock.model.events import Answer, OracleAnswered, StuckChoice
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision
from interlock.monitor.state import Decided, State
from interlock.oracle import Question
from interlock.policy import load_policy
from interlock.runtime.story import events_of
from interlock.sdk import jobs
from interlock.sdk.answers import Seen
from interlock.sdk.calling import Guarded
from interlock.sdk.errors import ParkedFailed
from interlock.sdk.holding import TurnedAway
from interlock.sdk.opening import open_scope
from interlock.sdk.placeholder import Placeholder
from interlock.sdk.scope import Scope

_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of its own is made below it


class GuardedFolding:
    """A run, as `Folding` has it. Takes: the same; `plan`, the signed envelope of the plan that its calls follow.

    Holds: `path` is the run's folder, gone with this object; its ledger is sealed once the run is finished. What the
    oracle raises is raised: to a program it would be a refusal, but a result of such refusals would be of no oracle.
    """

    def __init__(
        self,
        policy_text: str,
        task: str,
        *,
        oracle: Oracle,
        send: Sender | None = None,
        name: str = "bench",
        plan: str = "",
    ) -> None:
        self.questions = 0
        self._oracle = oracle
        self._send = send
        self._name = name
        self._fates: dict[str, Fate] = {}
        self._items: dict[str, Decided] = {}
        self._parked: dict[str, Placeholder] = {}
        self._broken: Exception | None = None
        folder = tempfile.mkdtemp(dir=_IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None)
        self._forget = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._scope = open_scope(
            policy=load_policy(policy_text, filename="bench"),
            task=task,
            oracle=self,
            oracle_name=name,
            name="bench",
            choice=StuckChoice.SKIP,
            parent=folder,
            plan=plan,
        )
        self.path = self._scope.path

    @property
    def name(self) -> str:
        """Return how the record calls the oracle."""
        return self._name

    @property
    def scope(self) -> Scope:
        """Return the scope itself."""
        return self._scope

    @property
    def state(self) -> State:
        """Return where the fold stands."""
        return self._scope.state

    @property
    def story(self) -> Iterator[tuple[int, ev.Event, State]]:
        """Yield what was put to the fold until now: its node, the event, and the state after it."""
        self._scope.sign()
        for event, item in events_of(f"{self.path}/ledger"):
            if event is not None:
                yield item.node.seq, event, item.state

    @property
    def fates(self) -> Mapping[str, Fate]:
        """Return what became of each call so far, by the effect's id."""
        return self._fates

    def resolve(self, question: Question) -> OracleAnswered:
        """Answer for the oracle."""
        answers = []
        for effect, verdict in question.deferred:
            self.questions += 1
            item = self._items.get(effect.id) or Decided(effect=effect, verdict=verdict, node=-1)
            try:
                decision = Decision.RELEASE if self._oracle(item) else Decision.REFUSE
            except Exception as error:
                self._broken = error
                raise
            answers.append(Answer(effect_id=effect.id, decision=decision, reason="the bench's answer"))
        return OracleAnswered(oracle=self._name, answers=tuple(answers))

    def call(self, call: ToolCall) -> Judged:
        """Give a call to the monitor. Returns: its verdict and what became of it."""
        effect_id = ""

        def made(**_arguments: Any) -> Seen:
            assert self._send is not None, "a parked call needs somebody who makes it"
            return _seen(self._send(self._items[effect_id]))

        make = jobs.Make(
            guarded=Guarded(name=call.name, function=made, is_async=False),
            args=(),
            kwargs=json.loads(call.arguments),
        )
        effect_id, passage, work = self._scope.propose(call, make)
        item = self.state.latest
        assert item is not None
        self._items[effect_id] = item
        settled = jobs.run(self._scope.settling(effect_id, passage, work))
        self._raise_what_broke()
        asked = item.verdict.decision is Decision.DEFER
        told = ""
        if isinstance(settled, Placeholder):
            fate, told = Fate.PARKED, settled.told()
            self._parked[effect_id] = settled
        elif isinstance(settled, TurnedAway):
            fate = Fate.ASKED_REFUSED if asked else Fate.REFUSED
            told = telling.refusal(settled.exception)
        else:
            fate = Fate.ASKED_RELEASED if asked else Fate.VOUCHED
        self._fates[effect_id] = fate
        self._settle()
        return Judged(item=item, fate=fate, told=told)

    def returned(self, judged: Judged, *, text: str, structured: str | None, failed: bool) -> None:
        """Give what a call that was done gave back."""
        answer = Answered(text=text, structured=structured, failed=failed)
        effect_id = judged.item.effect.id
        self._scope.returned(effect_id, returned_event(effect_id, answer).result, at_once=False)

    def finish(self) -> None:
        """End the task: what is parked is asked about, and made or dropped."""
        with suppress(ParkedFailed):
            jobs.run(self._scope.ending(discard=False))
        self._raise_what_broke()
        self._settle()

    def close(self) -> None:
        """Remove the run's folder now, and not when nobody holds this object any more."""
        self._forget()

    def _raise_what_broke(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _settle(self) -> None:
        for effect_id, placeholder in [*self._parked.items()]:
            if placeholder.state == "waiting":
                continue
            del self._parked[effect_id]
            asked = self._items[effect_id].verdict.decision is Decision.DEFER
            if placeholder.state == "dropped":
                self._fates[effect_id] = Fate.ASKED_REFUSED if asked else Fate.REFUSED
            else:
                self._fates[effect_id] = Fate.ASKED_RELEASED if asked else Fate.VOUCHED


def _seen(answer: Answered) -> Seen:
    says = answer.text if answer.structured is None else json.loads(answer.structured)
    return Seen(value=None, says=says, failed=answer.failed)
