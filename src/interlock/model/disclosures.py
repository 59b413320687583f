"""Disclosures: who tells whom what about whom, and on what terms (KNOX §4.1; contextual integrity)."""

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One flow of information, as five parts.

    Takes: `sender` and `recipient`, a name with its role; `subject`, whom the information is about, by role;
    `information`, its type; `principle`, on what terms it is passed on: legal basis, purpose, consent.
    Holds: every word is the operator's own or ours, none of it the agent's, and none of what was read.
    """

    sender: str
    recipient: str
    subject: str
    information: str
    principle: str

    def __str__(self) -> str:
        return (
            f"{self.sender} would give {self.information} about {self.subject} to {self.recipient}"
            f" ({self.principle})"
        )
