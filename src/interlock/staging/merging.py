"""The merge of a plan into the host, all or nothing from any crash.

`prepare` copies what is new into stage folders and makes the log durable; `apply` takes the visible steps;
`recover` ends whatever a crash left: with a log the merge is finished, or taken back where it cannot be;
without one nothing was visible and what was staged is dropped. What a finished merge replaced is kept for an
undo (`keeping`), once its outcome is durable.
"""

import os
from contextlib import ExitStack, suppress
from dataclasses import replace

from interlock.model.effects import FileType
from interlock.model.errors import IntegrityError, StuckError
from interlock.model.places import path_text
from interlock.staging.errors import ConflictError, MergeFailedError
from interlock.staging.filling import Filler
from interlock.staging.journal import (
    FINISHED,
    GIVEN_UP,
    ROLLED_BACK,
    ROLLING_BACK,
    Journal,
    locked,
    stage_path,
)
from interlock.staging.keeping import KEEP_BYTES, Made, keep, made_at, want_kept
from interlock.staging.lending import lending
from interlock.staging.merge_plan import MergePlan, StageItem
from interlock.staging.open_stage import MOVED, NEW, OLD
from interlock.staging.roots import open_index
from interlock.staging.stamps import read_xattrs
from interlock.staging.stepping import Steps
from interlock.staging.syscalls import syncfs
from interlock.staging.wal import Put, Wal, WalRoot

NOTHING = "none"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def prepare(plan: MergePlan, journal: str, *, keep_bytes: int = KEEP_BYTES) -> None:
    """Copy what is released beside its target and make the intent durable; nothing is visible yet.

    Takes: `journal`, the run's own folder for this, made where it is missing; `keep_bytes`, how much of what
    is replaced or removed may be kept for an undo in the folder `undo` beside the journal, 0 for nothing.
    Raises: MergeFailedError, where the copy cannot be made (what was staged is gone again); IntegrityError,
    where the staged copy is not what was listed; StuckError, where an earlier merge is not ended.
    """
    try:
        with locked(journal, create=True) as held:
            if held is None:
                raise AssertionError("the folder was just made")
            if held.read_wal() is not None and held.read_outcome() not in (FINISHED, ROLLED_BACK):
                raise StuckError("an earlier merge of this run is not ended", hint="run recover first")
            _conclude(held)
            try:
                _stage(plan, held, keep_bytes)
            except (OSError, IntegrityError, ConflictError):
                _forsake(held)
                raise
    except OSError as error:
        raise MergeFailedError(
            f"the merge could not be prepared: {_said(error)}",
            hint="nothing was changed; make room or mend the folder, then apply the run again",
        ) from error


def apply(journal: str) -> None:
    """Take the visible steps of a prepared merge, to the end or back to the start.

    Raises: ConflictError or MergeFailedError, where the host is exactly as before; StuckError, where it
    could be neither finished nor taken back yet, and `recover` is to be tried again.
    """
    with locked(journal, create=False) as held:
        wal = None if held is None else held.read_wal()
        outcome = "" if held is None else held.read_outcome()
        if held is None or wal is None or outcome:
            raise StuckError("no merge is prepared here", hint="prepare it first, or run recover")
        _finish(held, wal)


def recover(journal: str) -> str:
    """End what a crash left of a merge. Ask as often as you like.

    Returns: "finished", the host has everything that was released; "rolled-back", it is as before;
    "none", no merge was begun (or `forget` was called since).
    Raises: StuckError, where neither can be reached yet; IntegrityError where the log is damaged.
    """
    try:
        with locked(journal, create=False) as held:
            if held is None:
                return NOTHING
            outcome = held.read_outcome()
            if outcome == GIVEN_UP:
                raise StuckError(
                    "the merge was given up, and its run is not closed yet",
                    hint="close it: interlock recover RUN --give-up",
                )
            if outcome in (FINISHED, ROLLED_BACK):
                with suppress(OSError):  # garbage alone; `forget` tries again, and says so
                    _conclude(held)
                return outcome
            wal = held.read_wal()
            if wal is None:
                if held.stages() is None:
                    held.clean()
                    return NOTHING
                held.write_outcome(ROLLED_BACK)
                held.clean()
                return ROLLED_BACK
            if outcome == ROLLING_BACK:
                _take_back(held, wal)
                return ROLLED_BACK
            try:
                _finish(held, wal)
            except (ConflictError, MergeFailedError):
                return ROLLED_BACK
            return FINISHED
    except OSError as error:
        raise StuckError(
            f"the merge can be neither finished nor taken back yet: {_said(error)}",
            hint="mend what the message names, then run recover again",
        ) from error


def give_up(journal: str) -> None:
    """Leave a merge as it is for good: it is neither finished nor taken back, whatever its log says.

    Raises: StuckError, where another process works on it; OSError.
    """
    with locked(journal, create=False) as held:
        if held is not None:
            held.write_outcome(GIVEN_UP)


def forget(journal: str) -> None:
    """Remove the outcome of an ended merge, once it is written down elsewhere; set one aside that was given up.

    Raises: StuckError, where the merge is not ended.
    """
    with locked(journal, create=False) as held:
        if held is None:
            return
        if held.given_up():
            held.set_aside()
            return
        if held.read_wal() is not None and held.read_outcome() not in (FINISHED, ROLLED_BACK):
            raise StuckError("the merge is not ended", hint="run recover first")
        _conclude(held)
        held.clear()


def _finish(held: Journal, wal: Wal) -> None:
    try:
        steps = Steps(wal)
        try:
            steps.advance()
        finally:
            steps.close()
    except ConflictError:
        _take_back(held, wal)
        raise
    except OSError as error:
        _take_back(held, wal)
        raise MergeFailedError(
            f"the merge failed and was taken back: {_said(error)}",
            hint="mend what the message names, then apply the run again",
        ) from error
    try:
        held.write_outcome(FINISHED)
    except OSError as error:
        raise StuckError(
            f"everything is merged, but that could not be written down: {_said(error)}",
            hint="mend what the message names, then run recover",
        ) from error
    # The merge is done: what fails from here on leaves garbage, which the next recovery removes.
    with suppress(OSError):
        _conclude(held)


def _forsake(held: Journal) -> None:
    """Drop a merge that could not be prepared, so that no recovery takes it up."""
    try:
        held.drop_wal()
    except OSError as error:
        raise StuckError(
            f"the merge could not be prepared, and its log could not be removed: {_said(error)}",
            hint="mend what the message names, then run recover: it may finish the merge",
        ) from error
    with suppress(OSError):  # what stays is garbage, and the next recovery removes it
        held.clean()
        held.write_outcome(ROLLED_BACK)


def _conclude(held: Journal) -> None:
    """Keep what an ended merge replaced, where that is wanted, and remove the rest. May be repeated."""
    if held.read_outcome() == FINISHED:
        keep(held)
    held.clean()


def _take_back(held: Journal, wal: Wal) -> None:
    try:
        # durable first: once a step is taken back, no recovery may go forward again
        held.write_outcome(ROLLING_BACK)
        steps = Steps(wal)
        try:
            steps.retreat()
        finally:
            steps.close()
        held.write_outcome(ROLLED_BACK)
    except OSError as error:
        raise StuckError(
            f"the merge failed and could not be taken back yet: {_said(error)}",
            hint="mend what the message names, then run recover",
        ) from error
    with suppress(OSError):
        held.clean()


def _stage(plan: MergePlan, held: Journal, keep_bytes: int) -> None:
    """Fill the stage folders, make them durable, then write the log."""
    used = sorted(
        {put.root for put in plan.puts}
        | {take.root for take in plan.takes}
        | {adjust.root for adjust in plan.adjusts}
    )
    numbers = {root: number for number, root in enumerate(used)}
    lower_fds: dict[int, int] = {}
    try:
        for root in used:
            lower_fds[root] = os.open(plan.roots[root].lower, _FOLDER)
        stages = {
            root: stage_path(held, plan.roots[root].lower, lower_fds[root], numbers[root]) for root in used
        }
        held.begin([stages[root] for root in used])
        inos: dict[tuple[int, str], int] = {}
        made: list[Made] = []
        for root in used:
            items = [item for item in plan.items if item.root == root]
            for one in _fill(plan, root, items, (stages[root], lower_fds[root])):
                inos[(root, one.path)] = one.ino
                if keep_bytes > 0:
                    made.append(replace(one, root=numbers[root]))
        if keep_bytes > 0:
            want_kept(held, keep_bytes, made)
        held.write_wal(_wal_of(plan, used, stages, lower_fds, inos))
    finally:
        for fd in lower_fds.values():
            os.close(fd)


def _fill(
    plan: MergePlan,
    root: int,
    items: list[StageItem],
    where: tuple[str, int],
) -> list[Made]:
    """Fill the stage folder of one root, and return what is in it now."""
    stage, lower_fd = where
    parent = os.open(os.path.dirname(stage), _FOLDER)
    try:
        before = os.fstat(parent)
        os.mkdir(os.path.basename(stage), 0o700, dir_fd=parent)
        stage_fd = os.open(os.path.basename(stage), _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
        os.utime(parent, ns=(before.st_atime_ns, before.st_mtime_ns))
    finally:
        os.close(parent)
    try:
        if "system.posix_acl_default" in read_xattrs(stage_fd):
            # else every staged file would inherit it
            os.removexattr(stage_fd, "system.posix_acl_default")
        for name in (NEW, OLD, MOVED):
            os.mkdir(name, 0o700, dir_fd=stage_fd)
        staged = plan.roots[root]
        with ExitStack() as stack:
            new_fd = os.open(NEW, _FOLDER, dir_fd=stage_fd)
            stack.callback(os.close, new_fd)
            loans = stack.enter_context(lending(staged.upper))
            loans.lend_top()
            upper_fd = os.open(staged.upper, _FOLDER | os.O_NOFOLLOW)
            stack.callback(os.close, upper_fd)
            index_fd = open_index(staged)
            if index_fd is not None:
                stack.callback(os.close, index_fd)
            filler = Filler(staged.name, (new_fd, upper_fd, lower_fd), loans, index_fd=index_fd)
            stack.callback(filler.close)
            for item in items:
                filler.add(item)
            # each is read before the folder above it may close
            plain = [item for item in items if item.after.type is not FileType.DIRECTORY]
            made = {item.path: made_at(new_fd, root, item.path, item.after) for item in plain}
            for item in filler.finish_folders():
                made[item.path] = made_at(new_fd, root, item.path, item.after)
        syncfs(stage_fd)
    finally:
        os.close(stage_fd)
    return [made[item.path] for item in items]


def _wal_of(
    plan: MergePlan,
    used: list[int],
    stages: dict[int, str],
    lower_fds: dict[int, int],
    inos: dict[tuple[int, str], int],
) -> Wal:
    numbers = {root: number for number, root in enumerate(used)}
    roots: list[WalRoot] = []
    for root in used:
        status = os.fstat(lower_fds[root])
        roots.append(
            WalRoot(
                name=plan.roots[root].name,
                lower=os.path.realpath(plan.roots[root].lower),
                device=status.st_dev,
                ino=status.st_ino,
                stage=stages[root],
            )
        )
    return Wal(
        roots=tuple(roots),
        takes=tuple(replace(take, root=numbers[take.root]) for take in plan.takes),
        puts=tuple(
            Put(
                root=numbers[put.root],
                path=put.path,
                slot=put.slot,
                ino=put.ino if put.is_move else inos[(put.root, put.slot)],
                is_move=put.is_move,
                replaces=put.replaces,
            )
            for put in plan.puts
        ),
        adjusts=tuple(replace(adjust, root=numbers[adjust.root]) for adjust in plan.adjusts),
        restores=tuple(replace(adjust, root=numbers[adjust.root]) for adjust in plan.restores),
    )


def _said(error: OSError) -> str:
    name = error.filename if isinstance(error.filename, str | bytes) else ""
    shown = path_text(os.fsencode(name))
    return f"{error.strerror} (`{shown}`)" if shown else str(error.strerror)
