"""A run without a sandbox is opened: its folder, its keys and its ledger, with the task and the policy on record."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

from interlock.evidence import LedgerWriter
from interlock.model import events as ev
from interlock.runtime import folders as runs
from interlock.runtime.keys import make_keys
from interlock.runtime.performer import Performer, now_ns, remove_below

if TYPE_CHECKING:
    from interlock.oracle import Oracle
    from interlock.policy import Policy


def open_unconfined(
    *,
    policy: Policy,
    task: str,
    oracle: Oracle,
    oracle_name: str,
    argv: tuple[str, ...],
    degraded: str,
    parent: str = "",
    plan: str = "",
    receipt: tuple[tuple[str, str], ...] = (),
) -> tuple[Performer, runs.RunLock]:
    """Begin a run whose effects come from a lens alone.

    Takes: `oracle_name`, as the ledger records it; `argv`, what stands for a command; `degraded`, what the run's record
    says of what is not seen; `parent`, the folder that the run lies in, that of all runs where none is given;
    `plan`, the signed envelope of the plan that is followed, `""` for none; `receipt`, what the kernel
    enforces where the process confined itself.
    Returns: what performs its commands, and the lock on its folder, for the caller to release.
    Raises: InputError, where the state folder cannot be used, or the plan is one of another task; IntegrityError, where
    the ledger cannot be begun: nothing is left behind then.
    """
    if plan:
        from interlock.runtime.planned_policy import check_task, with_plan

        check_task(plan, task)
        policy = with_plan(policy, plan)
    run_id = runs.new_run_id()
    path, _none = runs.create(run_id, (), parent=parent)
    lock = runs.RunLock(path)
    lock.acquire(run_id)
    try:
        folder = runs.RunFolder(
            path=path,
            run_id=run_id,
            folders=(),
            staging=ev.Staging.COPY,
            standing=ev.Standing.USER,
            xattr_prefix="",
            argv=argv,
            started_at_ns=now_ns(),
        )
        runs.describe(folder)
        key, secret = make_keys(path)
        manifest = {
            "policy_name": policy.name,
            "policy_digest": policy.digest,
            "plan": {"digest": sha256(plan.encode()).hexdigest()} if plan else None,
        }
        ledger = LedgerWriter.create(folder.ledger, run_id=run_id, apm=manifest, key=key, secret=secret)
        performer = Performer(folder=folder, ledger=ledger, oracle=oracle, note=_quiet)
        performer.feed(
            ev.TaskGiven(run_id=run_id, task=task, argv=folder.argv, started_at_ns=folder.started_at_ns)
        )
        performer.feed(
            ev.BoundaryStood(
                roots=(),
                standing=folder.standing,
                staging=folder.staging,
                oracle=oracle_name,
                policy_name=policy.name,
                policy_digest=policy.digest,
                policy_text=policy.text,
                receipt=receipt,
                degraded=(degraded,),
                file_events="none",
                manifest=plan,
            )
        )
        ledger.barrier()
        _watch_stops(performer)
    except BaseException:
        lock.release()
        remove_below(os.path.dirname(path), (os.path.basename(path),))
        raise
    return performer, lock


def _watch_stops(performer: Performer) -> None:
    """Have time and this process's memory looked at before every event, where the plan bounds them."""
    knowledge = performer.state.knowledge
    if knowledge is None or knowledge.stops is None:
        return
    from interlock.runtime.stop_watch import StopWatch, own_memory, watches

    if watches(knowledge.stops.limits):
        watch = StopWatch(knowledge.stops.limits, int(performer.folder.started_at_ns), own_memory)
        performer.due = watch.due


def _quiet(_line: str) -> None:
    pass
