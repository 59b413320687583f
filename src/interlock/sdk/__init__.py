"""The tool lens for programs in Python: functions are guarded where they are called (docs/sdk.md)."""

from interlock.sdk.confining import confine
from interlock.sdk.errors import (
    ArgumentError,
    NoScope,
    NotMadeYet,
    ParkedFailed,
    Refusal,
    Refused,
    Stopped,
    TimedOut,
)
from interlock.sdk.monitor import Monitor
from interlock.sdk.placeholder import Placeholder
from interlock.sdk.scope import Scope

__all__ = [
    "ArgumentError",
    "Monitor",
    "NoScope",
    "NotMadeYet",
    "ParkedFailed",
    "Placeholder",
    "Refusal",
    "Refused",
    "Scope",
    "Stopped",
    "TimedOut",
    "confine",
]
