"""The merge of a plan into the host, all or nothing from any crash.

`prepare` copies what is new into stage folders and makes the log durable; `apply` takes the visible steps;
`recover` ends whatever a crash left: with a log the merge is finished, or taken back where it cannot be;
without one nothing was visible and what was staged is dropped.
"""

import os
from dataclasses import replace

from interlock.model.effects import FileStamp, FileType
from interlock.model.errors import IntegrityError, StuckError
from interlock.model.places import Place, path_text
from interlock.staging.copying import copy_file, copy_symlink, set_attributes
from interlock.staging.errors import ConflictError, MergeFailedError
from interlock.staging.journal import (
    FINISHED,
    ROLLED_BACK,
    ROLLING_BACK,
    Journal,
    locked,
    stage_path,
)
from interlock.staging.merge_plan import MergePlan, StageItem
from interlock.staging.stamps import host_digest, read_xattrs, stamp_of, type_of
from interlock.staging.stepping import MOVED, NEW, OLD, Steps
from interlock.staging.syscalls import open_beneath, syncfs
from interlock.staging.wal import Put, Wal, WalRoot

NOTHING = "none"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def prepare(plan: MergePlan, journal: str) -> None:
    """Copy what is released beside its target and make the intent durable; nothing is visible yet.

    Takes: `journal`, the run's own folder for this, made where it is missing.
    Raises: MergeFailedError, where the copy cannot be made (what was staged is gone again); IntegrityError,
    where the staged copy is not what was listed; StuckError, where an earlier merge is not ended.
    """
    try:
        with locked(journal, create=True) as held:
            if held is None:
                raise AssertionError("the folder was just made")
            if held.read_wal() is not None and held.read_outcome() not in (FINISHED, ROLLED_BACK):
                raise StuckError("an earlier merge of this run is not ended", hint="run recover first")
            held.clean()
            try:
                _stage(plan, held)
            except (OSError, IntegrityError, ConflictError):
                held.clean()
                held.write_outcome(ROLLED_BACK)
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
            if outcome in (FINISHED, ROLLED_BACK):
                held.clean()
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


def forget(journal: str) -> None:
    """Remove the outcome of an ended merge, once it is written down elsewhere.

    Raises: StuckError, where the merge is not ended.
    """
    with locked(journal, create=False) as held:
        if held is None:
            return
        if held.read_wal() is not None and held.read_outcome() not in (FINISHED, ROLLED_BACK):
            raise StuckError("the merge is not ended", hint="run recover first")
        held.clean()
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
    held.write_outcome(FINISHED)
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
    held.clean()


def _stage(plan: MergePlan, held: Journal) -> None:
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
        for root in used:
            items = [item for item in plan.items if item.root == root]
            _fill(plan, root, items, (stages[root], lower_fds[root]), inos)
        held.write_wal(_wal_of(plan, used, stages, lower_fds, inos))
    finally:
        for fd in lower_fds.values():
            os.close(fd)


def _fill(
    plan: MergePlan,
    root: int,
    items: list[StageItem],
    where: tuple[str, int],
    inos: dict[tuple[int, str], int],
) -> None:
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
        new_fd = os.open(NEW, _FOLDER, dir_fd=stage_fd)
        upper_fd = os.open(plan.roots[root].upper, _FOLDER | os.O_NOFOLLOW)
        try:
            filler = _Filler(plan.roots[root].name, new_fd, upper_fd, lower_fd)
            for item in items:
                filler.add(item)
            filler.finish_folders()
            for item in items:
                if "/" not in item.path:
                    status = os.stat(item.path, dir_fd=new_fd, follow_symlinks=False)
                    inos[(root, item.path)] = status.st_ino
        finally:
            os.close(upper_fd)
            os.close(new_fd)
        syncfs(stage_fd)
    finally:
        os.close(stage_fd)


class _Filler:
    """Copies the items of one root into its stage folder, checked against what was listed."""

    def __init__(self, name: str, new_fd: int, upper_fd: int, lower_fd: int) -> None:
        self._name = name
        self._new, self._upper, self._lower = new_fd, upper_fd, lower_fd
        self._links: dict[int, str] = {}
        self._folders: list[StageItem] = []

    def add(self, item: StageItem) -> None:
        if item.host_link is not None and self._link_host(item, item.host_link):
            return
        folder, _, name = item.upper_path.rpartition("/")
        fd = open_beneath(self._upper, folder, os.O_PATH | os.O_DIRECTORY)
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            kind = type_of(status)
            found = stamp_of(status)
            if kind is FileType.SYMLINK:
                target = copy_symlink(fd, name, status, self._new, item.path)
                found = stamp_of(status, link_target=target)
            elif kind is FileType.DIRECTORY:
                os.mkdir(item.path, 0o700, dir_fd=self._new)
                self._folders.append(item)
            elif kind is FileType.FILE:
                earlier = self._links.get(status.st_ino)
                if earlier is not None:
                    os.link(
                        earlier, item.path, src_dir_fd=self._new, dst_dir_fd=self._new, follow_symlinks=False
                    )
                    return
                digest = copy_file(fd, name, status, self._new, item.path, lend_mode=True)
                found = stamp_of(status, digest=digest)
                if status.st_nlink > 1:
                    self._links[status.st_ino] = item.path
            self._match(item, found)
        finally:
            os.close(fd)

    def finish_folders(self) -> None:
        """Give the staged folders their attributes, now that nothing more goes into them."""
        for item in reversed(self._folders):
            source = open_beneath(self._upper, item.upper_path, os.O_PATH | os.O_DIRECTORY)
            try:
                target = os.open(item.path, _FOLDER | os.O_NOFOLLOW, dir_fd=self._new)
                try:
                    set_attributes(
                        target, os.fstat(source), read_xattrs(f"/proc/self/fd/{source}", lend_mode=True)
                    )
                finally:
                    os.close(target)
            finally:
                os.close(source)

    def _link_host(self, item: StageItem, host_path: str) -> bool:
        """Make the item another name of a host file; False where that cannot be, and a copy must do."""
        folder, _, name = host_path.rpartition("/")
        try:
            fd = open_beneath(self._lower, folder, os.O_PATH | os.O_DIRECTORY)
        except OSError:
            return False
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if type_of(status) is not FileType.FILE or host_digest(fd, name, status) != item.after.digest:
                return False
            os.link(name, item.path, src_dir_fd=fd, dst_dir_fd=self._new, follow_symlinks=False)
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def _match(self, item: StageItem, found: FileStamp) -> None:
        if found != item.after:
            place = Place(root=self._name, path=path_text(os.fsencode(item.upper_path)))
            raise IntegrityError(
                f"the staged copy of `{place}` is not what was listed",
                hint="something still writes to it; list the changes again",
            )


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
