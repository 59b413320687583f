"""The two ways in which a merge ends without having happened."""

from interlock.model.errors import InterlockError
from interlock.model.places import Place


class ConflictError(InterlockError):
    """The host changed under a staged change since it was listed; nothing was merged.

    Takes: `places`, the places that differ, in order.
    """

    code = "conflict"
    exit_status = 5

    def __init__(self, message: str, *, places: tuple[Place, ...] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.places = places


class MergeFailedError(InterlockError):
    """The merge met an error of the system.

    Holds: the host is exactly as before; where it could not be put back, `StuckError` is raised instead.
    """

    code = "merge-failed"
    exit_status = 5
