"""Moves within a full copy that cannot be told from an edit of the host.

A full copy has no marks: what the agent moved shows as new at one place and as removed at another. Where the host
changed the folder around the new place meanwhile, the new half may as well be something that the host removed, and
is a conflict. The removed half must not be released without it: its content would be nowhere any more.
"""

import os
import stat

from interlock.model.effects import HostEdit
from interlock.staging.baseline import SLACK_NS, Baseline
from interlock.staging.host_edits import HostEdits
from interlock.staging.layers import OpenRoot
from interlock.staging.stamps import check_depth, open_folder
from interlock.staging.syscalls import birth_ns


class CopiedMoves:
    """Looks over a full copy, once and only when it is asked."""

    def __init__(self, opened_root: OpenRoot, edits: HostEdits, baseline: Baseline) -> None:
        self._open = opened_root
        self._edits = edits
        self._baseline = baseline
        self._since_ns = baseline.since_ns - SLACK_NS
        self._found: HostEdit | None = None
        self._looked = self._open.is_overlay

    def in_doubt(self) -> HostEdit | None:
        """Return how a removal is to be marked: UNCERTAIN where something may have been moved, and from there.

        Raises: OSError.
        """
        if not self._looked:
            self._looked = True
            swapped = self._edits.trail.swapped is not None
            if self._is_in_doubt(self._open.upper_fd, self._open.lower_fd, "", swapped=swapped):
                self._found = HostEdit.UNCERTAIN
        return self._found

    def _is_in_doubt(self, upper_fd: int, lower_fd: int, path: str, *, swapped: bool) -> bool:
        check_depth(path)
        lower = os.fstat(lower_fd)
        swapped = swapped or self._edits.swapped(path, lower, lower_fd, upper_fd) is not None
        host_changed = swapped or self._baseline.is_late(lower)
        for name in sorted(os.listdir(upper_fd), key=os.fsencode):
            child = f"{path}/{name}" if path else name
            upper = os.stat(name, dir_fd=upper_fd, follow_symlinks=False)
            try:
                below = os.stat(name, dir_fd=lower_fd, follow_symlinks=False)
            except FileNotFoundError:
                if host_changed and self._came_from_elsewhere(upper_fd, name, upper):
                    return True
                continue
            if not stat.S_ISDIR(upper.st_mode) or not stat.S_ISDIR(below.st_mode):
                continue
            fds = (open_folder(upper_fd, name, upper), open_folder(lower_fd, name, below))
            try:
                if self._is_in_doubt(*fds, child, swapped=swapped):
                    return True
            finally:
                for fd in fds:
                    os.close(fd)
        return False

    def _came_from_elsewhere(self, upper_fd: int, name: str, upper: os.stat_result) -> bool:
        """Say whether the agent may have moved an entry of the copy: it is old, and was touched since."""
        return upper.st_ctime_ns >= self._since_ns and birth_ns(upper_fd, name) < self._since_ns
