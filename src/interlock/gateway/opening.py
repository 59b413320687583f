"""A session's run is opened, without a sandbox, and ended."""

from __future__ import annotations

from interlock.gateway.settings import GatewaySettings
from interlock.model import events as ev
from interlock.model.phases import Phase
from interlock.model.records import dataclass
from interlock.runtime import folders as runs
from interlock.runtime.performer import Performer, now_ns, remove_stage
from interlock.runtime.unconfined import open_unconfined

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
    performer, lock = open_unconfined(
        policy=settings.policy,
        task=settings.task,
        oracle=settings.oracle,
        oracle_name=settings.oracle_name,
        argv=("gateway", session),
        degraded=UNCONFINED,
    )
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
