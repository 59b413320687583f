"""One staged tree and its merge as a process of its own, tried again and again over the same host."""

import errno
import os
import shutil
from collections.abc import Callable, Iterable

from tests.fakes.failing_calls import Ended, run_failing
from tests.fakes.staged_tree import Snapshot, StagedTree, snapshot

from interlock.model.errors import IntegrityError, StuckError
from interlock.staging import ConflictError, MergeFailedError, apply, plan, prepare, recover

DONE, REFUSED, STUCK, UNSOUND = 0, 10, 11, 12
"""How the process says that its merge ended: done; taken back or never begun; unknown until recovery; damaged."""


class Stand:
    """Takes: `fill`, makes the host; `work`, what the command does to its staged copy."""

    def __init__(self, base: str, fill: Callable[[str], object], work: Callable[[str], object]) -> None:
        self._fill = fill
        self.tree = StagedTree.make(base, "redirect", fill)
        self.tree.edit(lambda top: (work(top), None)[1])
        self.changes = self.tree.changes()
        self.outside = f"{base}/outside"
        self.reset()
        self.before = self.look()
        assert self.merge() == DONE
        self.after = self.look()
        assert self.after != self.before

    def look(self) -> Snapshot:
        return snapshot(self.tree.lower, folder_times=True)

    def reset(self) -> None:
        for path in (self.tree.lower, self.tree.journal, self.outside):
            shutil.rmtree(path, ignore_errors=True)
        os.mkdir(self.outside)
        os.mkdir(self.tree.lower)
        self._fill(self.tree.lower)
        os.utime(self.tree.lower, ns=(10**18, 10**18))

    def prepare(self) -> None:
        prepare(plan([self.tree.root], self.changes, self.changes), self.tree.journal)

    def merge(self) -> int:
        return self.told(self.merge_bare)

    def merge_bare(self) -> None:
        self.prepare()
        apply(self.tree.journal)

    @staticmethod
    def told(run: Callable[[], object]) -> int:
        try:
            run()
        except (ConflictError, MergeFailedError):
            return REFUSED
        except (StuckError, OSError):
            return STUCK  # the runtime takes both so: neither says where the merge stands
        except IntegrityError:
            return UNSOUND
        return DONE

    def count(self, calls: Iterable[str]) -> int:
        self.reset()
        return run_failing(self.merge, calls=calls, at=0).calls

    def failing(self, calls: Iterable[str], at: int, error: int, *, forever: bool = False) -> Ended:
        self.reset()
        return run_failing(self.merge, calls=calls, at=at, error=error, forever=forever)

    def edited(self, calls: Iterable[str], at: int, edit: Callable[[str], object]) -> int:
        """Let the host be edited just before the merge's call number `at`."""
        self.reset()
        return run_failing(self.merge, calls=calls, at=at, meanwhile=lambda: edit(self.tree.lower)).code

    def fault_of(self, ended: Ended) -> str:
        """Say what is wrong with how a merge on a failing disk ended, "" if nothing is."""
        now = self.look()
        said = ended.code
        if said == DONE and now != self.after:
            return "said to be done, and is not"
        if said in (REFUSED, UNSOUND) and now != self.before:
            return "said to be as before, and is not"
        if said not in (DONE, REFUSED, STUCK, UNSOUND):
            return f"ended with {said}"
        try:
            outcome = recover(self.tree.journal)
        except (StuckError, IntegrityError) as error:
            return f"cannot be recovered: {error.message}"
        now = self.look()
        want = self.after if outcome == "finished" else self.before
        if now != want:
            return f"recovered to {outcome}, and is not"
        if said == REFUSED and outcome == "finished":
            return "refused first, and finished then"
        left = [name for name in os.listdir(self.tree.base) if name.startswith(".interlock")]
        return f"left {left}" if left else ""


NAMES = {getattr(errno, name): name for name in ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EACCES")}
