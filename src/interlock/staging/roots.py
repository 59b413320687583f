"""A root and its staged copy, as the boundary set them up."""

from collections.abc import Callable

from interlock.model.events import Staging
from interlock.model.records import dataclass

TRUSTED_XATTR_PREFIX = "trusted.overlay."
USER_XATTR_PREFIX = "user.overlay."


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRoot:
    """One root: the host's folder and the layer that holds what the command changed.

    Takes: `lower`, the host's folder, and `upper`, the overlay's upper layer or (mode COPY) the full
    copy, both absolute, as `os.fsdecode` writes them; `xattr_prefix`, of the overlay's marks; `keeps`, which
    places (`path_text` writing) count where not all of them do: the rest of the layer is thrown away; `beside`, the
    host's folders that are staged like this one, so that a link into them leads nowhere else.
    Holds: nothing writes to `upper` while it is listed, planned or merged.
    """

    name: str
    lower: str
    upper: str
    mode: Staging = Staging.OVERLAY
    xattr_prefix: str = TRUSTED_XATTR_PREFIX
    keeps: Callable[[str], object] | None = None
    beside: tuple[str, ...] = ()
