"""How a run stands, and what a principal can choose: the closed words of the events."""

from enum import Enum


class Standing(Enum):
    """How Interlock stands: as root, or as an ordinary user (weaker events, same confinement)."""

    ROOT = "root"
    USER = "user"


class Staging(Enum):
    """How a root is staged: a kernel overlay, or a full copy where overlays cannot be used."""

    OVERLAY = "overlay"
    COPY = "copy"


class OnConflict(Enum):
    """What is done about a place that the host changed under the agent."""

    ASK = "ask"
    """The oracle is asked: keep the host's version, or take the merge of both."""
    REFUSE = "refuse"
    """Nothing of the scope is committed; it is held."""
    THEIRS = "theirs"
    """The host's version stays; the agent's change there is refused, the rest goes on."""


class StuckChoice(Enum):
    """What the principal chose for a parked request that failed, or of which nobody knows whether it arrived."""

    RETRY = "retry"
    """Send it once more, with the same idempotency key."""
    SKIP = "skip"
    """Leave it as it is, and go on with what follows it."""
    DROP = "drop"
    """Leave it as it is, and refuse what was to follow it."""


class GrantAction(Enum):
    """What the principal does with a grant."""

    REVOKE = "revoke"
    NARROW = "narrow"
    WIDEN = "widen"
