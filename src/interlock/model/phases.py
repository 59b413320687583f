"""The phases of a run and which event may come in each: one table, in the manner of a protocol's."""

from enum import Enum

from interlock.model import events as ev


class Phase(Enum):
    """Where a run stands. Adjectives: a phase says what is true, not what is done."""

    NEW = "new"
    ASKED = "asked"
    """The task is known, the boundary does not stand yet."""
    RUNNING = "running"
    LISTING = "listing"
    """The command is gone; the gate lists what it staged."""
    DEFERRED = "deferred"
    """The oracle is being asked."""
    HELD = "held"
    """The scope is open; a later process resolves it."""
    INTENDED = "intended"
    """The intent is on its way to the disk."""
    COMMITTING = "committing"
    SENDING = "sending"
    """The files are merged; the parked requests leave, one after the other."""
    DISCARDING = "discarding"
    STUCK = "stuck"
    """A commit began and is neither done nor undone. Not a failure: a merge waits for recovery, a parked request that
    did not succeed (`State.stuck_on`) for the principal's choice."""
    CLOSED = "closed"


ALLOWED: dict[Phase, frozenset[type]] = {
    Phase.NEW: frozenset({ev.TaskGiven}),
    Phase.ASKED: frozenset({ev.BoundaryStood, ev.Interrupted, ev.Faulted, ev.Resumed, ev.DiscardRequested}),
    Phase.RUNNING: frozenset(
        {
            ev.ActivityObserved,
            ev.ActivityLost,
            ev.LabelsKnown,
            ev.RequestMade,
            ev.MessageMade,
            ev.ToolCalled,
            ev.ToolReturned,
            ev.ToolsListed,
            ev.ExchangeRecorded,
            ev.ActionsAnnounced,
            ev.ResponseReceived,
            ev.TrafficRefused,
            ev.CallDenied,
            ev.TurnTaken,
            ev.StopReached,
            ev.ModelAsked,
            ev.OracleAnswered,
            ev.CommandExited,
            ev.Interrupted,
            ev.Faulted,
            ev.Resumed,
            ev.DiscardRequested,
            ev.ResolutionAsked,
            ev.GrantChanged,
        }
    ),
    Phase.LISTING: frozenset(
        {ev.ChangesListed, ev.Interrupted, ev.Faulted, ev.Resumed, ev.DiscardRequested},
    ),
    Phase.DEFERRED: frozenset(
        {ev.ModelAsked, ev.OracleAnswered, ev.Interrupted, ev.Faulted, ev.Resumed, ev.DiscardRequested}
    ),
    Phase.HELD: frozenset({ev.Resumed, ev.DiscardRequested, ev.CommandExited}),
    Phase.INTENDED: frozenset({ev.IntentRecorded, ev.CommitFailed, ev.Faulted, ev.DiscardRequested}),
    Phase.COMMITTING: frozenset({ev.ScopeCommitted, ev.CommitFailed, ev.Faulted, ev.DiscardRequested}),
    Phase.SENDING: frozenset(
        {ev.ResponseReceived, ev.ToolReturned, ev.Resumed, ev.DiscardRequested, ev.Faulted}
    ),
    Phase.DISCARDING: frozenset({ev.ScopeDiscarded, ev.Faulted, ev.DiscardRequested}),
    Phase.STUCK: frozenset({ev.ScopeCommitted, ev.CommitFailed, ev.StuckSettled, ev.DiscardRequested}),
    Phase.CLOSED: frozenset(),
}
"""The events that may come in each phase; any other is a fault of the runtime or a forged ledger.

`CommandExited` in HELD comes after a fault that held the run while its command lived. `Resumed` in a phase of work is
what recovery says after a crash in that phase. After a crash in `INTENDED` or `COMMITTING` the write-ahead log decides
first, so `ScopeCommitted` or `CommitFailed` comes; after one in `SENDING` the request that was under way is `unknown`,
and sent again only by the principal's choice. `DiscardRequested` in `INTENDED`, `COMMITTING` and, of a merge, `STUCK`
is the principal giving that merge up."""

LIVING: dict[Phase, frozenset[type]] = {
    Phase.LISTING: frozenset({ev.ChangesListed}),
    Phase.DEFERRED: frozenset({ev.ModelAsked, ev.OracleAnswered}),
    Phase.INTENDED: frozenset({ev.IntentRecorded, ev.CommitFailed}),
    Phase.COMMITTING: frozenset({ev.ScopeCommitted, ev.CommitFailed}),
    Phase.SENDING: frozenset(),
    Phase.DISCARDING: frozenset({ev.ViewRestored}),
    Phase.STUCK: frozenset(),
}
"""The events that may come besides those of RUNNING while a scope of the living command is resolved, by where that
stands."""
