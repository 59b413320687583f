"""One run of guarded functions: a ledger, the fold, and whoever waits for its word.

Threads and coroutines share it: events are taken one at a time under a lock, which nobody holds while an oracle thinks
or a function runs.
Holds: nothing is called whose intent is not on record, and where the ledger cannot be written nothing is called at all.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interlock.model import events as ev
from interlock.model.errors import StuckError
from interlock.model.manifest import StopCondition
from interlock.model.phases import Phase
from interlock.model.requests import INTERNAL_HOST, NetRequest, Outcome
from interlock.model.tools import ToolCall, ToolResult
from interlock.model.verdicts import SemanticException
from interlock.policy.stopping import said
from interlock.policy.tools.roles import READ
from interlock.runtime import sending
from interlock.runtime.performer import now_ns
from interlock.sdk import answers, jobs
from interlock.sdk.branching import branch_in, entered
from interlock.sdk.errors import ParkedFailed, Refusal, Refused, Stopped
from interlock.sdk.feeding import DROPPED, FAILED, MADE, WAITING, Feeding, Kept
from interlock.sdk.holding import (
    Answered,
    Open,
    Parked,
    Passage,
    Released,
    TurnedAway,
    Unwanted,
    Work,
)
from interlock.sdk.placeholder import Placeholder

if TYPE_CHECKING:
    from interlock.monitor.state import State

Settled = Passage | Placeholder
Proposed = Settled | Future[Passage]


class Scope(Feeding):
    """A run that is open.

    Takes: `performer`, whose core decides; `lock`, on the run's folder; `choice`, how the scope goes on after a call
    that waited and failed.
    """

    # what is asked of it

    @property
    def outcome(self) -> str:
        """Return where it stands: `running`, `closed` once the ledger is sealed, else the phase it stopped in."""
        return self._performer.state.phase.value

    @property
    def state(self) -> State:
        """Return where the fold stands."""
        return self._performer.state

    @property
    def refused(self) -> tuple[tuple[str, str, SemanticException], ...]:
        """Return what was refused so far: effect id, `tool:NAME`, exception."""
        resolution = self._performer.resolution
        return (*resolution.turned_away, *resolution.refusals)

    @property
    def waiting(self) -> tuple[Placeholder, ...]:
        """Return the placeholders of calls that still wait."""
        return tuple(one.placeholder for one in self._kept.values() if one.state == WAITING)

    def fate_of(self, effect_id: str) -> str:
        """Return what became of a call that waited."""
        return self._kept[effect_id].state

    def branch(self, name: str) -> AbstractContextManager[None]:
        """Return what is entered around the code of one agent among several: its calls are those of a branch.

        Takes: `name`, as the plan has it. Threads and tasks that are begun inside belong to it too, as far as they take
        over the context.
        """
        return entered(self, name)

    def turn(self, model: str = "", *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        """Say that the agent's model gave an answer: it counts towards the stop conditions of the plan.

        Takes: `model`, as the plan's prices name it; the tokens of prompt and answer.
        Raises: Stopped, where it was one too many, or the branch that this code runs for is stopped anyhow.
        """
        branch = branch_in(self)
        event = ev.TurnTaken(
            branch=branch, model=model, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens
        )
        with self._step:
            self._check_open("a turn")
            self._feed(event)
            self._sign()
            stops = self._performer.state.knowledge and self._performer.state.knowledge.stops
        found = next((one for one in stops.reached if one.holds_in(branch)), None) if stops else None
        if found is not None:
            raise Stopped(f"the run is stopped: {said(found)}", hint="end the task, and say what is left")

    def stop(self, branch: str = "", *, why: str = "") -> None:
        """Stop the run, or one branch of it: what waits there is not done, and nothing after it; others go on."""
        with self._step:
            self._check_open("a stop")
            self._feed(ev.StopReached(condition=StopCondition.EXTERNAL, branch=branch, detail=why))
            self._sign()

    def value_of(self, placeholder: Placeholder) -> Any:
        """Resolve a call that waits, and return its answer."""
        return jobs.run(self._resolving(placeholder.effect_id))

    async def avalue_of(self, placeholder: Placeholder) -> Any:
        """Do the same in a coroutine."""
        return await jobs.arun(self._resolving(placeholder.effect_id), durable=True)

    def changes(self, tool: str) -> bool:
        """Say whether a call of a tool may change something, so that its intent waits for the disk."""
        reads = self._reads.get(tool)
        if reads is None:
            policy = self._performer.state.policy
            role = policy.tools.find(tool) if policy is not None else None
            reads = self._reads[tool] = role is not None and role.effect == READ
        return not reads

    def sign(self) -> None:
        """Hand all that is on record to the kernel, signed. Raises: LedgerLost."""
        with self._step:
            if not self._closed and self._lost is None:
                self._sign()

    def parks(self, tool: str) -> bool:
        """Say whether the policy has calls of a tool wait."""
        policy = self._performer.state.policy
        role = policy.tools.find(tool) if policy is not None else None
        return role is not None and role.parks

    def held_in(self, text: str) -> tuple[str, ...]:
        """Return the calls whose placeholders stand in a text."""
        return tuple(effect_id for token, effect_id in self._tokens.items() if token in text)

    # steps

    def propose(self, call: ToolCall, make: jobs.Make) -> tuple[str, Proposed, tuple[Work, ...]]:
        """Put a call to the core. Takes: `make`, how it is made, should it wait.

        Returns: the effect's id, what it may do, and what has to be done first: both for `settling`, where something is
        left open.
        """
        held = self.held_in(call.arguments) if self._tokens else ()
        event = ev.ToolCalled(call=replace(call, placeholders=held) if held else call)
        with self._step:
            self._check_open(call.tool)
            effect_id, passage, work = self._put(event)
            if isinstance(passage, Parked):
                return effect_id, self._keep(effect_id, passage, Kept(make, call.arguments)), work
        return effect_id, passage, work

    def settling(self, effect_id: str, passage: Proposed, work: tuple[Work, ...]) -> jobs.Steps[Settled]:
        """Do what has to be done first, and wait until it is known what a call may do."""
        if work:
            yield from self._working(work)
        if isinstance(passage, Future):
            passage = yield from self._waited(effect_id, passage)
        return passage

    def _keep(self, effect_id: str, parked: Parked, kept: Kept) -> Placeholder:
        self._kept[effect_id] = kept
        self._tokens[parked.token] = effect_id
        kept.placeholder = Placeholder(self, tool=kept.tool, effect_id=effect_id, token=parked.token)
        return kept.placeholder

    def refusal(self, tool: str, effect_id: str, exception: SemanticException, text: str) -> Refusal:
        """Return what is told of a call that is not made. Takes: `text`, its arguments."""
        made = tuple(
            (token, self._kept[subject].told)
            for token, subject in self._tokens.items()
            if token in text and subject in self._kept and self._kept[subject].state == MADE
        )
        return Refusal(tool=tool, effect_id=effect_id, exception=exception, answers=made)

    def ending(self, *, discard: bool) -> jobs.Steps[None]:
        """End the scope: resolve what waits, make what was released, seal.

        Takes: `discard`, whether what waits is dropped unasked.
        Raises: ParkedFailed, where a released call failed; StuckError, where the run could not be closed; LedgerLost.
        """
        if self.is_forked:
            return  # a forked child leaves its parent's run alone
        while True:
            with self._step:
                if self._closing:
                    return
                if self._performer.state.sending and self._lost is None:
                    # Another thread is making what waited, in mid-run: its outcome comes first.
                    quiet = self._quiet = self._quiet or Future()
                else:
                    self._closing = True
                    break
            yield jobs.Wait(future=quiet)
        try:
            with self._step:
                work = self._end(discard=discard) if self._lost is None else ()
            yield from self._working(work)
        finally:
            self._close()
        self._tell_end()

    # inside

    def _working(self, work: tuple[Work, ...]) -> jobs.Steps[None]:
        """Do what a step left to do, and what follows from it: questions are put, and released calls made.

        Holds: where this is broken off, what is left is answered for, so that nobody waits for ever.
        """
        queue: deque[Work] = deque(work)
        broken: BaseException | None = None
        while queue:
            one = queue.popleft()
            match one:
                case Open():
                    said = ev.OracleAnswered(
                        oracle=self._performer.oracle.name, answers=(), fault="the program broke off"
                    )
                    if broken is None:
                        try:
                            said = yield jobs.Ask(oracle=self._performer.oracle, question=one.question)
                        except BaseException as error:  # noqa: BLE001 - raised again when all is answered for
                            broken = error
                    queue.extend(self._answered(one, said))
                case Released():
                    kept = self._kept[one.effect_id]
                    result, broken = yield from self._made(one.effect_id, kept, broken)
                    with self._step:
                        if one.effect_id in self._performer.state.sending[:1]:
                            event = ev.ToolReturned(effect_id=one.effect_id, result=result)
                            queue.extend(self._feed(event))
                            self._sign()
                case Unwanted():
                    result = answers.not_made("whoever made the call was gone")
                    with self._step:
                        queue.extend(self._feed(ev.ToolReturned(effect_id=one.effect_id, result=result)))
        if broken is not None:
            raise broken

    def _made(
        self, effect_id: str, kept: Kept, broken: BaseException | None
    ) -> jobs.Steps[tuple[ToolResult, BaseException | None]]:
        """Make a call that waited. Returns: how it came back, and what broke the program off."""
        if broken is not None:
            result = answers.not_made("the program broke off before it was made")
        elif kept.changed():
            result = answers.not_made("its arguments were changed while it waited")
        elif not sending.begin(self._performer.folder, effect_id, 1):
            result = answers.unknown("it began before, and nobody knows how it ended")
        else:
            try:
                value = yield kept.make
                result = answers.done(value)
                kept.value = answers.handed(value)
            except BaseException as error:  # noqa: BLE001 - kept for whoever asks for the answer; told at the end
                kept.error = error
                result = (
                    answers.failed(error) if isinstance(error, Exception) else answers.unknown("broken off")
                )
                broken = None if isinstance(error, Exception) else error
        kept.state = MADE if result.outcome is Outcome.DONE else FAILED
        kept.told, kept.why = result.text or "", result.detail
        if kept.state == FAILED and kept.error is None:
            kept.error = ParkedFailed(
                f"`{kept.tool}` ({effect_id}) was not called: {kept.why}",
                hint="make the call again, with arguments of its own",
            )
        return result, broken

    def _answered(self, one: Open, said: ev.OracleAnswered) -> tuple[Work, ...]:
        """Take what an oracle said. Returns: what has to be done now."""
        if said.leave_open and not one.asked:
            # Nobody but this program could make the calls later.
            said = replace(said, leave_open=False, fault="left open, and nobody could make the calls later")
        with self._step:
            phase = self._performer.state.phase
            if phase is (Phase.RUNNING if one.asked else Phase.DEFERRED):
                return self._feed(replace(said, asked=one.asked))
            if phase in (Phase.RUNNING, Phase.DEFERRED):
                # It decides nothing any more; that models were asked stays on record.
                for inference in said.inferences:
                    self._feed(ev.ModelAsked(inference=inference))
            return ()

    def _resolving(self, effect_id: str) -> jobs.Steps[Any]:
        kept = self._kept[effect_id]
        if kept.state == WAITING:
            request = NetRequest(
                method="GET", scheme="http", host=INTERNAL_HOST, port=80, path=f"/requests/{effect_id}"
            )
            with self._step:
                self._check_open(kept.tool)
                asking, passage, work = self._put(ev.RequestMade(request=request))
            yield from self._working(work)
            if isinstance(passage, Future):
                passage = yield from self._waited(asking, passage)
            if isinstance(passage, TurnedAway):
                raise Refused(self.refusal(kept.tool, effect_id, passage.exception, ""))
            assert isinstance(passage, Answered)
        if kept.error is not None:
            raise kept.error
        if kept.state == DROPPED:
            raise Refused(self.refusal(kept.tool, effect_id, kept.exception, ""))
        return kept.value

    def _end(self, *, discard: bool) -> tuple[Work, ...]:
        if self._performer.state.phase is not Phase.RUNNING:
            return ()
        self._tell_denied()
        for effect_id in [*self._performer.state.flying]:
            gone = answers.unknown("the scope ended before its answer")
            self._feed(ev.ToolReturned(effect_id=effect_id, result=gone))
        if discard:
            return self._feed(ev.DiscardRequested(requested_at_ns=now_ns()))
        return self._feed(ev.CommandExited(code=0, signal=0, ended_at_ns=now_ns()))

    def _close(self) -> None:
        from interlock.runtime.performer import remove_stage

        with self._step:
            if self._closed:
                return
            self._closed = True
            for kept in self._kept.values():
                if kept.state == WAITING:
                    kept.state = DROPPED
            refusals = {effect_id: why for effect_id, _what, why in self._performer.resolution.refusals}
            for effect_id, kept in self._kept.items():
                kept.exception = refusals.get(effect_id, kept.exception)
            try:
                self._performer.ledger.close()
                if self._performer.folder.sealed:
                    remove_stage(self._performer.folder)
            finally:
                self._run_lock.release()

    def _tell_end(self) -> None:
        if self._lost is not None:
            raise self._lost
        resolution = self._performer.resolution
        if self._performer.state.phase is not Phase.CLOSED:
            raise StuckError(
                f"the run {self.run_id} could not be closed: {resolution.fault or self.outcome}",
                hint=f"see it: interlock show {self.run_id}; end it: interlock discard {self.run_id}",
            )
        failed = [one for one in self._kept.values() if one.state == FAILED]
        if failed:
            first = failed[0]
            more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
            raise ParkedFailed(
                f"`{first.tool}` ({first.placeholder.effect_id}) was released and failed{more}: {first.why}",
                hint=f"see what was made: interlock show {self.run_id}",
            ) from first.error
