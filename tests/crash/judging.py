"""What must hold of a run that a crash cut off, once it was recovered: before or after, never between."""

import os
import re
from collections import Counter
from collections.abc import Sequence

from tests.crash.far_side import Arrival
from tests.crash.held_run import POSTS, HeldRun
from tests.fakes.staged_tree import Snapshot

_WAITING = re.compile(rb"--skip (\w+)")
_ENDED = frozenset({"ledger", "keys", "run.json", "lock", "undo"})
_NOT_COMMITTED = {"discarded", "refused", "held"}
_WENT = {"sent", "unknown"}


def recover(run: HeldRun, verbs: Sequence[str], after: Snapshot) -> list[str]:
    """Recover as a user would, by these verbs one after the other. Returns: what is wrong after any of them.

    A request whose outcome is unknown waits for a choice then: it is left, and the run goes on.
    """
    faults: list[str] = []
    for verb in verbs:
        said = run.verb(verb, run.run_id)
        # 2: it is closed already; 5: a request's outcome is unknown, and that is said; 6: something stayed refused
        if said.status not in (0, 2, 5, 6) or b"Traceback" in said.err:
            faults.append(f"{verb} ended with {said.status}: {said.err.decode(errors='replace')[-800:]}")
        faults += [f"after {verb}: {fault}" for fault in between(run, after)]
    for path in POSTS:
        # a merge that is stuck says no such thing, and stays a fault
        waiting = _WAITING.search(run.verb("apply", run.run_id).err) if run.phase() == "stuck" else None
        if waiting is not None:
            run.verb("recover", run.run_id, "--skip", waiting[1].decode())
            faults += [f"after {path} was skipped: {fault}" for fault in between(run, after)]
    return faults


def between(run: HeldRun, after: Snapshot) -> list[str]:
    """Return how the workspace is neither as before nor as after."""
    seen = run.look()
    if seen in (run.before, after):
        return []
    odd = sorted(
        path
        for path in {*seen, *run.before, *after}
        if seen.get(path) not in (run.before.get(path), after.get(path))
    )
    like_before = sorted(path for path in {*seen, *after} if seen.get(path) != after.get(path))
    return [f"the workspace is between: like neither {odd[:5]}, not as after {like_before[:8]}"]


def judge(run: HeldRun, after: Snapshot, arrivals: Sequence[Arrival]) -> list[str]:
    """Return what is wrong with a run that was recovered to its end.

    Takes: `arrivals`, all that may have left a machine with this past.
    """
    faults = between(run, after)
    fates = run.fates()
    files, committed = fates.pop("files"), run.look() == after
    if committed and files != ["committed"]:
        faults.append(f"the workspace is as after, and the run says {files}")
    if not committed and (len(files) > 1 or not set(files) <= _NOT_COMMITTED):
        faults.append(f"the workspace is as before, and the run says {files}")
    came = Counter(arrival.path for arrival in arrivals)
    for path in POSTS:
        told = fates.get(path, [])
        if came[path] > 1:
            faults.append(f"{path} was sent {came[path]} times")
        if len(told) > 1 or (came[path] and not set(told) & _WENT):
            faults.append(f"{path} arrived {came[path]} times, and the run says {told}")
        if "sent" in told and not came[path]:
            faults.append(f"{path} never arrived, and the run says {told}")
    verdict = run.verb("verify", run.run_id, "--replay", "--json")
    if verdict.status != 0 or verdict.document()["verdict"] != "complete":
        faults.append(f"the ledger: {verdict.out.decode()[:300]} {verdict.err.decode()[-300:]}")
    return faults + _left(run)


def _left(run: HeldRun) -> list[str]:
    """Return what the run left lying about, after what is there to clean has cleaned."""
    run.verb("runs", "--clean")
    run.verb("runs", "--clean")
    folder = f"{run.top}/state/runs/{run.run_id}"
    found = sorted(set(os.listdir(folder)) - _ENDED) if os.path.isdir(folder) else []
    found += [name for name in os.listdir(os.path.dirname(run.workspace)) if name.startswith(".interlock")]
    return [f"left behind: {found}"] if found else []
