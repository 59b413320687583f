"""A command that runs, watched to its end: what it reads and writes, who asks, and what earlier runs left there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from interlock import boundary
from interlock.model import events as ev
from interlock.model.errors import BoundaryError
from interlock.model.manifest import StopCondition
from interlock.model.places import Place
from interlock.policy import Policy
from interlock.runtime import network

if TYPE_CHECKING:
    from interlock.boundary.notifying import Denial
    from interlock.runtime.control import Control, Reply
    from interlock.runtime.control_protocol import ControlRequest
    from interlock.runtime.launch import RunRequest
    from interlock.runtime.living import Living
    from interlock.runtime.performer import Performer
    from interlock.runtime.stop_watch import StopWatch


_A_MOMENT_S = 0.05


def watch(
    request: RunRequest, sandbox: boundary.Sandbox, performer: Performer, prepared: network.Prepared
) -> boundary.ExitStatus | None:
    """Let the command run to its end, and the core know what it does meanwhile.

    Returns: how it ended; None where it was stopped, or the sandbox fell: what it did until then is held.
    Raises: LedgerLost, and what a fault of the network's server was.
    """
    from interlock.runtime.performer import LedgerLost
    from interlock.runtime.reads import with_content
    from interlock.runtime.touches import Touches

    touches = performer.touches = Touches(performer.folder, sandbox.not_before_ns)
    keeps = {folder.name: folder.keeps() for folder in performer.folder.folders if folder.globs}

    origins = None
    if request.policy.git_trusted:
        from interlock.runtime.git_origins import GitOrigins

        origins = GitOrigins(performer.folder.folders, request.policy.git_trusted).with_origin

    detected = None
    if request.policy.detects:
        from interlock.runtime.detecting import detector_of

        detected = detector_of(request.policy)

    def observe(activity: ev.ActivityObserved | ev.ActivityLost) -> None:
        touches.observe(activity)  # first of all: what the host has there is looked at as early as can be
        if isinstance(activity, ev.ActivityObserved):
            activity = _of_what_counts(activity, keeps)
            know_labels(performer, request.policy)
            activity = with_content(activity, performer.folder.folders, performer.declares, origins, detected)
        performer.feed(activity)
        # What a killed monitor has not signed is lost to the evidence.
        performer.ledger.sign()

    def refused(denials: tuple[Denial, ...]) -> None:
        for one in denials:
            performer.feed(
                ev.CallDenied(
                    name=one.name, number=one.number, count=one.count, detail=one.detail, advice=one.advice
                )
            )
        performer.ledger.sign()

    if performer.folder.staging is ev.Staging.COPY:
        observe(ev.ActivityLost(reason="a full copy has no file events"))
    servers: list[network.Server] = []

    def serve(doors: boundary.Doors) -> network.Server:
        servers.append(network.Server(prepared=prepared, performer=performer, sandbox=sandbox, doors=doors))
        return servers[0]

    performer.sandbox = sandbox
    performer.on_end = lambda _command: sandbox.stop()
    stop_watch = _stop_watch(performer, sandbox)
    control = _control(performer, sandbox)
    ended = _loading_ahead()
    try:
        controlled = (control.source(),) if control is not None else ()
        if stop_watch is not None:
            controlled = (*controlled, stop_watch.beside(performer))
        status = sandbox.run(observe, serve, controlled, refused)
        if performer.due is not None and (late := performer.due()) is not None:
            performer.feed(late)
        if interrupted_by_hand(performer, status):
            performer.feed(ev.StopReached(condition=StopCondition.EXTERNAL, detail="Ctrl-C"))
        if (stop := _stop_of(performer)) is not None:
            performer.feed(stop)
            return None
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
        # A command that is ended as it starts takes its sandbox with it.
        performer.feed(_stop_of(performer) or ev.Interrupted(trigger="boundary-failed", detail=str(error)))
        return None
    finally:
        ended.set()
        performer.sandbox = performer.due = None
        if stop_watch is not None:
            stop_watch.close()
        if control is not None:
            control.close()
        touches.close()


def _loading_ahead() -> threading.Event:
    """Load the network's code beside a command that lives for a moment. Returns: what ends the wait for it."""
    ended = threading.Event()

    def load() -> None:
        if not ended.wait(_A_MOMENT_S):
            network.import_ahead()

    # A thread has its maker's mask: what is meant for the command comes to the sandbox's own descriptor, never here.
    before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    try:
        threading.Thread(target=load, name="import-ahead", daemon=True).start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return ended


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


def interrupted_by_hand(performer: Performer, status: boundary.ExitStatus) -> bool:
    """Say whether Ctrl-C ended a command that follows a plan: its user's stop, which a plan always has.

    Without a plan a command that is interrupted is resolved as at any end.
    """
    knowledge = performer.state.knowledge
    planned = knowledge is not None and knowledge.manifest is not None
    # A shell says by its status that what it ran was interrupted.
    return planned and (status.signal == signal.SIGINT or status.code == 128 + signal.SIGINT)


def _stop_of(performer: Performer) -> ev.Interrupted | None:
    """Return that the core asked for the command's end, None where it did not."""
    why = performer.ended
    return None if why is None else ev.Interrupted(trigger=f"stop:{why.condition.value}", detail=why.why)


def _stop_watch(performer: Performer, sandbox: boundary.Sandbox) -> StopWatch | None:
    """Return what watches the time and the memory of a run, where its plan bounds them."""
    knowledge = performer.state.knowledge
    if knowledge is None or knowledge.stops is None:
        return None
    from interlock.runtime.stop_watch import StopWatch, memory_below, watches

    limits = knowledge.stops.limits
    if not watches(limits):
        return None
    memory = memory_below(sandbox.first_process)
    watch = StopWatch(limits, int(performer.folder.started_at_ns), memory)
    performer.due = watch.due
    return watch


def know_labels(performer: Performer, policy: Policy) -> None:
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
