"""A root and its staged copy, as the boundary set them up."""

from interlock.model.events import Staging
from interlock.model.records import dataclass

TRUSTED_XATTR_PREFIX = "trusted.overlay."
USER_XATTR_PREFIX = "user.overlay."


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRoot:
    """One root: the host's folder and the layer that holds what the command changed.

    Takes: `lower`, the host's folder, and `upper`, the overlay's upper layer or (mode COPY) the full
    copy, both absolute, as `os.fsdecode` writes them; `xattr_prefix`, of the overlay's marks.
    Holds: nothing writes to `upper` while it is listed, planned or merged.
    """

    name: str
    lower: str
    upper: str
    mode: Staging = Staging.OVERLAY
    xattr_prefix: str = TRUSTED_XATTR_PREFIX
