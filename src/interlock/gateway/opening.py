"""A session's run is opened and ended: its folder, its keys and its ledger, as of any run."""

from __future__ import annotations

import os

from interlock.evidence import LedgerWriter
from interlock.gateway.settings import GatewaySettings
from interlock.model import events as ev
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.runtime import folders as runs
from interlock.runtime.keys import make_keys
from interlock.runtime.performer import Performer, now_ns, remove_below, remove_stage

UNCONFINED = "no sandbox: only the model's traffic is seen"
"""What a run's record says of what else its agent may do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that is open, with the lock on its folder."""

    performer: Performer
    lock: runs.RunLock

    @property
    def run_id(self) -> str:
        """Return the run's id."""
        return self.performer.folder.run_id


def open_run(settings: GatewaySettings, session: str) -> OpenRun:
    """Begin a session's run.

    Raises: InputError, where the state folder cannot be used; IntegrityError, where the ledger cannot be begun.
    """
    run_id = runs.new_run_id()
    path, _none = runs.create(run_id, ())
    lock = runs.RunLock(path)
    lock.acquire(run_id)
    policy = settings.policy
    try:
        folder = runs.RunFolder(
            path=path,
            run_id=run_id,
            folders=(),
            staging=ev.Staging.COPY,
            standing=ev.Standing.USER,
            xattr_prefix="",
            argv=("gateway", session),
            started_at_ns=now_ns(),
        )
        runs.describe(folder)
        key, secret = make_keys(path)
        manifest = {
            "policy_name": policy.name,
            "policy_digest": policy.digest,
            "argv": list(folder.argv),
            "plan": None,
        }
        ledger = LedgerWriter.create(folder.ledger, run_id=run_id, apm=manifest, key=key, secret=secret)
        performer = Performer(folder=folder, ledger=ledger, oracle=settings.oracle, note=_quiet)
        performer.feed(
            ev.TaskGiven(
                run_id=run_id, task=settings.task, argv=folder.argv, started_at_ns=folder.started_at_ns
            )
        )
        performer.feed(
            ev.BoundaryStood(
                roots=(),
                standing=folder.standing,
                staging=folder.staging,
                oracle=settings.oracle_name,
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
        # Nothing passed: leave nothing behind.
        lock.release()
        remove_below(os.path.dirname(path), (os.path.basename(path),))
        raise
    return OpenRun(performer=performer, lock=lock)


def end_run(opened: OpenRun) -> None:
    """End a session's run: resolve what waits, seal. May take long: it asks whoever is asked. Raises: LedgerLost."""
    performer = opened.performer
    try:
        if performer.state.phase is Phase.RUNNING:
            performer.feed(ev.CommandExited(code=0, signal=0, ended_at_ns=now_ns()))
        performer.ledger.close()
        if performer.folder.sealed:
            remove_stage(performer.folder)
    finally:
        opened.lock.release()


def _quiet(_line: str) -> None:
    pass
