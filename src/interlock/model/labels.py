"""Labels: integrity x confidentiality, joined at the conservative end.

Source: KAIROS, labels; Denning 1976 (the lattice).
"""

from enum import IntEnum

from interlock.model.records import dataclass


class Integrity(IntEnum):
    """Who may have shaped a value. The join is the minimum."""

    UNTRUSTED = 0
    TRUSTED = 1


class Confidentiality(IntEnum):
    """How far a value may travel. The join is the maximum."""

    PUBLIC = 0
    INTERNAL = 1
    SECRET = 2
    CRITICAL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What is known of a value's origin and sensitivity."""

    integrity: Integrity
    confidentiality: Confidentiality

    def join(self, other: "Label") -> "Label":
        """Return the conservative end of both."""
        return Label(
            integrity=min(self.integrity, other.integrity),
            confidentiality=max(self.confidentiality, other.confidentiality),
        )


CLEAN = Label(integrity=Integrity.TRUSTED, confidentiality=Confidentiality.PUBLIC)
"""The bottom: nothing but the principal's own words has been seen."""
