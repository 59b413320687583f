"""Whether staged objects are what their names say, where Git could read another copy of them than the host's.

An object file that lies about a commit of the host's would hide what comes after it, and one that lies twice shows one
thing to this program and another to the user. So an object that the host has already is read again and hashed, and
none may be staged twice; nor may anything be staged that says of objects what only they can say themselves.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Iterator

from interlock.runtime.git_reading import GitObjects, UnreadableError

_MOST_NAMES = 1_000_000
_MOST_INDEX_BYTES = 64 << 20
_HEX = re.compile(r"[0-9a-f]+")
_SAYING = ("info/alternates", "info/commit-graph", "info/commit-graphs", "pack/multi-pack-index")


def check_staged(upper: str, lower: str | None, *, sha256: bool, deadline_s: float) -> None:
    """Check a staged folder `objects/` against the host's. Raises: UnreadableError, OSError."""
    for name in _SAYING:
        path = os.path.join(upper, name)
        if os.path.lexists(path) and not _is_hosts(path, lower, name) and not _is_whiteout(path):
            raise UnreadableError("something is staged that speaks for objects")
    names = list(_names(upper, lower, sha256=sha256))
    if len(set(names)) != len(names):
        raise UnreadableError("an object is staged twice")
    if lower is None or not names:
        return
    with GitObjects([lower], sha256=sha256, deadline_s=deadline_s) as host:
        both = host.existing(names)
    if both:
        with GitObjects([upper], sha256=sha256, deadline_s=deadline_s) as staged:
            staged.contents(both)


def _names(upper: str, lower: str | None, *, sha256: bool) -> Iterator[str]:
    length = 64 if sha256 else 40
    for folder in os.listdir(upper):
        if len(folder) != 2 or not _HEX.fullmatch(folder):
            continue
        for name in os.listdir(os.path.join(upper, folder)):
            if len(folder + name) == length and _HEX.fullmatch(name):
                path = os.path.join(upper, folder, name)
                if _is_there(path) and not _is_hosts(path, lower, f"{folder}/{name}"):
                    yield folder + name
    packs = os.path.join(upper, "pack")
    for name in os.listdir(packs) if os.path.isdir(packs) else ():
        path = os.path.join(packs, name)
        if not name.endswith((".idx", ".pack")) or not _is_there(path):
            continue
        if _is_hosts(path, lower, f"pack/{name}"):
            continue
        if lower is not None and os.path.lexists(os.path.join(lower, "pack", name)):
            raise UnreadableError("a pack of the host's is replaced")
        if name.endswith(".idx"):
            yield from _indexed(path, length // 2)


def _indexed(path: str, size: int) -> Iterator[str]:
    """Return the objects of a pack. Source: gitformat-pack(5), "Version 2 pack-*.idx files"."""
    with open(path, "rb") as file:
        data = file.read(_MOST_INDEX_BYTES + 1)
    if len(data) > _MOST_INDEX_BYTES or data[:8] != b"\xfftOc\0\0\0\2" or len(data) < 1032:
        raise UnreadableError("a pack's index cannot be read")
    (count,) = struct.unpack_from(">I", data, 1028)
    if count > _MOST_NAMES or len(data) < 1032 + count * size:
        raise UnreadableError("a pack's index cannot be read")
    for at in range(1032, 1032 + count * size, size):
        yield data[at : at + size].hex()


def _is_there(path: str) -> bool:
    """Say whether a plain file is staged. Raises: UnreadableError for what is neither that nor an overlay's mark."""
    status = os.lstat(path)
    if stat.S_ISREG(status.st_mode):
        return True
    if _is_whiteout(path):
        return False
    raise UnreadableError("an object is no plain file")


def _is_whiteout(path: str) -> bool:
    status = os.lstat(path)
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_hosts(path: str, lower: str | None, name: str) -> bool:
    """Say whether a staged file is the host's own, as in a full copy."""
    if lower is None:
        return False
    host = os.path.join(lower, name)
    try:
        one, other = os.lstat(path), os.lstat(host)
        if not stat.S_ISREG(one.st_mode) or not stat.S_ISREG(other.st_mode) or one.st_size != other.st_size:
            return False
        with open(path, "rb") as left, open(host, "rb") as right:
            while chunk := left.read(1 << 20):
                if chunk != right.read(len(chunk)):
                    return False
            return True
    except FileNotFoundError:
        return False
