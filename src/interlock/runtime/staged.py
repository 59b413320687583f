"""What a run has staged: listed for the core, shown for a review, merged into the host, and put back.

The performer calls this on the core's word; nothing here decides, and nothing here writes the ledger.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from interlock import policy, staging
from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import Effect, FileChange, FileStamp
from interlock.model.errors import InterlockError, StuckError
from interlock.model.moves import Moved
from interlock.model.places import Place
from interlock.runtime.folders import NET_FOLDER, RunFolder
from interlock.runtime.thrown_away import ThrownAway

if TYPE_CHECKING:
    from interlock.boundary import Sandbox
    from interlock.monitor import State
    from interlock.runtime.git_commits import Branches
    from interlock.runtime.performer import Resolution
    from interlock.runtime.touches import Touches

SNAPSHOT = "snapshot"
BLENDS = "blends"
"""Below the run's folder: a living scope's copy of the staged layers; what is merged in part or with a host's edit."""

_MAY_BE_BRANCH = re.compile(r"(?:^|/)(?:HEAD$|packed-refs$|(?:refs|reftable)(?:/|$))")

BATCH = 256
"""Staged changes an event: large enough that 100,000 files are a few hundred nodes."""


class StagedWork:
    """The staged layers of one run, from their first listing to their merge.

    Takes: `folder`, the run; `resolution`, where faults and counts are told; `note`, called with one line on long work.
    """

    def __init__(self, folder: RunFolder, resolution: Resolution, note: Callable[[str], None]) -> None:
        self.folder = folder
        self.resolution = resolution
        self.journal = folder.at("journal")
        self.sandbox: Sandbox | None = None
        """While the command lives."""
        self.touches: Touches | None = None
        self.forgets: Callable[[Place], bool] = _forgets_nothing
        """Whether a change at a place is thrown away unseen, as the policy has it."""
        self.merge_finished = False
        """Set by recovery: the write-ahead log had ended the merge already."""
        self._snapshot: tuple[staging.StagedRoot, ...] = ()
        self._thrown = ThrownAway()
        self._note = note
        self.roots = tuple(folder.staged_root(item) for item in folder.folders)

    @property
    def scope_roots(self) -> tuple[staging.StagedRoot, ...]:
        """The staged roots of the scope that is being resolved: while the command lives, a snapshot of them."""
        return self._snapshot or self.roots

    def list_changes(self, *, living: bool) -> Iterator[ev.Event]:
        """List what is staged, in batches; of a living command a snapshot of it."""
        if living:
            assert self.sandbox is not None
            self.sandbox.catch_up()
            self.drop_snapshot()
            self._snapshot = staging.take_snapshot(self.roots, self.folder.at(SNAPSHOT), self.sandbox.still)
        baseline = self.touches.baseline() if self.touches is not None else None
        self._thrown = ThrownAway()
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
        branches: Branches | None = None
        for root in self.scope_roots:
            unsaved = staging.Unsaved(root)
            listing = staging.list_changes(
                root, judges_content=_judges_content, baseline=baseline, thrown=self._thrown.take
            )
            for listed in listing:
                if self.forgets(listed.place):
                    continue
                change = listed
                if _MAY_BE_BRANCH.search(listed.place.path):
                    from interlock.runtime.git_commits import Branches

                    branches = branches or Branches()
                    change = branches.marked(root, listed)
                elif listed.place.path.rpartition("/")[2] == "index":
                    from interlock.runtime.git_index_needs import with_needs

                    change = with_needs(root, listed)
                yield replace(change, unsaved=True) if unsaved.is_lost_by(change) else change
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
        if not last:
            return ev.ChangesListed(changes=tuple(batch), last=False)
        self.resolution.thrown_away = self._thrown.count
        return ev.ChangesListed(
            changes=tuple(batch), last=True, thrown_away=self._thrown.count, thrown=tuple(self._thrown.names)
        )

    def diff(self, effect: Effect, moved: Moved | None = None) -> str:
        """Return the effect's text difference for a review. Takes: `moved`, where it is one end of a move."""
        change = effect.change
        if change is None:
            return (effect.request.body_text or "") if effect.request is not None else ""
        return staging.unified_diff(self._root_of(change), change, moved=moved)

    def _root_of(self, change: FileChange) -> staging.StagedRoot:
        (root,) = (item for item in self.scope_roots if item.name == change.place.root)
        return root

    def hunks(self, effect: Effect) -> Sequence[staging.Hunk]:
        """Return what of a text file's change can be released alone."""
        return () if effect.change is None else staging.hunks_of(self._root_of(effect.change), effect.change)

    def merged(self, effect: Effect) -> str:
        """Return what the merge with the host's own edit would change there. Raises: InputError, if it is not clean."""
        assert effect.change is not None
        return staging.merged_diff(
            self._root_of(effect.change), effect.change, base=self._base_of(effect.change)
        )

    def _base_of(self, change: FileChange) -> bytes | None:
        return None if self.touches is None else self.touches.base_of(change.place)

    def prepare(
        self, state: State, effects: tuple[str, ...], blends: tuple[cmd.Blend, ...]
    ) -> ev.CommitFailed | None:
        """Copy the released changes beside their targets, and write the log of the merge."""
        from interlock.runtime import undoing

        wanted = set(effects)
        mixed = {blend.effect_id: blend for blend in blends}
        listed, released, substitutes = [], [], {}
        try:
            for item in state.decided():
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
            self._keep_labels(state, released, {place: one.after for place, one in substitutes.items()})
            staging.prepare(plan, self.journal, keep_bytes=undoing.room_bytes(self.folder))
        except (OSError, InterlockError) as error:
            if staging.recover(self.journal) == "finished":
                # Its log was written before the error, and could not be removed again.
                self.merge_finished = True
                return None
            return ev.CommitFailed(reason=self._why(error), rolled_back=True)
        return None

    def _keep_labels(
        self, state: State, released: Sequence[FileChange], substitutes: dict[Place, FileStamp]
    ) -> None:
        """Have the label store know what is merged before it is. Raises: StuckError, where it cannot."""
        from interlock.runtime import label_store

        lost = label_store.record(self.folder, self.scope_roots, state, released, substitutes)
        if lost:
            self.resolution.warnings.append(f"{lost}; {label_store.NEXT}")

    def _blends_folder(self) -> str:
        path = self.folder.at(BLENDS)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def commit(self, state: State, command: cmd.Commit) -> ev.Event:
        """Merge what the core released, and say how that ended."""
        if command.prepare and not self.merge_finished:
            failed = self.prepare(state, command.released, command.blends)
            if failed is not None:
                return failed
        if not self.merge_finished:
            try:
                if state.living is not None:
                    released = set(command.released)
                    decided = (item for item in state.decided() if item.effect.id in released)
                    staging.shield(
                        self.roots, [item.effect.change for item in decided if item.effect.change is not None]
                    )
                staging.apply(self.journal)
            except (staging.ConflictError, staging.MergeFailedError) as error:
                edited = error.places if isinstance(error, staging.ConflictError) else ()
                self._put_back_by_us(state, command.released, edited)
                return ev.CommitFailed(reason=self._why(error), rolled_back=True)
            except (OSError, InterlockError) as error:
                # Anything else says nothing about where the merge stands: recovery finds out.
                self.resolution.stuck = self._why(error)
                return ev.CommitFailed(reason=self.resolution.stuck, rolled_back=False)
        self.merge_finished = False
        self.resolution.committed += len(command.released)
        remove_below(self.folder.path, (BLENDS,))
        self._rebase(state, command.released)
        return ev.ScopeCommitted(applied=command.released)

    def merge_lock(self) -> AbstractContextManager[None]:
        """Return the lock under which merges into these folders follow each other."""
        from interlock.runtime.merging_lock import workspace_lock

        return workspace_lock([item.lower for item in self.folder.folders], self._note)

    def _rebase(self, state: State, effects: tuple[str, ...]) -> None:
        """What was just merged is the host's own from now on: what stays staged, or comes, is compared with that."""
        stays_open = state.living is not None or state.selection or state.blends
        if self.touches is None or not stays_open:
            return
        wanted = set(effects)
        mixed = {blend.effect_id for blend in state.blends}
        merged: list[FileChange | Place] = []
        for item in state.decided():
            change = item.effect.change
            if change is not None and item.effect.id in wanted:
                merged.append(change.place if item.effect.id in mixed else change)
        self.touches.rebase(merged, time.time_ns())

    def _put_back_by_us(self, state: State, effects: tuple[str, ...], edited: Collection[Place]) -> None:
        """A merge that was taken back moved the host's files away and back: that is no edit of the host's."""
        if self.touches is None:
            return
        wanted = set(effects)
        changes = [one.effect.change for one in state.decided() if one.effect.id in wanted]
        places = {place for one in changes if one for place in (one.place, one.source) if place is not None}
        self.touches.rebase(places - set(edited), time.time_ns())

    def put_back(self, state: State, command: cmd.PutBack) -> ev.Event:
        """Let the living command see the host's files again."""
        if self.sandbox is None or self.sandbox.ended:
            return ev.ViewRestored(left=("the command has ended",))
        wanted = None if command.effects is None else set(command.effects)
        left: list[str] = []
        with self.sandbox.still():
            for root in self.roots:
                places = None
                if wanted is not None:
                    changes = (item.effect.change for item in state.decided() if item.effect.id in wanted)
                    places = [one.place for one in changes if one is not None and one.place.root == root.name]
                    if not places:
                        continue
                back = staging.put_back(root, self.sandbox.view(root.name), places)
                left += [f"{place}: {reason}" for place, reason in back.failed]
        return ev.ViewRestored(left=tuple(left))

    def sync_layers(self) -> None:
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

    def drop_snapshot(self) -> None:
        """Remove the snapshot of a living command's layers, if there is one."""
        self._snapshot = ()
        remove_below(self.folder.path, (SNAPSHOT,))

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


def _judges_content(path: str) -> bool:
    # The table of executable effects is loaded when something is staged, and not at every start.
    return policy.judges_content(path)


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


def _forgets_nothing(_place: Place) -> bool:
    return False
