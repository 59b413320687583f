"""A root and its staged copy, as the boundary set them up."""

import os
from collections.abc import Callable

from interlock.model.events import Staging
from interlock.model.records import dataclass

TRUSTED_XATTR_PREFIX = "trusted.overlay."
USER_XATTR_PREFIX = "user.overlay."


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRoot:
    """One root: the host's folder and the layer that holds what the command changed.

    Takes: `lower`, the host's folder, and `upper`, the overlay's upper layer or (mode COPY) the full
    copy, both absolute, as `os.fsdecode` writes them; `xattr_prefix`, of the overlay's marks; `index`, where the
    overlay keeps its index of copied-up files if it has one, "" where it cannot have one; `keeps`, which
    places (`path_text` writing) count where not all of them do: the rest of the layer is thrown away; `beside`, the
    host's folders that are staged like this one, so that a link into them leads nowhere else.
    Holds: nothing writes to `upper` or `index` while they are listed, planned or merged.
    """

    name: str
    lower: str
    upper: str
    mode: Staging = Staging.OVERLAY
    xattr_prefix: str = TRUSTED_XATTR_PREFIX
    index: str = ""
    keeps: Callable[[str], object] | None = None
    beside: tuple[str, ...] = ()


def open_index(root: StagedRoot) -> int | None:
    """Open the folder of an overlay's index; None where it has none.

    Raises: OSError.
    """
    if not root.index or root.mode is not Staging.OVERLAY:
        return None
    try:
        return os.open(root.index, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None  # never mounted, or on a file system that cannot have one: hard links part there
