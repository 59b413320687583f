"""The pure core: events in, commands out; guards, scopes and the ledger's nodes. No I/O, no clock."""

from interlock.monitor.codec import event_from_payload, event_payload, is_event
from interlock.monitor.state import Decided, State
from interlock.monitor.step import outcome_of, step
from interlock.monitor.writing import ProtocolError

__all__ = [
    "Decided",
    "ProtocolError",
    "State",
    "event_from_payload",
    "event_payload",
    "is_event",
    "outcome_of",
    "step",
]
