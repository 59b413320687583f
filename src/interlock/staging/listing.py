"""The exact diff of a staged layer against the host: what a merge would change, place by place."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace

from interlock.model.dependencies import PathMap
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType, Hazard
from interlock.model.errors import IntegrityError
from interlock.model.places import path_bytes, path_text
from interlock.model.records import dataclass
from interlock.staging.layers import OpenRoot, is_whiteout, mark_of, opened
from interlock.staging.outward import LinkTracer
from interlock.staging.roots import StagedRoot
from interlock.staging.stamps import (
    CAPABILITY_XATTR,
    check_depth,
    digest_of,
    open_file,
    open_folder,
    paths_of_inodes,
    read_file,
    read_xattrs,
    stamp_at,
    stamp_of,
    type_of,
)
from interlock.staging.syscalls import open_beneath

TEXT_LIMIT_BYTES = 65536

_TYPE_HAZARDS = {
    FileType.FIFO: Hazard.FIFO,
    FileType.SOCKET: Hazard.SOCKET,
    FileType.CHARACTER_DEVICE: Hazard.DEVICE,
    FileType.BLOCK_DEVICE: Hazard.DEVICE,
}


def list_changes(
    root: StagedRoot, *, judges_content: Callable[[str], bool], text_limit_bytes: int = TEXT_LIMIT_BYTES
) -> Iterator[FileChange]:
    """List every difference between the staged copy and the host, and nothing else.

    Takes: `judges_content`, whether the verdict on a place (its path, `path_text` writing) depends on its
    content, which is then given as text; `text_limit_bytes`, how much of it at most.
    Returns: changes in order, a folder before what lies below it, siblings by the bytes of their names; names
    that a changed file has beside its own (hard links, in an overlay with an index) come last. A
    removed folder is one DELETE, whose `before` counts (`size_bytes`) and digests what lies below; a folder
    that was emptied and made again shows as what differs inside; a folder's times alone are no change.
    Raises: IntegrityError where the layer cannot be read or holds what it cannot; ConflictError where the
    host lost a folder that was moved.
    Holds: no FIFO or device is opened, no symlink followed; memory does not grow with the number of changes.
    """
    try:
        with opened(root) as opened_root:
            yield from _Lister(opened_root, judges_content, text_limit_bytes).run()
    except OSError as error:
        name = path_text(os.fsencode(error.filename)) if isinstance(error.filename, str | bytes) else ""
        raise IntegrityError(
            f"the staged copy of `{root.name}` cannot be listed: {error.strerror} `{name}`",
            hint="check that both folders can be read, then list again",
        ) from error


def count_below(change: FileChange) -> int:
    """Return how many entries go with a removed folder (0 for anything else)."""
    removed = change.kind in (ChangeKind.DELETE, ChangeKind.REPLACE)
    if removed and change.before is not None and change.before.type is FileType.DIRECTORY:
        return change.before.size_bytes
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """One entry of the merged view, with the open folders it lies in on both sides."""

    name: str
    path: str
    lower_path: str
    upper_fd: int
    lower_fd: int | None
    lower: os.stat_result | None


class _Lister:
    """One walk over a root. Paths are `os.fsdecode` text relative to the root."""

    def __init__(
        self, opened_root: OpenRoot, judges_content: Callable[[str], bool], text_limit_bytes: int
    ) -> None:
        self._open = opened_root
        self._root = opened_root.root
        self._overlay = opened_root.is_overlay
        self._leaving = frozenset(opened_root.moved)
        self._sources = {new: old for old, new in opened_root.moved.items()}
        self._judges = judges_content
        self._limit = text_limit_bytes
        self._names: dict[int, int] = {}
        self._linked: dict[int, tuple[int, int, FileChange, str]] = {}
        self._tracer = LinkTracer(opened_root.root, opened_root.upper_fd, opened_root.lower_fd)

    def run(self) -> Iterator[FileChange]:
        upper_fd, lower_fd = self._open.upper_fd, self._open.lower_fd
        before, after = stamp_of(os.fstat(lower_fd)), stamp_of(os.fstat(upper_fd))
        if before != after or read_xattrs(lower_fd) != read_xattrs(upper_fd):
            place = self._open.place("")
            yield FileChange(kind=ChangeKind.ATTRIBUTES, place=place, before=before, after=after)
        yield from self._folder(upper_fd, lower_fd, "", "", whole=not self._overlay)
        yield from self._further_names()

    def _folder(
        self, upper_fd: int, lower_fd: int | None, path: str, lower_path: str, *, whole: bool
    ) -> Iterator[FileChange]:
        """Walk one folder of the merged view.

        Takes: `lower_fd`, the host's folder that it stands over, if any; `whole`, whether the upper side is
        all there is (an opaque folder, a full copy), so that what only the host has is gone.
        """
        check_depth(path)
        upper_names = set(os.listdir(upper_fd))
        names = upper_names | set(os.listdir(lower_fd)) if whole and lower_fd is not None else upper_names
        for name in sorted(names, key=os.fsencode):
            child = f"{path}/{name}" if path else name
            lower_child = f"{lower_path}/{name}" if lower_path else name
            upper = os.stat(name, dir_fd=upper_fd, follow_symlinks=False) if name in upper_names else None
            if upper is not None and self._overlay and is_whiteout(self._root, upper_fd, name, upper):
                upper = None
            lower = None
            if lower_fd is not None and lower_child not in self._leaving:
                try:
                    lower = os.stat(name, dir_fd=lower_fd, follow_symlinks=False)
                except FileNotFoundError:
                    lower = None
            pair = _Pair(
                name=name,
                path=child,
                lower_path=lower_child,
                upper_fd=upper_fd,
                lower_fd=lower_fd,
                lower=lower,
            )
            if upper is None:
                if lower is not None and lower_fd is not None:
                    yield self._removed(lower_fd, name, child, lower_child)
            elif stat.S_ISDIR(upper.st_mode):
                yield from self._directory(pair, upper, whole=whole)
            else:
                change = self._leaf(pair, upper)
                if change is not None:
                    yield change

    def _removed(self, lower_fd: int, name: str, child: str, lower_child: str) -> FileChange:
        place = self._open.place(child)
        before, text = self._before(lower_fd, name, lower_child, judged=self._judges(place.path))
        return FileChange(kind=ChangeKind.DELETE, place=place, before=before, before_text=text)

    def _directory(self, pair: _Pair, upper: os.stat_result, *, whole: bool) -> Iterator[FileChange]:
        name, child, lower_child = pair.name, pair.path, pair.lower_path
        lower, lower_fd = pair.lower, pair.lower_fd
        place = self._open.place(child)
        after = stamp_of(upper)
        fd = open_folder(pair.upper_fd, name, upper, lend_mode=True)
        below: int | None = None
        try:
            if self._overlay and mark_of(self._root, fd, "redirect") is not None:
                if lower is not None and lower_fd is not None:
                    yield self._removed(lower_fd, name, child, lower_child)
                source = self._sources[child]
                below = open_beneath(self._open.lower_fd, source, os.O_RDONLY | os.O_DIRECTORY)
                yield FileChange(
                    kind=ChangeKind.RENAME,
                    place=place,
                    source=self._open.place(source),
                    before=stamp_of(os.fstat(below)),
                    after=after,
                )
                yield from self._folder(fd, below, child, source, whole=False)
            elif lower is None or lower_fd is None:
                yield FileChange(kind=ChangeKind.CREATE, place=place, after=after)
                yield from self._folder(fd, None, child, "", whole=False)
            elif not stat.S_ISDIR(lower.st_mode):
                before, text = self._before(lower_fd, name, lower_child, judged=self._judges(place.path))
                yield FileChange(
                    kind=ChangeKind.REPLACE, place=place, before=before, after=after, before_text=text
                )
                yield from self._folder(fd, None, child, "", whole=False)
            else:
                below = open_folder(lower_fd, name, lower)
                before = stamp_of(lower)
                if before != after or read_xattrs(below) != read_xattrs(fd, lend_mode=True):
                    yield FileChange(kind=ChangeKind.ATTRIBUTES, place=place, before=before, after=after)
                opaque = whole or (self._overlay and mark_of(self._root, fd, "opaque") == b"y")
                yield from self._folder(fd, below, child, lower_child, whole=opaque)
        finally:
            os.close(fd)
            if below is not None:
                os.close(below)

    def _leaf(self, pair: _Pair, upper: os.stat_result) -> FileChange | None:
        """Compare one entry that is no folder; None where it is just as on the host."""
        place = self._open.place(pair.path)
        judged = self._judges(place.path)
        after, after_text, xattrs, target = self._after(pair.upper_fd, pair.name, upper, judged=judged)
        hazards = self._hazards(pair.path, after, xattrs, target)
        if upper.st_nlink > 1:
            self._names[upper.st_ino] = self._names.get(upper.st_ino, 0) + 1
        if pair.lower is None or pair.lower_fd is None:
            return FileChange(
                kind=ChangeKind.CREATE, place=place, after=after, hazards=hazards, after_text=after_text
            )
        before, before_text = self._before(pair.lower_fd, pair.name, pair.lower_path, judged=judged)
        if before.type is not after.type:
            kind = ChangeKind.REPLACE
        else:
            lower_fd = _open_if_needed(pair.lower_fd, pair.name, pair.lower, before)
            try:
                if not _same_content(lower_fd, (before, after), (pair.lower, upper)):
                    kind = ChangeKind.MODIFY
                elif _same_attributes(lower_fd, (pair.lower, upper), xattrs):
                    return None
                else:
                    kind = ChangeKind.ATTRIBUTES
            finally:
                if lower_fd is not None:
                    os.close(lower_fd)
        change = FileChange(
            kind=kind,
            place=place,
            before=before,
            after=after,
            hazards=hazards,
            before_text=before_text,
            after_text=after_text,
        )
        if self._overlay and kind is not ChangeKind.REPLACE and pair.lower.st_nlink > 1:
            self._linked[pair.lower.st_ino] = (upper.st_ino, upper.st_nlink, change, pair.lower_path)
        return change

    def _further_names(self) -> Iterator[FileChange]:
        """List the names of a changed hard-linked host file that the layer itself does not hold.

        An overlay with an index keeps hard links together: a write through one name shows at all of them.
        """
        groups = {
            lower_ino: (change, lower_path)
            for lower_ino, (ino, count, change, lower_path) in self._linked.items()
            if count > self._names.get(ino, 0)
        }
        if not groups:
            return
        paths = PathMap(self._open.moved)
        for lower_path, ino in paths_of_inodes(self._open.lower_fd, groups):
            change, listed = groups[ino]
            path = paths.to_merged(lower_path)
            if lower_path == listed or not self._shows_host(path):
                continue
            place = self._open.place(path)
            judged = self._judges(place.path)
            text = change.after_text
            if (
                judged
                and text is None
                and change.after is not None
                and change.after.size_bytes <= self._limit
            ):
                text = self._text_of(os.fsdecode(path_bytes(change.place.path)))
            yield replace(
                change,
                place=place,
                before_text=change.before_text if judged else None,
                after_text=text if judged else None,
            )

    def _shows_host(self, path: str) -> bool:
        """Say whether the merged view still shows at `path` what the host has, untouched by the layer."""
        fd = os.dup(self._open.upper_fd)
        try:
            for part in path.split("/"):
                try:
                    status = os.stat(part, dir_fd=fd, follow_symlinks=False)
                except FileNotFoundError:
                    return True
                if not stat.S_ISDIR(status.st_mode):
                    return False
                below = open_folder(fd, part, status, lend_mode=True)
                os.close(fd)
                fd = below
                if mark_of(self._root, fd, "opaque") == b"y":
                    return False
        finally:
            os.close(fd)
        return False

    def _text_of(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        parent = open_beneath(self._open.upper_fd, folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return self._after(
                parent, name, os.stat(name, dir_fd=parent, follow_symlinks=False), judged=True
            )[1]
        finally:
            os.close(parent)

    def _after(
        self, upper_fd: int, name: str, upper: os.stat_result, *, judged: bool
    ) -> tuple[FileStamp, str | None, dict[str, bytes], str]:
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

    def _before(
        self, lower_fd: int, name: str, lower_child: str, *, judged: bool
    ) -> tuple[FileStamp, str | None]:
        stamp = stamp_at(lower_fd, name, path=lower_child, leaving=self._leaving, whole=True)
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

    def _hazards(
        self, child: str, after: FileStamp, xattrs: dict[str, bytes], target: str
    ) -> tuple[Hazard, ...]:
        found: list[Hazard] = []
        if after.type in _TYPE_HAZARDS:
            found.append(_TYPE_HAZARDS[after.type])
        if after.type is FileType.SYMLINK and self._tracer.leads_outward(child, target):
            found.append(Hazard.OUTWARD_LINK)
        if after.type is not FileType.SYMLINK and after.mode & (stat.S_ISUID | stat.S_ISGID):
            found.append(Hazard.SET_ID)
        if CAPABILITY_XATTR in xattrs:
            found.append(Hazard.FILE_CAPABILITY)
        return tuple(found)


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _open_if_needed(dir_fd: int, name: str, status: os.stat_result, stamp: FileStamp) -> int | None:
    """Open the host's file for a comparison; None where it is no regular file or may not be read."""
    if stamp.type is not FileType.FILE:
        return None
    try:
        return open_file(dir_fd, name, status)
    except PermissionError:
        return None


def _same_content(
    lower_fd: int | None, stamps: tuple[FileStamp, FileStamp], statuses: tuple[os.stat_result, os.stat_result]
) -> bool:
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
    return (before.digest or digest_of(lower_fd, lower)) == after.digest


def _same_attributes(
    lower_fd: int | None, statuses: tuple[os.stat_result, os.stat_result], xattrs: dict[str, bytes]
) -> bool:
    lower, upper = statuses
    same = (lower.st_mode, lower.st_uid, lower.st_gid, lower.st_mtime_ns) == (
        upper.st_mode,
        upper.st_uid,
        upper.st_gid,
        upper.st_mtime_ns,
    )
    return same and (lower_fd is None or read_xattrs(lower_fd) == xattrs)
