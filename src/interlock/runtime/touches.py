"""What the host had when the agent first touched each place: kept while the command runs, for its end and after.

A host file that was not changed since the run's start needs no note: its ctime says so at the end as well. Kept are
only those that the host changed after the start and before the agent came to them, and those that the agent wrote,
the latter with their bytes while there is room, so that three sides can be shown and merged.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from interlock.boundary.drains import stamp_clock_ns
from interlock.model.effects import ChangeKind, FileChange, FileStamp
from interlock.model.events import ActivityLost, ActivityObserved, FileWrite, Staging
from interlock.model.places import Place, path_bytes
from interlock.model.records import changed
from interlock.staging.baseline import SLACK_NS, Baseline, HostEntry, Touch
from interlock.staging.stamps import before_stamp
from interlock.staging.syscalls import open_beneath

if TYPE_CHECKING:
    from interlock.runtime.folders import RunFolder, StagedFolder

TOUCHES = "touches"
BASE = "base"
_PACK = "bytes"
BASE_FILE_BYTES = 1 << 20
BASE_RUN_BYTES = 64 << 20
"""Bounds of the host's bytes that are kept: of one file, and of a run."""

_COPY_UP_NS_A_BYTE = 20
"""The kernel copies a file up before it tells of the opening that asked for it; 50 MB/s, or slower disks lose."""
_STEP_NS = 1_000_000_000
_SAID = -1
"""Stands for the inode of a place of which no more need be learned."""


def _unknown_time(_order: int) -> int:
    return 0


class Touches:
    """Learns the agent's first touches from its file events.

    Takes: `not_before_ns`, when the event of an order had surely not happened yet (`Sandbox.not_before_ns`).
    Holds: it only reads host files, and follows no link to them; a few words of memory for each place touched.
    """

    def __init__(
        self, folder: RunFolder, not_before_ns: Callable[[int], int] = _unknown_time, *, since_ns: int = 0
    ) -> None:
        self._folder = folder
        self._not_before_ns = not_before_ns
        self._since_ns = since_ns or stamp_clock_ns()
        self._offset_ns = self._lowest_ns = _clock_offset_ns()
        self._boot = ""
        self._saved_ns = 0
        self._whole = folder.staging is Staging.OVERLAY
        self._seen: dict[int, int] = {}
        self._touches: dict[Place, Touch] = {}
        self._merged: dict[Place, FileStamp | None] = {}
        self._closed: dict[Place, int] = {}
        self._kept: dict[Place, int] = {}
        self._bytes = 0
        self._pack: int | None = None
        self._tops: dict[str, int] = {}
        self._is_closed = False
        self._lowers = {item.name: os.fsencode(item.lower) + b"/" for item in folder.folders}
        self._inodes: dict[str, int] = {}
        for item in folder.folders:
            with suppress(OSError):
                self._inodes[item.name] = os.stat(item.lower).st_ino

    def observe(self, activity: ActivityObserved | ActivityLost) -> None:
        """Take a batch of file events, as they come."""
        if isinstance(activity, ActivityLost):
            # What is not seen may have been any place: only the run's start is sure from here on.
            self._whole = False
            return
        self._lowest_ns = min(self._lowest_ns, _clock_offset_ns())
        seen = self._seen
        written = {hash((one.place.root, one.place.path)) for one in activity.writes}
        for read in activity.reads:
            key = hash((read.place.root, read.place.path))
            if not read.staged and key not in seen:
                # a read of what is written too is perhaps only said because it was written
                seen[key] = self._first(read.place, read.opened, read=key not in written, closed=read.closed)
        for write in activity.writes:
            key = hash((write.place.root, write.place.path))
            known = seen.get(key)
            if known != _SAID:
                seen[key] = _SAID
                self._note_write(write, known)

    def baseline(self) -> Baseline:
        """Return what the agent began from, as it is known now."""
        now_ns = time.time_ns()
        return Baseline(
            since_ns=self._since_ns,
            host_since_ns=min(self._since_ns, self._copying_since_ns()),
            now_ns=now_ns,
            whole=self._whole,
            stepped_back=self._stepped_back(now_ns),
            touches=self._touches,
            merged=self._merged,
            inodes=self._inodes,
        )

    def base_of(self, place: Place) -> bytes | None:
        """Return the bytes that the host had at a place when the agent began with it, None if they were not kept."""
        touch = self._touches.get(place)
        if touch is None or not touch.sure or not touch.seen.digest or place in self._merged:
            return None
        try:
            with open(self._folder.at(BASE, _PACK), "rb") as file:
                data = os.pread(file.fileno(), touch.seen.size_bytes, self._kept[place])
        except (OSError, KeyError):
            return None
        return data if sha256(data).hexdigest() == touch.seen.digest else None

    def rebase(self, done: Iterable[FileChange | Place], at_ns: int = 0) -> None:
        """Begin anew at places that this run's own merge just set.

        Takes: `done`, what was merged: a change that was put as the agent had it, a place where something else was
        put in its stead (it then counts as the host has it now); `at_ns`, when the merge was done.
        """
        above: set[Place] = set()
        for one in done:
            places: list[tuple[Place, FileStamp | None]] = []
            if isinstance(one, FileChange):
                places.append((one.place, one.after))
                if one.source is not None and one.kind is ChangeKind.RENAME:
                    places.append((one.source, None))
            else:
                places.append((one, self._host_stamp(one, at_ns)))
            for place, stamp in places:
                self._merged[place] = stamp
                above.add(_parent(place))
        for folder in above - self._merged.keys():
            stamp = self._host_stamp(folder, 0)
            if stamp is not None:
                self._merged[folder] = stamp
        self.save()

    def close(self) -> None:
        """Save, and learn no more: the command has ended."""
        self.save()
        self._is_closed = True
        for descriptor in (*self._tops.values(), *(() if self._pack is None else (self._pack,))):
            os.close(descriptor)
        self._tops, self._pack = {}, None

    def save(self) -> None:
        """Write what a later process needs into the run's folder; without it every place begins at the run's start."""
        import orjson

        from interlock.runtime import touch_rows as rows

        self._saved_ns = time.time_ns()
        body = orjson.dumps(
            {
                "format": 1,
                "since_ns": self._since_ns,
                "offset_ns": self._offset_ns,
                "lowest_ns": self._lowest_ns,
                "saved_ns": self._saved_ns,
                "boot": self._boot or _boot_id(),
                "whole": self._whole,
                "inodes": self._inodes,
                "touches": [
                    rows.of_touch(place, touch, self._kept.get(place))
                    for place, touch in self._touches.items()
                ],
                "merged": [rows.of_merged(place, stamp) for place, stamp in self._merged.items()],
            }
        )
        path = self._folder.at(TOUCHES)
        try:
            descriptor = os.open(
                f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            with open(descriptor, "wb") as file:
                file.write(sha256(body).hexdigest().encode() + b"\n" + body)
            os.rename(f"{path}.tmp", path)
        except OSError:
            # An older one would say less than the start alone.
            with suppress(OSError):
                os.unlink(path)

    @classmethod
    def load(cls, folder: RunFolder) -> Touches:
        """Return what was saved of a run; where that is missing or damaged, what is sure of it anyway."""
        started_ns = int(folder.started_at_ns) if folder.started_at_ns.isdecimal() else 1
        made = cls(folder, since_ns=started_ns)
        made._whole, made._inodes, made._saved_ns = False, {}, started_ns
        try:
            with open(folder.at(TOUCHES), "rb") as file:
                digest, _, body = file.read().partition(b"\n")
            if sha256(body).hexdigest().encode() == digest:
                made._restore(body)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return made

    def _restore(self, body: bytes) -> None:
        import orjson

        from interlock.runtime import touch_rows as rows

        data = orjson.loads(body)
        if data["format"] != 1:
            return
        touches, kept = rows.touches_from(data["touches"])
        merged = dict(rows.merged_from(row) for row in data["merged"])
        self._since_ns, self._saved_ns = int(data["since_ns"]), int(data["saved_ns"])
        self._boot, self._whole = str(data["boot"]), bool(data["whole"])
        self._inodes = {str(name): int(ino) for name, ino in data["inodes"].items()}
        self._touches, self._merged, self._kept = touches, merged, kept
        if self._boot == _boot_id():
            self._offset_ns = int(data["offset_ns"])
            self._lowest_ns = min(self._lowest_ns, int(data["lowest_ns"]))
        else:
            # The clock's distance to another start of the machine says nothing, but what it was up to then does.
            self._lowest_ns = self._offset_ns + int(data["lowest_ns"]) - int(data["offset_ns"])

    def _first(self, place: Place, order: int, *, read: bool, closed: int) -> int:
        """Take the first touch of a place; returns the inode that the host has there, 0 for none."""
        status = self._host_status(place)
        if status is None:
            return 0
        if status.st_ctime_ns >= self._since_ns - SLACK_NS:
            self._keep(place, status, order, read=read)
            self._closed[place] = closed
        return status.st_ino

    def _note_write(self, write: FileWrite, known: int | None) -> None:
        """Take the first writing of a place; `known` is the inode that the host had at an earlier touch."""
        place = write.place
        touch = self._touches.get(place)
        if touch is not None:
            if touch.read and self._closed.get(place) == write.closed:
                touch = self._touches[place] = changed(touch, read=False)
            status = self._host_status(place)
            if status is not None and touch.sure and touch.seen.still_is(status):
                self._keep_bytes(place, touch)
            return
        status = self._host_status(place)
        if status is None:
            return
        late = status.st_ctime_ns >= self._since_ns - SLACK_NS
        if known is not None and (late or known != status.st_ino):
            # Touched before, and changed by the host since: that it had an entry of another inode is all we know.
            if known not in (0, status.st_ino):
                self._touches[place] = Touch(
                    seen=changed(HostEntry.of(status), ino=known), sure=False, read=False
                )
            return
        self._keep(place, status, write.opened, read=False)
        if self._touches[place].sure:
            self._keep_bytes(place, self._touches[place])

    def _keep(self, place: Place, status: os.stat_result, order: int, *, read: bool) -> None:
        ctime_ns = status.st_ctime_ns
        sure = ctime_ns < self._since_ns - SLACK_NS
        if not sure:
            margin_ns = SLACK_NS if read else SLACK_NS + status.st_size * _COPY_UP_NS_A_BYTE
            sure = ctime_ns < self._not_before_ns(order) - margin_ns
        target = ""
        if stat.S_ISLNK(status.st_mode):
            with suppress(OSError):
                target = os.fsdecode(os.readlink(self._lowers[place.root] + path_bytes(place.path)))
        self._touches[place] = Touch(seen=HostEntry.of(status, link_target=target), sure=sure, read=read)

    def _keep_bytes(self, place: Place, touch: Touch) -> None:
        """Keep the host's bytes of a text that the agent writes, if they surely are what it began from."""
        seen = touch.seen
        size = seen.size_bytes
        if not stat.S_ISREG(seen.mode) or size > BASE_FILE_BYTES or seen.digest:
            return
        if self._bytes + size > BASE_RUN_BYTES or self._is_closed:
            return
        with suppress(OSError):
            data = self._host_bytes(place, seen)
            if data is None or b"\0" in data:
                return
            if self._pack is None:
                # one file for all: to make one costs far more than to write it
                os.mkdir(self._folder.at(BASE), 0o700)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
                self._pack = os.open(self._folder.at(BASE, _PACK), flags, 0o600)
            if os.pwrite(self._pack, data, self._bytes) != size:
                return
            self._kept[place] = self._bytes
            self._bytes += size
            self._touches[place] = changed(touch, seen=changed(seen, digest=sha256(data).hexdigest()))

    def _host_bytes(self, place: Place, seen: HostEntry) -> bytes | None:
        """Read a host file over no link; None where it is not what was seen. Raises: OSError."""
        top = self._tops.get(place.root)
        if top is None:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            top = self._tops[place.root] = os.open(self._lowers[place.root], flags)
        path = os.fsdecode(path_bytes(place.path))
        file = open_beneath(top, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            if not seen.still_is(os.fstat(file)):
                return None
            data = os.pread(file, seen.size_bytes + 1, 0)
            return data if len(data) == seen.size_bytes and seen.still_is(os.fstat(file)) else None
        finally:
            os.close(file)

    def _host_status(self, place: Place) -> os.stat_result | None:
        try:
            return os.lstat(self._lowers[place.root] + path_bytes(place.path))
        except (OSError, KeyError):
            return None

    def _host_stamp(self, place: Place, at_ns: int) -> FileStamp | None:
        (item,) = (one for one in self._folder.folders if one.name == place.root)
        path = os.fsdecode(path_bytes(place.path))
        top = os.open(item.lower, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            stamp = before_stamp(top, path, whole=False)
            status = os.stat(path or ".", dir_fd=top, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        finally:
            os.close(top)
        # what was changed after the merge is no work of the merge: it equals nothing then
        return changed(stamp, size_bytes=-1) if at_ns and status.st_ctime_ns > at_ns else stamp

    def _copying_since_ns(self) -> int:
        """Return when a full copy was begun: an edit of the host since then may be in it or not."""
        if self._folder.staging is not Staging.COPY:
            return self._since_ns
        begun: list[int] = []
        for item in self._folder.folders:
            begun += _begun_ns(item)
        return min(begun, default=self._since_ns)

    def _stepped_back(self, now_ns: int) -> bool:
        lowest_ns = min(self._lowest_ns, _clock_offset_ns())
        return (
            lowest_ns < self._offset_ns - _STEP_NS or now_ns < max(self._saved_ns, self._since_ns) - _STEP_NS
        )


def _begun_ns(item: StagedFolder) -> list[int]:
    # nothing is ever put into a copy's work folder after it was made, before the copying
    with suppress(OSError):
        return [os.stat(item.work).st_ctime_ns]
    return []


def _clock_offset_ns() -> int:
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _parent(place: Place) -> Place:
    return Place(root=place.root, path=place.path.rpartition("/")[0])
