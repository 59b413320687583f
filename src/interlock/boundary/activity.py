"""File activity from the kernel: fanotify events of the overlays, folded into reads and writes.

The kernel merges what waits in its queue, so an event's place in the queue bounds its beginning and only the
end of a drain bounds its end. An interval therefore never looks shorter than it was.
"""

import ctypes
import errno
import os
import stat
import struct
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import suppress

from interlock.boundary import kernel
from interlock.boundary.drains import DrainTimes, stamp_clock_ns
from interlock.boundary.plan import Overlay, OverlayError
from interlock.model.errors import BoundaryError
from interlock.model.events import ActivityLost, ActivityObserved, FileRead, FileWrite
from interlock.model.places import Place, path_text

_CLOEXEC, _NONBLOCK, _UNLIMITED_QUEUE, _UNLIMITED_MARKS = 1, 2, 0x10, 0x20
_REPORT_NAME_AND_TARGET = 0x200 | 0x400 | 0x800 | 0x1000
_MARK_ADD, _MARK_FILESYSTEM = 1, 0x100
_ATTRIB, _CLOSE_WRITE, _CLOSE_NOWRITE, _OPEN = 0x4, 0x8, 0x10, 0x20
_CREATE, _DELETE, _OVERFLOW, _RENAME, _ON_FOLDER = 0x100, 0x200, 0x4000, 0x10000000, 0x40000000
_MASK = _ATTRIB | _CLOSE_WRITE | _CLOSE_NOWRITE | _OPEN | _CREATE | _DELETE | _RENAME | _ON_FOLDER
_CHANGED = _ATTRIB | _CLOSE_WRITE | _CREATE | _DELETE
_TARGET, _NAME, _OLD_NAME, _NEW_NAME = 1, 2, 10, 12
_OVERLAY_HANDLES = (0xF8, 0xFB)
_OVERLAY_MAGIC = 0xFB
_OF_UPPER = 4

_EVENT = struct.Struct("=IBBHQii")
_RECORD = struct.Struct("=BBH")
_HANDLE = struct.Struct("=Ii")
_BUFFER_BYTES = 1 << 18
_BATCH = 512
_GLANCE_NS = 250_000_000
"""How often the queue is looked at where nothing happens: so old at most is the last moment that bounds an event."""

SECOND_NAME = "a file of the host was given a second name (hard link), through which reads cannot be told"

VANISHED = "a folder was gone before what happened in it could be placed"

_Observe = Callable[[ActivityObserved | ActivityLost], None]


def _ignore(_: ActivityObserved | ActivityLost) -> None:
    """Drop what is seen before anyone listens: nothing of the command runs then."""


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split an event's records into kind and body; padding is cut so that equal handles are equal bytes."""
    at = 0
    while at + 4 <= len(data):
        kind, _, size = _RECORD.unpack_from(data, at)
        if size < 4:
            break
        body = data[at + 4 : at + size]
        if kind == _TARGET:
            body = body[: 16 + _HANDLE.unpack_from(body, 8)[0]]
        yield kind, body
        at += size


class _Tree:
    """One observed overlay: where its folder handles are opened, and its layers."""

    __slots__ = ("lower", "name", "root", "upper", "used")

    def __init__(self, overlay: Overlay, mount: int) -> None:
        self.name = overlay.name
        self.lower = os.fsencode(overlay.lower)
        self.upper = os.fsencode(overlay.upper)
        with os.scandir(self.upper) as entries:
            self.used = next(entries, None) is not None
        # A clone that is attached nowhere: its paths begin at the overlay's root, whoever asks.
        clone = kernel.clone_tree(b"", directory=mount, recursive=False)
        try:
            self.root = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=clone)
        finally:
            os.close(clone)


class Watch:
    """Reads the kernel's events on the observed overlays and tells `observe`.

    Takes: the overlays with their mount descriptors.
    Raises: BoundaryError, if this kernel or file system gives no such events.
    """

    def __init__(self, overlays: tuple[tuple[Overlay, int], ...]) -> None:
        self.observe: _Observe = _ignore
        self.descriptor = self.pulse = -1
        self._trees: dict[bytes, _Tree] = {}
        self._folders: dict[bytes, bytes] = {}
        self._parents: dict[bytes, bytes] = {}
        self._order = 0
        self.times = DrainTimes()
        self._lost = False
        self._linked = False
        self._vanished = False
        self._told: set[str] = set()
        self._reads: dict[bytes, tuple[int, bool]] = {}
        self._writes: dict[bytes, int] = {}
        self._opened: dict[bytes, int] = {}
        self._read: set[bytes] = set()
        self._open_yet: set[bytes] = set()
        self._written: set[bytes] = set()
        flags = _CLOEXEC | _NONBLOCK | _UNLIMITED_QUEUE | _UNLIMITED_MARKS | _REPORT_NAME_AND_TARGET
        try:
            self.descriptor = kernel.call(
                "fanotify", kernel.NR_FANOTIFY_INIT, flags, os.O_RDONLY | os.O_CLOEXEC
            )
            for overlay, mount in overlays:
                tree = _Tree(overlay, mount)
                identity = struct.pack("=Q", os.fstatvfs(tree.root).f_fsid)
                if identity in self._trees:
                    os.close(tree.root)
                    raise OSError(0, "two overlays cannot be told apart")
                self._trees[identity] = tree
                kernel.call(
                    "fanotify mark", kernel.NR_FANOTIFY_MARK, self.descriptor,
                    _MARK_ADD | _MARK_FILESYSTEM, _MASK, tree.root, b".",
                )  # fmt: skip
            self.pulse = kernel.interval_descriptor(_GLANCE_NS)
            self.times.note(0, stamp_clock_ns())
        except OSError as error:
            self.close()
            # an overlay over an overlay (a container's root) has no file handles: a full copy can stand in for it
            kind = OverlayError if error.errno == errno.EOPNOTSUPP else BoundaryError
            raise kind(
                f"file events cannot be had on the staged copy: {error.strerror}",
                hint="keep Interlock's state on a file system with file handles (ext4, xfs, btrfs, tmpfs), "
                "Linux 5.17 or newer",
            ) from None

    def glance(self) -> None:
        """Look at the queue because the pulse says so."""
        with suppress(BlockingIOError):
            os.read(self.pulse, 8)
        self.drain()

    def catch_up(self) -> None:
        """Take and report what the kernel has; what is open by now counts as read.

        Something is about to leave: a file that is read and not yet closed must not be missed.
        """
        self.drain(open_too=True)

    def drain(self, *, open_too: bool = False) -> None:
        """Take what the kernel has, and report it."""
        if self._lost:
            self._skip()
            return
        try:
            while True:
                asked_ns = stamp_clock_ns()
                try:
                    data = os.read(self.descriptor, _BUFFER_BYTES)
                except BlockingIOError:
                    break
                self._fold(data)
            if open_too and self._open_yet:
                for key in self._open_yet - self._read:
                    self._reads.setdefault(key, (self._opened.get(key, self._order), key in self._written))
                    self._read.add(key)
                self._open_yet.clear()
            self._report()
            self.times.note(self._order, asked_ns)
            for happened, reason in ((self._linked, SECOND_NAME), (self._vanished, VANISHED)):
                if happened and reason not in self._told:
                    self._told.add(reason)
                    self.observe(ActivityLost(reason=reason))
        except (OSError, ValueError, KeyError, struct.error) as error:
            self._lose(f"file events could not be read: {type(error).__name__}")

    def finish(self) -> None:
        """Report the rest; the process tree is gone."""
        self.drain()

    def close(self) -> None:
        """Let the kernel's side go. May be called again."""
        if self.descriptor >= 0:
            # The kernel waits for its other readers here, longer than a short run takes: nobody else needs to.
            start_new_thread(os.close, (self.descriptor,))
            self.descriptor = -1
        if self.pulse >= 0:
            os.close(self.pulse)
            self.pulse = -1
        for tree in self._trees.values():
            os.close(tree.root)
        self._trees = {}

    def _skip(self) -> None:
        try:
            while os.read(self.descriptor, _BUFFER_BYTES):
                pass
        except OSError:
            pass

    def _lose(self, reason: str) -> None:
        self._lost = True
        self._skip()
        self.observe(ActivityLost(reason=reason))

    def _fold(self, data: bytes) -> None:
        reads, writes = self._reads, self._writes
        at, end, order = 0, len(data), self._order
        opened, read, written = self._opened, self._read, self._written
        event, record = _EVENT.unpack_from, _RECORD.unpack_from
        while at < end:
            length, _, _, skip, mask, _, _ = event(data, at)
            first = at + skip
            at += length
            order += 1
            if mask & _OVERFLOW:
                raise ValueError("overflow")
            if mask & _RENAME:
                self._rename(data[first:at], mask, order)
                order = max(order, self._order)
                reads, writes = self._reads, self._writes
                continue
            if mask & _ON_FOLDER:
                if mask & (_CREATE | _DELETE):
                    self._note_folder(data[first:at])
                continue
            kind, _, size = record(data, first)
            if kind != _NAME:
                continue  # an inode without a name: its link count
            key = data[first + 4 : first + size]
            if mask & _CREATE and not self._linked:
                self._linked = self._of_lower(data, first + size, at)
            since = opened.get(key)
            if since is None:
                since = opened[key] = order
                self._open_yet.add(key)
            if mask & _CLOSE_NOWRITE and key not in read:
                read.add(key)
                reads.setdefault(key, (since, key in written))
            if mask & _CHANGED:
                if (
                    mask & (_CLOSE_WRITE | _ATTRIB)
                    and key not in written
                    and key not in read
                    and self._below(key)
                ):
                    # Perhaps read before the first store.
                    read.add(key)
                    reads.setdefault(key, (since, False))
                if mask & (_CLOSE_WRITE | _DELETE):
                    read.discard(key)
                    del opened[key]
                    (written.add if mask & _CLOSE_WRITE else written.discard)(key)
                writes.setdefault(key, since)
        self._order = order

    def _note_folder(self, records: bytes, named: int = _NAME) -> None:
        """Keep where a folder stood, for events below it that are read only after it is gone."""
        parts = dict(_records(records))
        child, parent = parts.get(_TARGET), parts.get(named)
        if child and parent:
            self._parents[child] = parent

    def _of_lower(self, data: bytes, at: int, end: int) -> bool:
        """Say whether a creation gave a file of the host a second name.

        Source: the kernel's fs/overlayfs/overlayfs.h, `struct ovl_fh`: the handle of a file that came from
        below keeps pointing there.
        """
        if at + 20 > end:
            return True
        kind, _, _ = _RECORD.unpack_from(data, at)
        size, form = _HANDLE.unpack_from(data, at + 12)
        if kind != _TARGET or form not in _OVERLAY_HANDLES or size < 8 or data[at + 24] != _OVERLAY_MAGIC:
            return True
        return not data[at + 20 + 6] & _OF_UPPER

    def _rename(self, records: bytes, mask: int, order: int) -> None:
        names = dict(_records(records))
        old, new = names[_OLD_NAME], names[_NEW_NAME]
        if mask & _ON_FOLDER:
            # Every path below moved: nothing that was said of a place holds for its new name.
            self._order = order
            self._report()
            self._folders.clear()
            self._note_folder(records, _NEW_NAME)
            self._read.clear()
            self._open_yet.update(self._opened)
        if old not in self._written:
            # Moved bytes are read from the old place and written to the new one.
            self._reads.setdefault(old, (self._opened.get(old, order), False))
        self._written.discard(old)
        self._written.add(new)
        self._read.discard(old)
        self._read.discard(new)
        for key in (old, new):
            self._writes.setdefault(key, self._opened.pop(key, order))

    def _below(self, key: bytes) -> bool:
        """Say whether the place held the host's bytes before this run touched it."""
        tree = self._trees[key[:8]]
        try:
            path = self._path(key)
            return stat.S_ISREG(os.lstat(tree.lower + b"/" + path).st_mode)
        except OSError:
            return False

    def _path(self, key: bytes) -> bytes:
        size, kind = _HANDLE.unpack_from(key, 8)
        folder = key[: 16 + size]
        base = self._folders.get(folder)
        if base is None:
            base = self._folders[folder] = self._resolve(folder, size, kind)
        name = key[16 + size :].split(b"\0", 1)[0]
        return base + name

    def _resolve(self, folder: bytes, size: int, kind: int) -> bytes:
        tree = self._trees[folder[:8]]

        handle = ctypes.create_string_buffer(_HANDLE.pack(size, kind) + folder[16:], 8 + size)
        parent = self._parents.get(folder)
        try:
            opened = kernel.call(
                "open_by_handle_at", kernel.NR_OPEN_BY_HANDLE_AT, tree.root, handle, os.O_PATH
            )
        except OSError as error:
            if error.errno != errno.ESTALE or parent is None:
                raise
            return self._path(parent) + b"/"
        try:
            path = os.fsencode(os.readlink(f"/proc/self/fd/{opened}"))
            gone = path.endswith(b" (deleted)") and not _is_at(tree.root, path, os.fstat(opened))
        finally:
            os.close(opened)
        if gone and parent is None:
            # Deleted, and the event that says where it was is not read yet: no place is better than a wrong one.
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        if gone and parent is not None:
            return self._path(parent) + b"/"
        return path.lstrip(b"/") + b"/" if path != b"/" else b""

    def _report(self) -> None:
        reads, writes = self._reads, self._writes
        if not reads and not writes:
            return
        self._reads, self._writes = {}, {}
        self._order = closed = self._order + 1
        seen = [
            *((since, True, key, staged) for key, (since, staged) in reads.items()),
            *((since, False, key, False) for key, since in writes.items()),
        ]
        seen.sort(key=lambda one: one[0])
        for start in range(0, len(seen), _BATCH):
            read_batch: list[FileRead] = []
            write_batch: list[FileWrite] = []
            for since, is_read, key, own in seen[start : start + _BATCH]:
                tree = self._trees[key[:8]]
                try:
                    path = self._path(key)
                except OSError:
                    self._vanished = True
                    continue
                place = Place(root=tree.name, path=path_text(path))
                if is_read:
                    staged = own or (tree.used and os.path.lexists(tree.upper + b"/" + path))
                    read_batch.append(FileRead(place=place, opened=since, closed=closed, staged=staged))
                else:
                    write_batch.append(FileWrite(place=place, opened=since, closed=closed))
            if read_batch or write_batch:
                self.observe(ActivityObserved(reads=tuple(read_batch), writes=tuple(write_batch)))


def _is_at(root: int, path: bytes, status: os.stat_result) -> bool:
    """Say whether a folder stands at a path that the kernel gave; a gone one gets a suffix, which may be a name too."""
    try:
        found = os.stat(path.lstrip(b"/"), dir_fd=root, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(found, status)
