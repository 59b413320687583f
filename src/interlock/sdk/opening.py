"""A scope is opened: a run's folder, its keys and its ledger, with the task and the policy on record."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from interlock.evidence import LedgerWriter
from interlock.model import events as ev
from interlock.model.errors import InputError
from interlock.runtime import folders as runs
from interlock.runtime.keys import make_keys
from interlock.runtime.performer import Performer, now_ns, remove_below
from interlock.sdk.scope import Scope

if TYPE_CHECKING:
    from interlock.oracle import Oracle
    from interlock.policy import Policy

UNCONFINED = "no sandbox: only guarded functions are seen"
"""What a run's record says of what else its program may do."""


def open_scope(
    *,
    policy: Policy,
    task: str,
    oracle: Oracle,
    oracle_name: str,
    name: str,
    choice: ev.StuckChoice,
    parent: str = "",
) -> Scope:
    """Begin a run of guarded functions.

    Takes: `oracle_name`, as the ledger records it; `name`, the program's, in place of a command; `choice`, how it goes
    on after a call that waited and failed; `parent`, the folder that the run lies in, that of all runs where none is
    given.
    Raises: InputError, where the state folder cannot be used; IntegrityError, where the ledger cannot be begun.
    """
    try:
        task.encode()
    except UnicodeEncodeError:
        raise InputError(
            "the task holds half a character (a lone surrogate)",
            hint="decode it with errors='replace' first",
        ) from None
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
            argv=(name,),
            started_at_ns=now_ns(),
        )
        runs.describe(folder)
        key, secret = make_keys(path)
        manifest = {
            "policy_name": policy.name,
            "policy_digest": policy.digest,
            "argv": [name],
            "plan": None,
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
                receipt=(),
                degraded=(UNCONFINED,),
                file_events="none",
            )
        )
        ledger.barrier()
    except BaseException:
        # No function was called: leave nothing behind.
        lock.release()
        remove_below(os.path.dirname(path), (os.path.basename(path),))
        raise
    return Scope(performer, lock, choice)


def _quiet(_line: str) -> None:
    pass
