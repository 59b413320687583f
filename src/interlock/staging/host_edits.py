"""Did the host change a place under the agent? Judged from ctimes, from the layer's own marks and from touches.

Nearly every place is settled by one comparison of its ctime with the start; the rest is asked only of the others.
Where it cannot be told, the answer is that it was changed.
"""

import errno
import os
import stat
from dataclasses import replace

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType, HostEdit
from interlock.model.places import Place, path_text
from interlock.staging.baseline import SLACK_NS, Baseline, Touch
from interlock.staging.layers import OpenRoot, mark_of
from interlock.staging.linked import Handle, handle_at, handle_in, status_by_handle
from interlock.staging.pairs import Pair, Trail
from interlock.staging.stamps import before_stamp, stamp_of
from interlock.staging.syscalls import birth_ns

_FUTURE_NS = 1_000_000_000
_UNKNOWN = object()


class HostEdits:
    """Judges the changes of one open root. Paths are `os.fsdecode` text relative to the root."""

    def __init__(self, opened_root: OpenRoot, baseline: Baseline) -> None:
        self._open = opened_root
        self._root = opened_root.root
        self._baseline = baseline
        inode = baseline.inodes.get(self._root.name)
        swapped = inode is not None and inode != os.fstat(opened_root.lower_fd).st_ino
        self.trail = Trail(swapped=HostEdit.EDITED if swapped else None)

    def settled(
        self,
        change: FileChange,
        pair: Pair,
        upper: os.stat_result,
        *,
        same_xattrs: bool,
        below: HostEdit | None = None,
    ) -> FileChange | None:
        """Judge the change of a file that the agent has.

        Takes: `upper`, its lstat; `same_xattrs`, whether both sides have the same extended attributes; `below`, what
        the host did in a folder that the file takes the place of.
        Returns: the change, marked if the host changed the place too; None where the agent changed nothing, or both
        sides came to the same.
        """
        lower = pair.lower
        edit = self._gone(change, pair, upper) if lower is None else self._edited(change, pair, lower, upper)
        edit = edit or below
        if edit is None:
            return change
        touch = self._touch_of(change.place, pair)
        if same_xattrs and change.before == change.after:
            return None  # both made the same of it; the times alone differ
        if pair.lower_fd is not None and self._left_alone(change, upper, touch, same_xattrs=same_xattrs):
            return None
        return replace(change, host_edit=edit, base=self._base(change.place, touch))

    def settled_folder(
        self, change: FileChange, pair: Pair, upper: os.stat_result, upper_fd: int
    ) -> FileChange | None:
        """Judge the change of a folder's own attributes, or its move; what lies below is judged for itself.

        Takes: `pair`, whose `lower` is the host's folder; `upper` and `upper_fd`, the layer's.
        """
        lower = pair.lower
        assert lower is not None
        baseline = self._baseline
        merged = baseline.merged.get(change.place, _UNKNOWN)
        edit: HostEdit | None = None
        if isinstance(merged, FileStamp):
            edit = None if _is_like(stamp_of(lower), merged) else HostEdit.EDITED
        elif change.kind is ChangeKind.RENAME and change.before == change.after:
            edit = None  # whatever the host did to it moves with it
        elif pair.trail.swapped is HostEdit.EDITED:
            edit = pair.trail.swapped
        elif baseline.is_late(lower):
            edit = self._folder_edit(lower, is_ours=not self._began_with(pair, upper, upper_fd))
        if edit is None:
            return change
        if self._is_untouched_copy(upper):
            return None
        return replace(change, host_edit=edit)

    def lost_folder(self, change: FileChange, pair: Pair, upper: os.stat_result, upper_fd: int) -> FileChange:
        """Judge a folder that the host does not have: made by the agent, or removed by the host."""
        if pair.is_left:
            return change
        merged = self._baseline.merged.get(change.place, _UNKNOWN)
        gone = isinstance(merged, FileStamp) or (
            merged is _UNKNOWN and self._may_have_left(pair) and self._began_with(pair, upper, upper_fd)
        )
        return replace(change, host_edit=HostEdit.GONE) if gone else change

    def _may_have_left(self, pair: Pair) -> bool:
        """Say whether the host may have removed what the copy has: else the agent moved it to where it is now."""
        if self._open.is_overlay or pair.trail.gone:
            return True
        if pair.lower_fd is None:
            return False
        return pair.trail.swapped is not None or self._baseline.is_late(os.fstat(pair.lower_fd))

    def swapped(self, path: str, lower: os.stat_result, lower_fd: int, upper_fd: int) -> HostEdit | None:
        """Say whether the host has another folder at a place than the layer's folder was begun over.

        Takes: `lower`, of the host's folder. Its files may be older than the run, and were never there before.
        """
        place = self._open.place(path)
        if not self._baseline.is_late(lower) or isinstance(self._baseline.merged.get(place), FileStamp):
            return None
        if self._open.is_overlay:
            mark = mark_of(self._root, upper_fd, "origin")
            if mark is None:
                return HostEdit.UNCERTAIN  # the agent made its folder anew
            origin = handle_in(mark)
            if origin is not None:
                return None if handle_at(lower_fd, ".") in (origin, None) else HostEdit.EDITED
        else:
            upper, start_ns = os.fstat(upper_fd), self._baseline.since_ns - SLACK_NS
            if birth_ns(upper_fd, ".") >= start_ns or upper.st_mtime_ns < start_ns <= upper.st_ctime_ns:
                return HostEdit.UNCERTAIN  # the agent made it anew, or moved it here
        # a folder that is put somewhere keeps its mtime, and one whose entries change does not
        return None if lower.st_mtime_ns >= self._baseline.host_since_ns - SLACK_NS else HostEdit.UNCERTAIN

    def is_left_alone(self, pair: Pair, upper_fd: int) -> bool:
        """Say whether the host alone removed a folder of a full copy, in which the agent changed nothing."""
        # below a folder that is not there either it may have been moved: that leaves what lies in it as it was
        if self._open.is_overlay or pair.lower_fd is None or not self._may_have_left(pair):
            return False
        return self._is_as_copied(upper_fd)

    def _is_as_copied(self, upper_fd: int) -> bool:
        if not self._is_untouched_copy(os.fstat(upper_fd)):
            return False
        with os.scandir(upper_fd) as entries:
            found = [(one.name, one.stat(follow_symlinks=False)) for one in entries]
        for name, status in found:
            if not self._is_untouched_copy(status):
                return False
            if stat.S_ISDIR(status.st_mode):
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                fd = os.open(name, flags, dir_fd=upper_fd)
                try:
                    if not self._is_as_copied(fd):
                        return False
                finally:
                    os.close(fd)
        return True

    def _edited(
        self, change: FileChange, pair: Pair, lower: os.stat_result, upper: os.stat_result
    ) -> HostEdit | None:
        baseline = self._baseline
        merged = baseline.merged.get(change.place, _UNKNOWN)
        if merged is not _UNKNOWN:
            if merged is None:
                return HostEdit.APPEARED
            assert isinstance(merged, FileStamp)
            assert change.before is not None
            return None if _is_like(change.before, merged) else HostEdit.EDITED
        touch = self._touch_of(change.place, pair)
        if touch is not None and touch.seen.ino != lower.st_ino:
            return HostEdit.EDITED
        swapped = pair.trail.swapped if touch is None else None
        if swapped is HostEdit.EDITED or not baseline.is_late(lower):
            return swapped
        # what is read through another name of the file is not told by this one
        if baseline.whole and lower.st_nlink == 1 and touch is not None and touch.sure:
            saw = touch.read or self._was_copied_after(pair, lower, upper)
            if saw and touch.seen.still_is(lower):
                return None
        if self._cannot_tell(lower, touch):
            return HostEdit.UNCERTAIN
        if touch is None and not self._began_with(pair, upper) and self._is_born_late(pair):
            return HostEdit.APPEARED
        return HostEdit.EDITED

    def _cannot_tell(self, lower: os.stat_result, touch: Touch | None) -> bool:
        baseline = self._baseline
        if baseline.stepped_back or lower.st_ctime_ns > baseline.now_ns + _FUTURE_NS:
            return not (touch is not None and touch.sure and not touch.seen.still_is(lower))
        return touch is not None and not touch.sure and touch.seen.still_is(lower)

    def _gone(self, change: FileChange, pair: Pair, upper: os.stat_result) -> HostEdit | None:
        """Judge a file that the agent has and the host has not."""
        if pair.is_left:
            return None
        merged = self._baseline.merged.get(change.place, _UNKNOWN)
        if merged is not _UNKNOWN:
            return None if merged is None else HostEdit.GONE
        if self._touch_of(change.place, pair) is not None:
            return HostEdit.GONE
        if not self._began_with(pair, upper):
            return None
        if pair.trail.gone:
            return HostEdit.GONE
        if pair.lower_fd is None:
            return None  # moved into a folder that the agent made
        if pair.trail.swapped is None and not self._baseline.is_late(os.fstat(pair.lower_fd)):
            return None  # nothing left that folder: it was moved there by the agent
        origin = self._origin(pair)
        if origin is None:
            return HostEdit.UNCERTAIN
        try:
            status = status_by_handle(self._open.lower_fd, origin)
        except OSError:
            return HostEdit.UNCERTAIN
        # what the agent moved there is still on the host, unchanged, under its old name
        return HostEdit.GONE if status is None or self._baseline.is_late(status) else None

    def _folder_edit(self, lower: os.stat_result, *, is_ours: bool) -> HostEdit:
        if self._baseline.stepped_back:
            return HostEdit.UNCERTAIN
        if is_ours:
            return HostEdit.APPEARED
        # a folder's ctime moves with each entry too, and its mtime with entries alone
        return HostEdit.EDITED if lower.st_ctime_ns != lower.st_mtime_ns else HostEdit.UNCERTAIN

    def _touch_of(self, place: Place, pair: Pair) -> Touch | None:
        return None if pair.is_moved or pair.lower_name else self._baseline.touches.get(place)

    def _base(self, place: Place, touch: Touch | None) -> FileStamp | None:
        merged = self._baseline.merged.get(place)
        if merged is not None:
            return merged
        return touch.seen.stamp() if touch is not None and touch.sure else None

    def _left_alone(
        self, change: FileChange, upper: os.stat_result, touch: Touch | None, *, same_xattrs: bool
    ) -> bool:
        """Say whether the agent's side is what it began from, so that the host alone changed the place."""
        if self._is_untouched_copy(upper):
            return True
        if touch is None or not touch.sure or not same_xattrs or change.before is None:
            return False
        if stat.S_ISREG(upper.st_mode) and not touch.seen.digest:
            return False
        return change.after == touch.seen.stamp() and upper.st_mtime_ns == touch.seen.mtime_ns

    def _is_untouched_copy(self, upper: os.stat_result) -> bool:
        return not self._open.is_overlay and upper.st_ctime_ns < self._baseline.since_ns - SLACK_NS

    def _was_copied_after(self, pair: Pair, lower: os.stat_result, upper: os.stat_result) -> bool:
        """Say whether the agent's side began as a copy of the host's, made after the host's last edit."""
        born_ns = birth_ns(pair.upper_fd, pair.name)
        return self._began_with(pair, upper) and (born_ns == 0 or born_ns > lower.st_ctime_ns + SLACK_NS)

    def _is_born_late(self, pair: Pair) -> bool:
        assert pair.lower_fd is not None
        return (
            birth_ns(pair.lower_fd, pair.lower_name or pair.name) >= self._baseline.host_since_ns - SLACK_NS
        )

    def _began_with(self, pair: Pair, upper: os.stat_result, upper_fd: int | None = None) -> bool:
        """Say whether the layer's entry came from the host's, and was not made anew."""
        if pair.path == "":
            return True
        if not self._open.is_overlay:
            return 0 < birth_ns(pair.upper_fd, pair.name) < self._baseline.since_ns - SLACK_NS
        if upper_fd is not None:
            return mark_of(self._root, upper_fd, "origin") is not None
        return self._origin_mark(pair) is not None

    def _origin(self, pair: Pair) -> Handle | None:
        mark = self._origin_mark(pair) if self._open.is_overlay else None
        return None if mark is None else handle_in(mark)

    def _origin_mark(self, pair: Pair) -> bytes | None:
        path = f"/proc/self/fd/{pair.upper_fd}/{pair.name}"
        try:
            return os.getxattr(path, f"{self._root.xattr_prefix}origin", follow_symlinks=False)
        except OSError as error:
            if error.errno in (errno.ENODATA, errno.ENOTSUP, errno.EACCES):
                return None
            raise

    def removal(self, pair: Pair) -> "Removal":
        """Begin to judge an entry of the host that the agent removed; see `Removal`."""
        return Removal(self, pair)

    def edit_of_removed(
        self, pair: Pair, path: str, lower_path: str, status: os.stat_result
    ) -> HostEdit | None:
        """Judge one entry that goes with a removal: itself, or what lies below it."""
        baseline = self._baseline
        place = Place(root=self._root.name, path=path_text(os.fsencode(path)))
        merged = baseline.merged.get(place, _UNKNOWN)
        if merged is None:
            return HostEdit.APPEARED
        touch = self._touch_of(place, pair)
        is_folder = stat.S_ISDIR(status.st_mode)
        if touch is not None and touch.seen.ino != status.st_ino:
            return HostEdit.EDITED
        swapped = pair.trail.swapped if touch is None else None
        if swapped is HostEdit.EDITED or not baseline.is_late(status):
            return swapped
        if isinstance(merged, FileStamp):
            now = stamp_of(status)
            if not is_folder:
                now = before_stamp(self._open.lower_fd, lower_path, whole=False)
            return None if _is_like(now, merged) else HostEdit.EDITED
        whole = baseline.whole and (is_folder or status.st_nlink == 1)
        if whole and touch is not None and touch.sure and touch.seen.still_is(status):
            return None
        return HostEdit.UNCERTAIN if self._cannot_tell(status, touch) else HostEdit.EDITED

    def settled_removal(self, change: FileChange, pair: Pair, edit: HostEdit | None) -> FileChange | None:
        """Return a removal, marked; None where the host added the entry and the agent removed nothing there."""
        if edit is None:
            return change
        if self._is_untouched_copy(os.fstat(pair.upper_fd)):
            return None
        return replace(
            change, host_edit=edit, base=self._base(change.place, self._touch_of(change.place, pair))
        )


class Removal:
    """What the host did to an entry that the agent removed, or below it, gathered while it is digested."""

    def __init__(self, edits: HostEdits, pair: Pair) -> None:
        self._edits = edits
        self._pair = pair
        self.edit: HostEdit | None = None
        if pair.lower is not None:
            self.edit = edits.edit_of_removed(pair, pair.path, pair.lower_path, pair.lower)

    def passing(self, lower_path: str, status: os.stat_result) -> None:
        """Take one entry below, by its path on the host."""
        if self.edit is None or self.edit is HostEdit.UNCERTAIN:
            path = self._pair.path + lower_path[len(self._pair.lower_path) :]
            found = self._edits.edit_of_removed(self._pair, path, lower_path, status)
            self.edit = found or self.edit


def _is_like(now: FileStamp, then: FileStamp) -> bool:
    """Say whether an entry is as a merge left it; of a folder its own attributes alone."""
    if now.type is FileType.DIRECTORY is then.type:
        return (now.mode, now.uid, now.gid) == (then.mode, then.uid, then.gid)
    return now == then
