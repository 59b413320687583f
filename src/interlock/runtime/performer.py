"""The runtime's loop: performs what the core commands and feeds back what came of it.

One `match` performs commands, in order, and stops at the first that fails; the failure becomes an event, so
that the core decides what it means and the ledger holds it. The only broad `except` of Interlock is here, and
it ends in refusal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from typing import TYPE_CHECKING, assert_never

from interlock import policy, staging
from interlock.evidence import LedgerWriter
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import Effect, FileChange
from interlock.model.errors import InterlockError, StuckError
from interlock.model.nodes import Node
from interlock.model.phases import Phase
from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.model.requests import NetResponse, Outcome
from interlock.model.verdicts import SemanticException
from interlock.monitor import State, step
from interlock.oracle import Oracle, Question, ask
from interlock.runtime.folders import NET_FOLDER, RunFolder
from interlock.runtime.keys import forget_keys

if TYPE_CHECKING:
    from interlock.boundary import Sandbox
    from interlock.runtime.touches import Touches
    from interlock.runtime.traffic import Traffic

SNAPSHOT = "snapshot"
BLENDS = "blends"
"""Below the run's folder: a living scope's copy of the staged layers; what is merged in part or with a host's edit."""

BATCH = 256
"""Staged changes an event: large enough that 100,000 files are a few hundred nodes."""


class LedgerLost(InterlockError):
    """The ledger cannot be written any more, so nothing can be released any more."""

    code = "ledger-lost"
    exit_status = 4


@dataclass(slots=True)
class Resolution:
    """What a run came to, for the person who started it."""

    refusals: list[tuple[str, str, SemanticException]] = field(default_factory=list)
    turned_away: list[tuple[str, str, SemanticException]] = field(default_factory=list)
    """Requests that were refused while the command ran, and so were told to it at once."""
    committed: int = 0
    skipped: tuple[str, ...] = ()
    held: bool = False
    asked: bool = False
    """Whether an oracle had anything to answer."""
    stuck: str = ""
    fault: str = ""
    fault_status: int = 0
    """The exit status that the fault's class has (docs/errors.md)."""
    sent: list[tuple[str, str, NetResponse]] = field(default_factory=list)
    """Per parked request that left: effect id, URL, what came back."""


class Performer:
    """Holds a run's state and performs commands until the core has no more.

    Takes: `folder`, the run; `ledger`, open for appending; `oracle`, who answers what is deferred; `note`,
    called with one line on long work (progress).
    """

    def __init__(
        self,
        *,
        folder: RunFolder,
        ledger: LedgerWriter,
        oracle: Oracle,
        note: Callable[[str], None],
        state: State | None = None,
    ) -> None:
        self.folder = folder
        self.ledger = ledger
        self.oracle = oracle
        self.state = state if state is not None else State()
        self.resolution = Resolution()
        self.journal = folder.at("journal")
        self.traffic: Traffic | None = None
        """The run's network, while the command runs and has used it."""
        self.sandbox: Sandbox | None = None
        """While the command lives."""
        self.stopped = False
        """Whether another terminal asked for the command's end."""
        self.touches: Touches | None = None
        self.merge_finished = False
        """Set by recovery: the write-ahead log had ended the merge already."""
        self.scope_oracle: Oracle | None = None
        """Who resolves a scope while the command lives; None where the question goes to another terminal."""
        self.on_question: Callable[[cmd.Ask], None] = _unheard
        self.on_scope_end: Callable[[cmd.EndScope], None] = _unheard
        self._snapshot: tuple[staging.StagedRoot, ...] = ()
        self._note = note
        self.roots = tuple(
            staging.StagedRoot(
                name=item.name,
                lower=item.lower,
                upper=item.upper,
                mode=folder.staging,
                xattr_prefix=folder.xattr_prefix,
            )
            for item in folder.folders
        )

    def feed(self, event: ev.Event) -> None:
        """Take an event and perform all that follows from it.

        Raises: LedgerLost if the ledger cannot be written; nothing was released that it does not hold.
        """
        self.state, commands = step(self.state, event)
        for command in commands:
            try:
                for answer in self._perform(command):
                    self.feed(answer)
            except LedgerLost:
                raise
            except Exception as error:  # noqa: BLE001 - the one place: any fault ends in refusal
                self._fault(command, error)
                return

    def again(self, command: cmd.Command) -> None:
        """Perform a command that a crash cut off. Takes: one that may be performed twice."""
        for answer in self._perform(command):
            self.feed(answer)

    def append_pending(self, nodes: Sequence[Node]) -> None:
        """Append derived nodes that a crash kept from the ledger (`replay` gives them)."""
        for node in nodes:
            self._append(node)

    def _fault(self, command: cmd.Command, error: Exception) -> None:
        name = type(command).__name__
        reason = error.message if isinstance(error, InterlockError) else f"{type(error).__name__}: {error}"
        self.resolution.fault = f"{name}: {reason}"
        self.resolution.fault_status = error.exit_status if isinstance(error, InterlockError) else 70
        if self.state.phase in (Phase.CLOSED, Phase.HELD, Phase.STUCK):
            return
        self.feed(ev.Faulted(where=name, reason=reason))

    def _perform(self, command: cmd.Command) -> Iterator[ev.Event]:
        match command:
            case cmd.Append():
                self._append(command.node)
            case cmd.ListChanges():
                yield from self._list_changes(living=command.living)
            case cmd.Ask() if command.now:
                self.sign()
                yield self._ask_now(command)
            case cmd.Ask() if self.state.living is not None and self.scope_oracle is None:
                self._barrier()
                self.on_question(command)
            case cmd.Ask():
                self._barrier()
                self.resolution.asked = True
                yield self._ask(command)
            case cmd.LetPass():
                self._secure(durable=command.durable)
                if self.traffic is not None:
                    self.traffic.let_pass(command.effect_id)
            case cmd.TurnAway():
                told = (command.effect_id, command.object, command.exception)
                running = self.state.phase is Phase.RUNNING
                (self.resolution.turned_away if running else self.resolution.refusals).append(told)
                if self.traffic is not None:
                    self.traffic.turn_away(command.effect_id, command.exception)
            case cmd.Park():
                self._barrier()
                if self.traffic is not None:
                    self.traffic.park(command.effect_id)
            case cmd.AnswerInside():
                if self.traffic is not None:
                    self.traffic.answer_inside(command.effect_id, command.subject)
            case cmd.Send():
                self._barrier()
                yield from self._send(command.effect_id, command.attempt)
            case cmd.RecordIntent():
                yield self._record_intent(command)
            case cmd.Commit():
                with self._merge_lock():
                    yield self._commit(command)
            case cmd.PutBack():
                yield self._put_back(command)
            case cmd.EndScope():
                self._end_scope()
                self.on_scope_end(command)
            case cmd.Discard():
                self._barrier()  # a half-emptied stage must never be taken for staged work
                self._forget_merge()
                for root in self.roots:
                    staging.discard(root)
                remove_below(self.folder.path, (NET_FOLDER,))
                yield ev.ScopeDiscarded()
            case cmd.Notify():
                self.resolution.refusals.extend(command.refusals)
            case cmd.Hold():
                self._sync_layers()
                self._barrier()
                self._forget_merge()
                self._held(command)
            case cmd.Seal():
                self.ledger.seal(command.outcome)
                forget_keys(self.folder.path)
            case _:
                assert_never(command)

    def _append(self, node: Node) -> None:
        try:
            self.ledger.append(node)
        except (OSError, InterlockError) as error:
            raise LedgerLost(
                f"the ledger cannot be written: {error}",
                hint=f"free space below {self.folder.path}, then: interlock apply {self.folder.run_id}",
            ) from error

    def sign(self) -> None:
        """Hand all to the kernel, signed: it survives our fall, not yet a loss of power. Raises: LedgerLost."""
        self._secure(durable=False)

    def _secure(self, *, durable: bool) -> None:
        try:
            if durable:
                self.ledger.harden()
            else:
                self.ledger.sign()
        except (OSError, InterlockError) as error:
            raise LedgerLost(
                f"the ledger cannot be written: {error}",
                hint=f"free space below {self.folder.path}, then: interlock apply {self.folder.run_id}",
            ) from error

    def _barrier(self) -> None:
        try:
            self.ledger.barrier()
        except (OSError, InterlockError) as error:
            raise LedgerLost(
                f"the ledger cannot be made durable: {error}",
                hint=f"free space below {self.folder.path}, then: interlock apply {self.folder.run_id}",
            ) from error

    def _forget_merge(self) -> None:
        """Drop the merge's outcome, once the ledger's word of it is durable."""
        if self.state.phase is Phase.STUCK or not os.path.exists(self.journal):
            return
        self._barrier()
        staging.forget(self.journal)

    @property
    def scope_roots(self) -> tuple[staging.StagedRoot, ...]:
        """The staged roots of the scope that is being resolved: while the command lives, a snapshot of them."""
        return self._snapshot or self.roots

    def _list_changes(self, *, living: bool) -> Iterator[ev.Event]:
        if living:
            assert self.sandbox is not None
            self.sandbox.catch_up()
            self._drop_snapshot()
            self._snapshot = staging.take_snapshot(self.roots, self.folder.at(SNAPSHOT), self.sandbox.still)
        baseline = self.touches.baseline() if self.touches is not None else None
        found = self._changes(baseline)
        if living:
            found = self._with_late(list(found))
        batch: list[FileChange] = []
        for change in found:
            if len(batch) == BATCH:
                yield self._listed(batch, last=False)
                batch = []
            batch.append(change)
        yield self._listed(batch, last=True)

    def _changes(self, baseline: staging.Baseline | None) -> Iterator[FileChange]:
        seen = 0
        for root in self.scope_roots:
            for change in staging.list_changes(root, judges_content=_judges_content, baseline=baseline):
                yield change
                seen += 1
                if seen % 10_000 == 0:
                    self._note(f"{seen:,} changes listed")

    def _with_late(self, changes: list[FileChange]) -> Iterator[FileChange]:
        """Mark what cannot be merged while the overlay is mounted."""
        late = staging.waits_for_the_end(self.scope_roots, changes)
        return (
            replace(change, waits=True) if index in late else change for index, change in enumerate(changes)
        )

    def _listed(self, batch: list[FileChange], *, last: bool) -> ev.ChangesListed:
        return ev.ChangesListed(changes=tuple(batch), last=last)

    def _ask(self, command: cmd.Ask) -> ev.Event:
        oracle = self.oracle if self.scope_oracle is None else self.scope_oracle
        return ask(oracle, self.question(command))

    def question(self, command: cmd.Ask) -> Question:
        """Return what an oracle is asked about the scope."""
        return Question(
            task=self.state.task,
            deferred=command.deferred,
            diff=self.diff,
            hunks=self._hunks,
            merged=self._merged,
        )

    def _ask_now(self, command: cmd.Ask) -> ev.Event:
        """Ask while the command runs; a person needs its terminal, so it is stopped meanwhile."""
        asked = tuple(effect.id for effect, _verdict in command.deferred)
        question = Question(task=self.state.task, deferred=command.deferred, diff=self.diff, now=True)
        with self.traffic.held_still() if self.traffic is not None else nullcontext():
            return replace(ask(self.oracle, question), asked=self.state.resolving or asked)

    def _send(self, effect_id: str, attempt: int) -> Iterator[ev.Event]:
        """Send a parked request: each attempt at most once in the life of its run."""
        from interlock.runtime import sending

        (item,) = (one for one in self.state.parked if one.effect.id == effect_id)
        if self.traffic is not None:
            self.traffic.send(effect_id)
            return
        self._note(f"sending {item.effect.operation.removeprefix('net.')} {item.effect.object}")
        response = sending.send(self.folder, self.state, effect_id, attempt)
        yield self.sent(effect_id, response)

    def sent(self, effect_id: str, response: NetResponse) -> ev.ResponseReceived:
        """Note how a parked request came back, and return the event."""
        (item,) = (one for one in self.state.parked if one.effect.id == effect_id)
        self.resolution.sent.append((effect_id, item.effect.object, response))
        if response.outcome is Outcome.DONE:
            self.resolution.committed += 1
        else:
            self.resolution.fault = f"{item.effect.object}: {response.outcome.value}: {response.detail}"
            self.resolution.fault_status = StuckError.exit_status
        return ev.ResponseReceived(effect_id=effect_id, response=response)

    def diff(self, effect: Effect) -> str:
        """Return the effect's text difference for a review."""
        change = effect.change
        if change is None:
            return (effect.request.body_text or "") if effect.request is not None else ""
        return staging.unified_diff(self._root_of(change), change)

    def _root_of(self, change: FileChange) -> staging.StagedRoot:
        (root,) = (item for item in self.scope_roots if item.name == change.place.root)
        return root

    def _hunks(self, effect: Effect) -> Sequence[staging.Hunk]:
        return () if effect.change is None else staging.hunks_of(self._root_of(effect.change), effect.change)

    def _merged(self, effect: Effect) -> str:
        """Return what the merge with the host's own edit would change there. Raises: InputError, if it is not clean."""
        assert effect.change is not None
        return staging.merged_diff(
            self._root_of(effect.change), effect.change, base=self._base_of(effect.change)
        )

    def _base_of(self, change: FileChange) -> bytes | None:
        return None if self.touches is None else self.touches.base_of(change.place)

    def _record_intent(self, command: cmd.RecordIntent) -> ev.Event:
        """Make the intent durable: in the ledger first, then the bytes and the write-ahead log."""
        self._barrier()
        if command.prepare:
            with self._merge_lock():
                failed = self._prepare(command.released, command.blends)
            if failed is not None:
                return failed
        # Else the requests leave first: the ledger holds the intent of all.
        return ev.IntentRecorded(released=command.released)

    def _prepare(self, effects: tuple[str, ...], blends: tuple[cmd.Blend, ...]) -> ev.CommitFailed | None:
        """Copy the released changes beside their targets, and write the log of the merge."""
        from interlock.runtime import undoing

        wanted = set(effects)
        mixed = {blend.effect_id: blend for blend in blends}
        listed, released, substitutes = [], [], {}
        try:
            for item in self.state.decided():
                change = item.effect.change
                if change is None:
                    continue
                listed.append(change)
                if item.effect.id not in wanted:
                    continue
                released.append(change)
                if (blend := mixed.get(item.effect.id)) is not None:
                    substitutes[change.place] = staging.blend(
                        self._root_of(change),
                        change,
                        hunks=blend.hunks,
                        merge=blend.merge,
                        base=self._base_of(change) if blend.merge else None,
                        into=self._blends_folder(),
                    )
            if not released:
                return None
            plan = staging.plan(self.scope_roots, listed, released, substitutes)
            self.resolution.skipped = tuple(str(place) for place in plan.skipped)
            staging.prepare(plan, self.journal, keep_bytes=undoing.room_bytes(self.folder))
        except (OSError, InterlockError) as error:
            if staging.recover(self.journal) == "finished":
                # Its log was written before the error, and could not be removed again.
                self.merge_finished = True
                return None
            return ev.CommitFailed(reason=self._why(error), rolled_back=True)
        return None

    def _blends_folder(self) -> str:
        path = self.folder.at(BLENDS)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def _commit(self, command: cmd.Commit) -> ev.Event:
        if command.prepare and not self.merge_finished:
            failed = self._prepare(command.released, command.blends)
            if failed is not None:
                return failed
        if not self.merge_finished:
            try:
                if self.state.living is not None:
                    released = set(command.released)
                    decided = (item for item in self.state.decided() if item.effect.id in released)
                    staging.shield(
                        self.roots, [item.effect.change for item in decided if item.effect.change is not None]
                    )
                staging.apply(self.journal)
            except (staging.ConflictError, staging.MergeFailedError) as error:
                edited = error.places if isinstance(error, staging.ConflictError) else ()
                self._put_back_by_us(command.released, edited)
                return ev.CommitFailed(reason=self._why(error), rolled_back=True)
            except (OSError, InterlockError) as error:
                # Anything else says nothing about where the merge stands: recovery finds out.
                self.resolution.stuck = self._why(error)
                return ev.CommitFailed(reason=self.resolution.stuck, rolled_back=False)
        self.merge_finished = False
        self.resolution.committed += len(command.released)
        remove_below(self.folder.path, (BLENDS,))
        self._rebase(command.released)
        return ev.ScopeCommitted(applied=command.released)

    def _merge_lock(self) -> AbstractContextManager[None]:
        from interlock.runtime.merging_lock import workspace_lock

        return workspace_lock([item.lower for item in self.folder.folders], self._note)

    def _rebase(self, effects: tuple[str, ...]) -> None:
        """What was just merged is the host's own from now on: what stays staged, or comes, is compared with that."""
        stays_open = self.state.living is not None or self.state.selection or self.state.blends
        if self.touches is None or not stays_open:
            return
        wanted = set(effects)
        mixed = {blend.effect_id for blend in self.state.blends}
        merged: list[FileChange | Place] = []
        for item in self.state.decided():
            change = item.effect.change
            if change is not None and item.effect.id in wanted:
                merged.append(change.place if item.effect.id in mixed else change)
        self.touches.rebase(merged, time.time_ns())

    def _put_back_by_us(self, effects: tuple[str, ...], edited: Collection[Place]) -> None:
        """A merge that was taken back moved the host's files away and back: that is no edit of the host's."""
        if self.touches is None:
            return
        wanted = set(effects)
        changes = [one.effect.change for one in self.state.decided() if one.effect.id in wanted]
        places = {place for one in changes if one for place in (one.place, one.source) if place is not None}
        self.touches.rebase(places - set(edited), time.time_ns())

    def _put_back(self, command: cmd.PutBack) -> ev.Event:
        """Let the living command see the host's files again."""
        if self.sandbox is None or self.sandbox.ended:
            return ev.ViewRestored(left=("the command has ended",))
        wanted = None if command.effects is None else set(command.effects)
        left: list[str] = []
        with self.sandbox.still():
            for root in self.roots:
                places = None
                if wanted is not None:
                    changes = (
                        item.effect.change for item in self.state.decided() if item.effect.id in wanted
                    )
                    places = [one.place for one in changes if one is not None and one.place.root == root.name]
                    if not places:
                        continue
                back = staging.put_back(root, self.sandbox.view(root.name), places)
                left += [f"{place}: {reason}" for place, reason in back.failed]
        return ev.ViewRestored(left=tuple(left))

    def _end_scope(self) -> None:
        """A living scope is over: its snapshot goes, and nothing of its merge need be remembered."""
        self._forget_merge()
        self._drop_snapshot()

    def _sync_layers(self) -> None:
        """Have the disk keep what is staged: the overlay itself never waits for it."""
        devices: set[int] = set()
        for root in self.roots:
            try:
                fd = os.open(root.upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                device = os.fstat(fd).st_dev
                if device not in devices:
                    devices.add(device)
                    staging.syncfs(fd)
            finally:
                os.close(fd)

    def _drop_snapshot(self) -> None:
        self._snapshot = ()
        remove_below(self.folder.path, (SNAPSHOT,))

    def _held(self, command: cmd.Hold) -> None:
        self.resolution.held = True
        if command.conflicts:
            shown = ", ".join(f"`{place}`" for place in command.conflicts[:5])
            more = f" and {len(command.conflicts) - 5} more" if len(command.conflicts) > 5 else ""
            self.resolution.fault = (
                f"the host changed them too, so nothing was merged: {shown}{more}; choose: "
                f"interlock apply {self.folder.run_id} --review (or --on-conflict theirs)"
            )
            self.resolution.fault_status = staging.ConflictError.exit_status
        if command.stuck:
            self.resolution.held = False
            self.resolution.stuck = (
                f"{self.resolution.fault}; choose: interlock recover {self.folder.run_id} "
                f"--retry {command.stuck}, --skip {command.stuck} or --drop {command.stuck}"
            )

    def _why(self, error: Exception) -> str:
        reason = (
            error.message
            if isinstance(error, InterlockError)
            else (error.strerror or str(error) if isinstance(error, OSError) else str(error))
        )
        self.resolution.fault = reason
        # A system's error in a merge is a merge that failed.
        self.resolution.fault_status = error.exit_status if isinstance(error, InterlockError) else 5
        return reason


def _unheard(_command: object) -> None:
    pass


def _judges_content(path: str) -> bool:
    # The table of executable effects is loaded when something is staged, and not at every start.
    return policy.judges_content(path)


def now_ns() -> str:
    """Return UTC now, nanoseconds since 1970, as the ledger writes it."""
    return str(time.time_ns())


def remove_stage(folder: RunFolder) -> None:
    """Remove what only an open run needs: stage, scratch and journal. The ledger stays."""
    if not folder.sealed:
        raise StuckError("a run that is not sealed keeps its staged files")
    remove_below(
        folder.path, ("stage", "scratch", "journal", NET_FOLDER, SNAPSHOT, BLENDS, "base", "touches")
    )


def remove_below(path: str, names: Sequence[str]) -> None:
    """Remove folders of a run, following no link.

    Raises: StuckError, naming the folder that resists.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for name in names:
            staging.remove_tree(descriptor, name)
    except OSError as error:
        raise StuckError(
            f"`{path}` could not be cleaned: {error.strerror}", hint=f"remove by hand: rm -rf {path}/stage"
        ) from error
    finally:
        os.close(descriptor)
