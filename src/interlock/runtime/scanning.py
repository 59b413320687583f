"""What a file holds that is no text to be had whole: too long, or in another encoding. Read in pieces, within bounds.

Keys and numbers are ASCII, so each piece is looked at byte by byte, whatever the encoding. What no bound leaves room
for counts as holding all that is looked for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

PIECE_BYTES = 1 << 20
OVERLAP_BYTES = 16 << 10
"""The end of a piece is looked at again with the next: nothing that is looked for is longer."""
MOST_FILE_BYTES = 32 << 20
MOST_RUN_BYTES = 256 << 20
_KNOWN_AT_MOST = 10_000
Find = Callable[[str, tuple[str, ...]], tuple[str, ...]]


class Scanner:
    """Says which kinds of content the files of the host hold. One run uses one of these.

    Takes: `find`, which says which of some kinds a text holds.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self._left = MOST_RUN_BYTES
        self._known: dict[tuple[object, ...], tuple[str, ...]] = {}

    def found_in_file(self, path: bytes, kinds: tuple[str, ...]) -> tuple[str, ...]:
        """Return which kinds of content a regular file holds, or may hold; nothing for what is none."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return ()
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                return ()
            # Ctime too: a file's own times can be set back.
            key = (
                status.st_dev,
                status.st_ino,
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
                kinds,
            )
            if key not in self._known:
                found = self._found(file, status.st_size, kinds)
                if len(self._known) < _KNOWN_AT_MOST:
                    self._known[key] = found
                return found
            return self._known[key]
        except OSError:
            return kinds
        finally:
            os.close(file)

    def _found(self, file: int, size: int, kinds: tuple[str, ...]) -> tuple[str, ...]:
        if size > MOST_FILE_BYTES or size > self._left:
            return kinds
        found: set[str] = set()
        before = b""
        # What grows meanwhile is read to its bound.
        while len(found) < len(kinds) and (piece := os.read(file, PIECE_BYTES)):
            self._left -= len(piece)
            if self._left < 0:
                return kinds
            data = before + piece
            found.update(self._find(data.decode("latin-1"), kinds))
            before = data[-OVERLAP_BYTES:]
        return tuple(kind for kind in kinds if kind in found)
