"""One entry of both sides of a root as a listing comes by it, and what is known of the folders above."""

import os

from interlock.model.effects import HostEdit
from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """What is known of the folders above a place.

    Takes: `moved`, whether one was moved by the agent, so that touches of old have other names; `swapped`, whether
    the host put another folder in the place of one (EDITED), or may have (UNCERTAIN); `gone`, whether the host
    removed one that the agent worked in.
    """

    moved: bool = False
    swapped: HostEdit | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One entry of the merged view, with the open folders it lies in on both sides."""

    name: str
    path: str
    lower_path: str
    upper_fd: int
    lower_fd: int | None
    lower: os.stat_result | None
    trail: Trail
    lower_name: str = ""
    """Where the host has another name for it."""
    is_left: bool = False
    """Whether the agent moved away what the host has there, so that `lower` is None."""

    @property
    def is_moved(self) -> bool:
        """Say whether the agent moved it, or a folder above it."""
        return self.trail.moved or self.path != self.lower_path
