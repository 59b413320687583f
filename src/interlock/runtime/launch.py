"""A run from its first word to its last: stage, confine, watch, decide, resolve, seal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from interlock import boundary
from interlock.model import events as ev
from interlock.model.errors import BoundaryError, InputError
from interlock.model.places import HOME, Place, path_text
from interlock.model.records import dataclass
from interlock.policy import Policy
from interlock.runtime import folders as runs
from interlock.runtime import network
from interlock.runtime.environment import child_environment
from interlock.runtime.signing import signing_plan
from interlock.runtime.staged_roots import lowers_of

if TYPE_CHECKING:
    from interlock.oracle import Oracle
    from interlock.runtime.control import Control, Reply
    from interlock.runtime.control_protocol import ControlRequest
    from interlock.runtime.living import Living
    from interlock.runtime.performer import Performer


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What the principal asked for.

    Takes: `workspace`, absolute host folder; `working_directory`, inside it; `task`, the principal's words or
    "" for the command line; `oracle_name` as the ledger records it; `staging`, None to choose by what the
    file system can do; `added_folders`, absolute, staged beside those of the policy.
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
            sandbox, staging_mode, folders = _stand(request, path, folders, prepared, note)
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
        except BaseException:
            # Nothing of the command ran: leave nothing behind.
            if sandbox is not None:
                sandbox.close()
            _forget(path)
            raise
        status = _watch(request, sandbox, performer, prepared)
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


def _import_the_rest() -> None:
    """Load what is needed once the sandbox stands, while it is being set up on the other processor."""
    import interlock.runtime.control
    import interlock.runtime.keys
    import interlock.runtime.performer
    import interlock.runtime.reads
    import interlock.runtime.touches
    import interlock.staging.layers
    import interlock.staging.listing
    from interlock.runtime.label_store import is_there

    if is_there():
        import interlock.runtime.label_rows  # noqa: F401


def _open_ledger(
    request: RunRequest, note: Callable[[str], None], sandbox: boundary.Sandbox, folder: runs.RunFolder
) -> Performer:
    """Describe the run, and record task, policy and confinement durably before the command starts."""
    from interlock.evidence import LedgerWriter
    from interlock.runtime.keys import make_keys
    from interlock.runtime.performer import Performer

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
    _know_labels(performer, request.policy)
    ledger.barrier()
    return performer


def _know_labels(performer: Performer, policy: Policy) -> None:
    """Have the core know what earlier runs, and those beside this one, left in the places that it stages."""
    from interlock.runtime import label_store

    stamp = label_store.stamp()
    if stamp == performer.labels_of:
        return
    performer.labels_of = stamp
    labels = label_store.labels_for(performer.folder.folders, policy)
    if labels is not None and labels != performer.labels:
        performer.labels = labels
        performer.feed(labels)
        if labels.lost:
            performer.resolution.warnings.append(
                f"{labels.lost}: every file counts as untrusted and as sensitive as the policy knows; "
                + label_store.NEXT
            )


def _words(argv: tuple[str, ...]) -> str:
    """The command line stands for the task where none was given: the principal typed it."""
    return " ".join(path_text(os.fsencode(word)) for word in argv)


def _manifest(request: RunRequest) -> Mapping[str, object]:
    return {
        "policy_name": request.policy.name,
        "policy_digest": request.policy.digest,
        "argv": [path_text(os.fsencode(word)) for word in request.argv],
        "plan": None,
    }


def _stand(
    request: RunRequest,
    path: str,
    folders: tuple[runs.StagedFolder, ...],
    prepared: network.Prepared,
    note: Callable[[str], None],
) -> tuple[boundary.Sandbox, ev.Staging, tuple[runs.StagedFolder, ...]]:
    """Set the sandbox up over overlays, or over full copies where the file system can be no layer.

    Returns: also the folders that are staged: HOME is never copied, what is written there is thrown away then.
    """
    if request.staging is not ev.Staging.COPY:
        plan = _plan(request, path, folders, prepared, copied=False)
        try:
            return boundary.start(plan, _import_the_rest), ev.Staging.OVERLAY, folders
        except boundary.OverlayError as error:
            if request.staging is ev.Staging.OVERLAY:
                raise
            note(f"{error.message}: working on a full copy, without file events")
    if any(folder.name == HOME for folder in folders):
        folders = tuple(folder for folder in folders if folder.name != HOME)
        note("HOME is not copied: what the command changes in it is thrown away")
    _copy(folders)
    plan = _plan(request, path, folders, prepared, copied=True)
    return boundary.start(plan, _import_the_rest), ev.Staging.COPY, folders


def _copy(folders: tuple[runs.StagedFolder, ...]) -> None:
    from interlock import staging

    for folder in folders:
        try:
            left_out = staging.copy_tree(folder.lower, folder.upper)
        except OSError as error:
            raise InputError(
                f"`{folder.lower}` cannot be copied: {error.strerror}",
                hint="free space for it, or choose another state folder: INTERLOCK_STATE=DIR interlock run …",
            ) from error
        if left_out:
            raise InputError(
                f"`{folder.lower}` holds what cannot be copied: {', '.join(left_out[:3])}",
                hint="make it readable, or move it out of the workspace",
            )


def _plan(
    request: RunRequest,
    path: str,
    folders: tuple[runs.StagedFolder, ...],
    prepared: network.Prepared,
    *,
    copied: bool,
) -> boundary.SandboxPlan:
    sandbox_rule = request.policy.sandbox
    return boundary.SandboxPlan(
        argv=request.argv,
        environment=child_environment(
            request.policy, request.environment, request.working_directory, prepared.environment
        ),
        working_directory=request.working_directory,
        home=request.environment.get("HOME", "/"),
        overlays=tuple(
            boundary.Overlay(
                name=folder.name,
                target=folder.lower,
                lower=folder.lower,
                upper=folder.upper,
                work=folder.work,
                observed=not copied,
                copied=copied,
                sparse=folder.name == HOME,
            )
            for folder in folders
        ),
        hidden=(*sandbox_rule.hide, runs.state_folder()),
        exposed=sandbox_rule.expose,
        limits=_limits(request.policy),
        nested=sandbox_rule.nested,
        allow_degraded=request.allow_degraded,
        scratch=os.path.join(path, "scratch"),
        net=prepared.plan,
        placed=prepared.placed,
    )


def _limits(policy: Policy) -> boundary.Limits:
    """A limit of 0 in the policy says nothing: the boundary's own default, or the host's, stands."""
    asked, default = policy.limits, boundary.Limits()
    return boundary.Limits(
        processes=asked.processes or default.processes,
        file_size_bytes=asked.file_size_bytes or default.file_size_bytes,
        open_files=asked.open_files or default.open_files,
        memory_bytes=asked.memory_bytes or default.memory_bytes,
        tmp_size_bytes=asked.tmp_size_bytes or default.tmp_size_bytes,
    )


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
    )


def _watch(
    request: RunRequest, sandbox: boundary.Sandbox, performer: Performer, prepared: network.Prepared
) -> boundary.ExitStatus | None:
    from interlock.runtime.performer import LedgerLost
    from interlock.runtime.reads import with_content
    from interlock.runtime.touches import Touches

    touches = performer.touches = Touches(performer.folder, sandbox.not_before_ns)
    keeps = {folder.name: folder.keeps() for folder in performer.folder.folders if folder.globs}

    origins = None
    if request.policy.git_trusted:
        from interlock.runtime.git_origins import GitOrigins

        origins = GitOrigins(performer.folder.folders, request.policy.git_trusted).with_origin

    def observe(activity: ev.ActivityObserved | ev.ActivityLost) -> None:
        touches.observe(activity)  # first of all: what the host has there is looked at as early as can be
        if isinstance(activity, ev.ActivityObserved):
            activity = _of_what_counts(activity, keeps)
            _know_labels(performer, request.policy)
            activity = with_content(activity, performer.folder.folders, performer.declares, origins)
        performer.feed(activity)
        # What a killed monitor has not signed is lost to the evidence.
        performer.ledger.sign()

    if performer.folder.staging is ev.Staging.COPY:
        observe(ev.ActivityLost(reason="a full copy has no file events"))
    servers: list[network.Server] = []

    def serve(doors: boundary.Doors) -> network.Server:
        servers.append(network.Server(prepared=prepared, performer=performer, sandbox=sandbox, doors=doors))
        return servers[0]

    performer.sandbox = sandbox
    control = _control(performer, sandbox)
    try:
        status = sandbox.run(observe, serve, (control.source(),) if control is not None else ())
        if not performer.stopped:
            return status
        # What it did until then is kept, and waits for the principal.
        performer.feed(ev.Interrupted(trigger="stopped", detail="interlock stop"))
        return None
    except LedgerLost:
        sandbox.close()
        raise
    except (BoundaryError, OSError) as error:
        sandbox.close()
        if servers and servers[0].fault is not None:
            raise servers[0].fault from error
        performer.feed(ev.Interrupted(trigger="boundary-failed", detail=str(error)))
        return None
    finally:
        performer.sandbox = None
        if control is not None:
            control.close()
        touches.close()


def _of_what_counts(
    activity: ev.ActivityObserved, keeps: Mapping[str, Callable[[str], object] | None]
) -> ev.ActivityObserved:
    """Leave out what happened in the part of HOME that is thrown away: what lies there says nothing of the work."""

    def counts(place: Place) -> bool:
        keep = keeps.get(place.root)
        return keep is None or bool(keep(place.path))

    if not keeps:
        return activity
    return replace(
        activity,
        reads=tuple(one for one in activity.reads if counts(one.place)),
        writes=tuple(one for one in activity.writes if counts(one.place)),
    )


def _control(performer: Performer, sandbox: boundary.Sandbox) -> Control | None:
    """Let other terminals reach the run while its command lives; a run that cannot be reached loses nothing else."""
    from interlock.runtime.control import Control

    served: list[Living] = []

    def stop() -> None:
        performer.stopped = True
        sandbox.stop()

    def serve(request: ControlRequest, reply: Reply) -> None:
        if not served:
            from interlock.runtime.living import Living

            served.append(Living(performer, stop))
        served[0].serve(request, reply)

    try:
        return Control(performer.folder.path, performer.folder.run_id, serve)
    except OSError:
        return None


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
