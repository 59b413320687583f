"""The stop guard: when execution ends, whatever is left of the plan. Source: DESIGN §5, guard 1; KNOX §4.2."""

from typing import TYPE_CHECKING

from interlock.model.effects import Effect
from interlock.model.manifest import Manifest
from interlock.model.records import dataclass
from interlock.policy.declaration import Policy

if TYPE_CHECKING:
    from interlock.policy.guarding import Guarded
    from interlock.policy.provenance import Knowledge


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """What counts towards a stop so far, and which branches are stopped."""


def began(manifest: Manifest | None) -> Stops | None:
    """Return what is counted from the start; None where nothing can stop a run."""
    return None


def stopped(policy: Policy, knowledge: "Knowledge", effect: Effect) -> "Guarded | None":
    """Return what the stop guard says of an effect; None where nothing is stopped."""
    return None
