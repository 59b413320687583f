"""How many names of a host's file lie outside of the root: a merge puts a new file in its place, apart from these."""

import os
import stat

_MOST_LOOKED_AT = 1_000_000
"""So many entries of the root are looked at; names beyond count as outside: more is said then, never less."""


class OutsideNames:
    """The host's files below one root that have several names, looked at once and only when one of them changes."""

    def __init__(self, lower_fd: int) -> None:
        self._lower_fd = lower_fd
        self._inside: dict[tuple[int, int], int] | None = None

    def of(self, lower: os.stat_result) -> int:
        """Return how many names of a file of the host lie outside; 0 for what is no regular file."""
        if not stat.S_ISREG(lower.st_mode) or lower.st_nlink < 2:
            return 0
        if self._inside is None:
            self._inside = _names_inside(self._lower_fd)
        return max(lower.st_nlink - max(self._inside.get((lower.st_dev, lower.st_ino), 0), 1), 0)


def _names_inside(top_fd: int) -> dict[tuple[int, int], int]:
    """Count the names of each file with several: device and inode -> names. What cannot be entered is passed over."""
    found: dict[tuple[int, int], int] = {}
    count = 0
    for _, folders, names, fd in os.fwalk(".", dir_fd=top_fd, follow_symlinks=False):
        count += len(names) + len(folders)
        if count > _MOST_LOOKED_AT:
            break
        for name in names:
            try:
                status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue
            if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                inode = (status.st_dev, status.st_ino)
                found[inode] = found.get(inode, 0) + 1
    return found
