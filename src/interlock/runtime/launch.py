"""A run from its first word to its last: stage, confine, watch, decide, resolve, seal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from interlock import boundary
from interlock.model import events as ev
from interlock.model.places import HOME, path_text
from interlock.model.records import changed, dataclass
from interlock.policy import Policy
from interlock.runtime import folders as runs
from interlock.runtime import network
from interlock.runtime.signing import signing_plan
from interlock.runtime.staged_roots import lowers_of
from interlock.runtime.standing import stand

if TYPE_CHECKING:
    from interlock.oracle import Oracle
    from interlock.runtime.performer import Performer


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What the principal asked for.

    Takes: `workspace`, absolute host folder; `working_directory`, inside it; `task`, the principal's words or
    "" for the command line; `oracle_name` as the ledger records it; `staging`, None to choose by what the
    file system can do; `added_folders`, absolute, staged beside those of the policy; `stood`, called with the run's id
    just before the command starts: what it raises ends the run before anything ran; `plan`, the signed envelope of the
    plan that it follows, `""` for none.
    """

    argv: tuple[str, ...]
    workspace: str
    working_directory: str
    task: str
    policy: Policy
    oracle_name: str
    oracle: Oracle
    environment: Mapping[str, str]
    staging: ev.Staging | None = None
    allow_degraded: bool = False
    on_conflict: ev.OnConflict = ev.OnConflict.ASK
    added_folders: tuple[str, ...] = ()
    stood: Callable[[str], None] | None = None
    plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What a run came to.

    Takes: `exit_code` and `exit_signal` of the command; `performer`, with the state and the resolution.
    """

    run_id: str
    path: str
    exit_code: int
    exit_signal: int
    degraded: tuple[str, ...]
    performer: Performer
    interruption: str = ""


def run(request: RunRequest, note: Callable[[str], None]) -> RunOutcome:
    """Run a command behind the boundary and resolve what it did.

    Raises: InputError, BoundaryError: nothing ran and nothing is left behind; LedgerLost: the run was ended,
    its staged files are kept and nothing was released.
    """
    run_id = runs.new_run_id()
    if request.plan:
        from interlock.runtime.planned_policy import check_task, with_plan

        check_task(request.plan, request.task or _words(request.argv))
        request = changed(request, policy=with_plan(request.policy, request.plan))
    policy = request.policy
    lowers = lowers_of(policy, request.environment, request.workspace, request.added_folders, note)
    if runs.merging():
        from interlock.runtime.recovering import recover_beside

        recover_beside([lower for name, lower in lowers if name != HOME], note)
    path, folders = runs.create(run_id, lowers, policy.home)
    lock = runs.RunLock(path)
    lock.acquire(run_id)
    sandbox: boundary.Sandbox | None = None
    try:
        try:
            signing, advice = signing_plan(request.policy, request.environment, request.workspace)
            if advice:
                note(advice)
            prepared = network.prepare(request.policy, request.environment, path, signing)
            sandbox, staging_mode, folders = stand(request, path, folders, prepared, note)
            folder = runs.RunFolder(
                path=path,
                run_id=run_id,
                folders=folders,
                staging=staging_mode,
                standing=sandbox.standing,
                xattr_prefix=sandbox.xattr_prefix,
                argv=tuple(path_text(os.fsencode(word)) for word in request.argv),
                started_at_ns=str(time.time_ns()),
            )
            performer = _open_ledger(request, note, sandbox, folder)
            if request.stood is not None:
                request.stood(run_id)
        except BaseException:
            # Nothing of the command ran: leave nothing behind.
            if sandbox is not None:
                sandbox.close()
            _forget(path)
            raise
        from interlock.runtime.watching import watch

        status = watch(request, sandbox, performer, prepared)
        sandbox.close()
        _conclude(performer, status)
        return RunOutcome(
            run_id=run_id,
            path=path,
            exit_code=status.code if status is not None else -1,
            exit_signal=status.signal if status is not None else 0,
            degraded=sandbox.degraded,
            performer=performer,
            interruption=performer.state.interruption,
        )
    finally:
        if sandbox is not None:
            sandbox.close()
        lock.release()


def _open_ledger(
    request: RunRequest, note: Callable[[str], None], sandbox: boundary.Sandbox, folder: runs.RunFolder
) -> Performer:
    """Describe the run, and record task, policy and confinement durably before the command starts."""
    from interlock.evidence import LedgerWriter
    from interlock.runtime.keys import make_keys
    from interlock.runtime.performer import Performer
    from interlock.runtime.watching import know_labels

    runs.describe(folder)
    key, secret = make_keys(folder.path)
    ledger = LedgerWriter.create(
        folder.ledger, run_id=folder.run_id, apm=_manifest(request), key=key, secret=secret
    )
    performer = Performer(folder=folder, ledger=ledger, oracle=request.oracle, note=note)
    performer.feed(
        ev.TaskGiven(
            run_id=folder.run_id,
            task=request.task or _words(request.argv),
            argv=folder.argv,
            started_at_ns=folder.started_at_ns,
        )
    )
    performer.feed(_boundary_stood(request, folder, sandbox))
    know_labels(performer, request.policy)
    ledger.barrier()
    return performer


def _words(argv: tuple[str, ...]) -> str:
    """The command line stands for the task where none was given: the principal typed it."""
    return " ".join(path_text(os.fsencode(word)) for word in argv)


def _manifest(request: RunRequest) -> Mapping[str, object]:
    return {
        "policy_name": request.policy.name,
        "policy_digest": request.policy.digest,
        "plan": {"digest": sha256(request.plan.encode()).hexdigest()} if request.plan else None,
    }


def _boundary_stood(
    request: RunRequest, folder: runs.RunFolder, sandbox: boundary.Sandbox
) -> ev.BoundaryStood:
    return ev.BoundaryStood(
        roots=tuple(item.root() for item in folder.folders),
        standing=sandbox.standing,
        staging=folder.staging,
        oracle=request.oracle_name,
        policy_name=request.policy.name,
        policy_digest=request.policy.digest,
        policy_text=request.policy.text,
        receipt=sandbox.receipt,
        degraded=sandbox.degraded,
        file_events=sandbox.events,
        on_conflict=request.on_conflict,
        manifest=request.plan,
    )


def _conclude(performer: Performer, status: boundary.ExitStatus | None) -> None:
    from interlock.runtime.performer import now_ns, remove_stage

    if status is not None:
        performer.feed(ev.CommandExited(code=status.code, signal=status.signal, ended_at_ns=now_ns()))
    performer.ledger.close()
    if performer.folder.sealed:
        remove_stage(performer.folder)


def _forget(path: str) -> None:
    from interlock.runtime.performer import remove_below

    remove_below(os.path.dirname(path), (os.path.basename(path),))
