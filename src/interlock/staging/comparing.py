"""What both sides of one entry are, and whether they are the same."""

import os
import stat

from interlock.model.effects import FileStamp, FileType, Hazard
from interlock.model.errors import IntegrityError
from interlock.staging.layers import OpenRoot, mark_of
from interlock.staging.pairs import Pair
from interlock.staging.stamps import (
    CAPABILITY_XATTR,
    FACTS_PREFIX,
    Visit,
    digest_of,
    open_file,
    read_file,
    read_xattrs,
    stamp_at,
    stamp_of,
    type_of,
)

_TYPE_HAZARDS = {
    FileType.FIFO: Hazard.FIFO,
    FileType.SOCKET: Hazard.SOCKET,
    FileType.CHARACTER_DEVICE: Hazard.DEVICE,
    FileType.BLOCK_DEVICE: Hazard.DEVICE,
}


class SideReader:
    """Reads entries of one open root.

    Takes: `leaving`, the host's folders that were moved; `limit_bytes`, how much text of one is kept.
    """

    def __init__(self, opened_root: OpenRoot, leaving: frozenset[str], limit_bytes: int) -> None:
        self._root, self._overlay = opened_root.root, opened_root.is_overlay
        self._leaving = leaving
        self._limit = limit_bytes

    def after(
        self, upper_fd: int, name: str, upper: os.stat_result, *, judged: bool
    ) -> tuple[FileStamp, str | None, dict[str, bytes], str]:
        """Return what the layer has: its stamp, its text where it is judged, its attributes and a link's target."""
        kind = type_of(upper)
        if kind is FileType.SYMLINK:
            target = os.readlink(name, dir_fd=upper_fd)
            return stamp_of(upper, link_target=target), None, {}, target
        if kind is not FileType.FILE:
            return stamp_of(upper), None, {}, ""
        fd = open_file(upper_fd, name, upper, lend_mode=True)
        try:
            xattrs = read_xattrs(fd, lend_mode=True)
            if self._overlay and mark_of(self._root, fd, "metacopy") is not None:
                raise IntegrityError(
                    "the staged layer holds a file without its bytes (metacopy)",
                    hint="mount with metacopy=off",
                )
            digest, data = read_file(fd, upper, keep_bytes=self._limit if judged else 0)
        finally:
            os.close(fd)
        return stamp_of(upper, digest=digest), _text(data) if judged else None, xattrs, ""

    def before(
        self, pair: Pair, *, judged: bool, passing: Visit | None = None
    ) -> tuple[FileStamp, str | None]:
        """Return what the host has: its stamp, and its text where it is judged."""
        lower_fd, name = pair.lower_fd, pair.lower_name or pair.name
        assert lower_fd is not None
        stamp = stamp_at(
            lower_fd, name, path=pair.lower_path, leaving=self._leaving, whole=True, passing=passing
        )
        if not judged or stamp.type is not FileType.FILE or not 0 < stamp.size_bytes <= self._limit:
            return stamp, "" if judged and stamp.type is FileType.FILE and stamp.size_bytes == 0 else None
        status = os.stat(name, dir_fd=lower_fd, follow_symlinks=False)
        try:
            fd = open_file(lower_fd, name, status)
        except PermissionError:
            return stamp, None
        try:
            return stamp, _text(read_file(fd, status, keep_bytes=self._limit)[1])
        finally:
            os.close(fd)


def hazards_of(after: FileStamp, xattrs: dict[str, bytes], *, outward: bool) -> tuple[Hazard, ...]:
    """Return what is dangerous about an entry of the layer. Takes: `outward`, whether it is a link that leaves."""
    found: list[Hazard] = []
    if after.type in _TYPE_HAZARDS:
        found.append(_TYPE_HAZARDS[after.type])
    if after.type is FileType.SYMLINK and outward:
        found.append(Hazard.OUTWARD_LINK)
    if after.type is not FileType.SYMLINK and after.mode & (stat.S_ISUID | stat.S_ISGID):
        found.append(Hazard.SET_ID)
    if CAPABILITY_XATTR in xattrs:
        found.append(Hazard.FILE_CAPABILITY)
    return tuple(found)


def open_if_needed(dir_fd: int, name: str, status: os.stat_result, stamp: FileStamp) -> int | None:
    """Open the host's file for a comparison; None where it is no regular file or may not be read."""
    if stamp.type is not FileType.FILE:
        return None
    try:
        return open_file(dir_fd, name, status)
    except PermissionError:
        return None


def same_content(
    lower_fd: int | None, stamps: tuple[FileStamp, FileStamp], statuses: tuple[os.stat_result, os.stat_result]
) -> bool:
    """Say whether both sides hold the same. Takes: `lower_fd`, None where the host's file may not be read."""
    before, after = stamps
    lower, upper = statuses
    if before.type in (FileType.CHARACTER_DEVICE, FileType.BLOCK_DEVICE):
        return lower.st_rdev == upper.st_rdev
    if before.size_bytes != after.size_bytes or before.link_target != after.link_target:
        return False
    if before.type is not FileType.FILE:
        return True
    if lower_fd is None:
        return False  # it may not be read, so that it is the same cannot be told
    if before.digest.startswith(FACTS_PREFIX):
        return digest_of(lower_fd, lower) == after.digest
    return before.digest == after.digest


def same_attributes(lower: os.stat_result, upper: os.stat_result) -> bool:
    """Say whether mode, owner and time are the same."""
    return (lower.st_mode, lower.st_uid, lower.st_gid, lower.st_mtime_ns) == (
        upper.st_mode,
        upper.st_uid,
        upper.st_gid,
        upper.st_mtime_ns,
    )


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
