"""What a policy declares of the model's traffic: which calls are audited, which mismatches are asked about."""

from enum import Enum

from interlock.model.records import dataclass


class Audit(Enum):
    """Which tool calls in a model's answer are decided before the agent sees them."""

    NONE = "none"
    DECLARED = "declared"
    """Calls of tools that the key `tools` declares; all, where a rule or the operator's role may forbid calls."""
    ALL = "all"


class Mismatch(Enum):
    """What is done about an effect that the model's calls do not tell of."""

    SHOW = "show"
    DEFER = "defer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """What is read from the model's traffic, and what follows from it.

    Takes: `audit`, None where the policy does not say: then what fits the place (a sandbox: declared, a gateway: all);
    `unannounced`, of an effect while no call is under way; `differs`, of one that is not what the call said; `covered`,
    of one that a call under way may have made and does not name.
    """

    audit: Audit | None = None
    unannounced: Mismatch = Mismatch.SHOW
    differs: Mismatch = Mismatch.SHOW
    covered: Mismatch = Mismatch.SHOW

    @property
    def defers(self) -> bool:
        """Return whether any mismatch is asked about."""
        return Mismatch.DEFER in (self.unannounced, self.differs, self.covered)
