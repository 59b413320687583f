"""The bytes of both sides of one change of a file, read without following a link."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import field, replace

from interlock.model.dependencies import PathMap, host_path
from interlock.model.effects import FileChange
from interlock.model.events import Staging
from interlock.model.places import path_bytes
from interlock.model.records import dataclass
from interlock.staging.indexed import alone_in_index
from interlock.staging.layers import opened
from interlock.staging.lending import Loans, lending
from interlock.staging.linked import handle_at, names_in_layer
from interlock.staging.roots import StagedRoot
from interlock.staging.stamps import open_file, paths_of_inodes, read_xattrs
from interlock.staging.syscalls import open_beneath


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side has: bytes, cut at the limit that was given, under how many names, and its kept xattrs."""

    data: bytes
    names: int
    ino: int = 0
    xattrs: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the bytes in hex."""
        return hashlib.sha256(self.data).hexdigest()


def read_host(root: StagedRoot, change: FileChange, limit_bytes: int) -> Side:
    """Read the file that the host has, also where the folder around it was moved in the staged copy.

    Raises: OSError.
    """
    place = change.source or change.place
    path = os.fsdecode(path_bytes(place.path))
    digest = change.before.digest if change.before is not None else ""
    side: Side | None = None
    missing: OSError | None = None
    try:
        side = _read(root.lower, path, limit_bytes, lend_mode=False)
        if not digest or side.digest == digest:
            return side
    except (FileNotFoundError, NotADirectoryError) as error:
        missing = error
    if change.source is None and root.mode is Staging.OVERLAY:
        with opened(root) as opened_root:
            old = host_path(path, PathMap(opened_root.moved))
        if old != path:
            return _read(root.lower, old, limit_bytes, lend_mode=False)
    if side is None:
        assert missing is not None
        raise missing
    return side


def read_staged(root: StagedRoot, change: FileChange, limit_bytes: int) -> Side:
    """Read the file that the staged copy has, perhaps under another name of it alone. Raises: OSError."""
    path = os.fsdecode(path_bytes(change.place.path))
    with lending(root.upper) as loans:
        loans.lend_way(path)
        return _read_staged(root, path, limit_bytes, loans)


def _read_staged(root: StagedRoot, path: str, limit_bytes: int, loans: Loans) -> Side:
    try:
        side = _read(root.upper, path, limit_bytes, lend_mode=True)
    except (FileNotFoundError, NotADirectoryError):
        further = _read_further_name(root, path, limit_bytes)
        if further is None:
            raise
        return further
    if side.names == 1 or root.mode is not Staging.OVERLAY:
        return side
    # an overlay with an index holds a link of its own to each file: only the names in the layer count
    top = os.open(root.upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        loans.lend_below(top)
        return replace(side, names=len(paths_of_inodes(top, {side.ino})))
    finally:
        os.close(top)


def _read_further_name(root: StagedRoot, path: str, limit_bytes: int) -> Side | None:
    """Read what the view shows at a name that the layer does not have; None where it shows the host's file there."""
    if root.mode is not Staging.OVERLAY:
        return None
    with opened(root) as opened_root:
        folder, _, name = host_path(path, PathMap(opened_root.moved)).rpartition("/")
        fd = open_beneath(opened_root.lower_fd, folder, os.O_PATH | os.O_DIRECTORY)
        try:
            handle = handle_at(fd, name)
        finally:
            os.close(fd)
        if handle is None:
            return None
        entry = alone_in_index(root, opened_root.index_fd).get(handle)
        if entry is not None:
            return _read(root.index, entry, limit_bytes, lend_mode=True)
        names = names_in_layer(opened_root, handle)
        if not names:
            return None
        side = _read(root.upper, names[0], limit_bytes, lend_mode=True)
        return replace(side, names=len(names) + 1)


def _read(folder: str, path: str, limit_bytes: int, *, lend_mode: bool) -> Side:
    parent, _, name = path.rpartition("/")
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fd = open_beneath(top, parent, os.O_PATH | os.O_DIRECTORY)
    finally:
        os.close(top)
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        file = open_file(fd, name, status, lend_mode=lend_mode)
    finally:
        os.close(fd)
    with os.fdopen(file, "rb") as reading:
        return Side(
            data=reading.read(limit_bytes),
            names=status.st_nlink,
            ino=status.st_ino,
            xattrs=read_xattrs(file, lend_mode=lend_mode),
        )
