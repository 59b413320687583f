"""The exact diff of a staged layer against the host: what a merge would change, place by place."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType, HostEdit
from interlock.model.errors import IntegrityError
from interlock.model.places import path_text
from interlock.staging.baseline import Baseline
from interlock.staging.comparing import SideReader, hazards_of, open_if_needed, same_attributes, same_content
from interlock.staging.copied_moves import CopiedMoves
from interlock.staging.further_names import further_names
from interlock.staging.host_edits import HostEdits
from interlock.staging.kept_places import only_kept
from interlock.staging.layers import OpenRoot, is_whiteout, mark_of, opened
from interlock.staging.linked import Handle, has_several_names, origin_of
from interlock.staging.moved_files import Gathering, MovedFiles, both
from interlock.staging.outside_names import OutsideNames
from interlock.staging.outward import LinkTracer
from interlock.staging.pairs import Pair, Trail
from interlock.staging.roots import StagedRoot
from interlock.staging.stamps import check_depth, open_folder, read_xattrs, stamp_of
from interlock.staging.syscalls import open_beneath

TEXT_LIMIT_BYTES = 65536


def list_changes(
    root: StagedRoot,
    *,
    judges_content: Callable[[str], bool],
    text_limit_bytes: int = TEXT_LIMIT_BYTES,
    baseline: Baseline | None = None,
    thrown: Callable[[str], None] = lambda _path: None,
) -> Iterator[FileChange]:
    """List every difference between the staged copy and the host, and nothing else.

    Takes: `judges_content`, whether the verdict on a place (its path, `path_text` writing) depends on its
    content, which is then given as text; `text_limit_bytes`, how much of it at most; `baseline`, what the
    agent began from: a change of a place that the host has changed since is then marked (`host_edit`), and one
    whose two sides came to the same is left out; `thrown`, told of each file (`path_text` writing) that the command
    wrote where the root keeps nothing.
    Returns: changes in order, a folder before what lies below it, siblings by the bytes of their names; names
    that a changed file has beside its own (hard links, in an overlay with an index) come last. A
    removed folder is one DELETE, whose `before` counts (`size_bytes`) and digests what lies below; a folder
    that was emptied and made again shows as what differs inside; a folder's times alone are no change.
    Raises: IntegrityError where the layer cannot be read or holds what it cannot.
    Holds: no FIFO or device is opened, no symlink followed; memory does not grow with the number of changes.
    """
    try:
        with opened(root) as opened_root:
            found = _Lister(opened_root, judges_content, text_limit_bytes, baseline).run()
            yield from found if root.keeps is None else only_kept(found, root.keeps, thrown)
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


class _Lister:
    """One walk over a root. Paths are `os.fsdecode` text relative to the root."""

    def __init__(
        self,
        opened_root: OpenRoot,
        judges_content: Callable[[str], bool],
        text_limit_bytes: int,
        baseline: Baseline | None,
    ) -> None:
        self._open = opened_root
        self._root = opened_root.root
        self._overlay = opened_root.is_overlay
        self._leaving = frozenset(opened_root.moved)
        self._sources = {new: old for old, new in opened_root.moved.items()}
        self._judges = judges_content
        self._read = SideReader(opened_root, self._leaving, text_limit_bytes)
        self._linked: dict[Handle, str] = {}
        self._edits = None if baseline is None else HostEdits(opened_root, baseline)
        self._moved = MovedFiles(opened_root)
        self._outside = OutsideNames(opened_root.lower_fd)
        self._moves = None
        if baseline is not None and self._edits is not None:
            self._moves = CopiedMoves(opened_root, self._edits, baseline)
        self._tracer = LinkTracer(opened_root.root, opened_root.upper_fd, opened_root.lower_fd)

    def run(self) -> Iterator[FileChange]:
        upper_fd, lower_fd = self._open.upper_fd, self._open.lower_fd
        lower, upper = os.fstat(lower_fd), self._open.loans.true(os.fstat(upper_fd))
        trail = Trail() if self._edits is None else self._edits.trail
        before, after = stamp_of(lower), stamp_of(upper)
        if before != after or read_xattrs(lower_fd) != read_xattrs(upper_fd):
            change = FileChange(
                kind=ChangeKind.ATTRIBUTES, place=self._open.place(""), before=before, after=after
            )
            top = Pair(
                name=".",
                path="",
                lower_path="",
                upper_fd=upper_fd,
                lower_fd=lower_fd,
                lower=lower,
                trail=trail,
            )
            yield from self._folder_change(change, top, upper, upper_fd)
        yield from self._folder(upper_fd, lower_fd, ("", ""), trail, whole=not self._overlay)
        for further in further_names(self._open, self._linked):
            status = os.stat(further.name, dir_fd=further.upper_fd, follow_symlinks=False)
            if (found := self._leaf(further, status)) is not None:
                yield found

    def _folder(
        self, upper_fd: int, lower_fd: int | None, paths: tuple[str, str], trail: Trail, *, whole: bool
    ) -> Iterator[FileChange]:
        """Walk one folder of the merged view.

        Takes: `lower_fd`, the host's folder that it stands over, if any; `paths`, in the merged view and on the
        host; `whole`, whether the upper side is all there is (an opaque folder, a full copy), so that what only
        the host has is gone.
        """
        path, lower_path = paths
        check_depth(path)
        upper_names = set(os.listdir(upper_fd))
        names = upper_names | set(os.listdir(lower_fd)) if whole and lower_fd is not None else upper_names
        for name in sorted(names, key=os.fsencode):
            child = f"{path}/{name}" if path else name
            lower_child = f"{lower_path}/{name}" if lower_path else name
            upper = None
            if name in upper_names:
                upper = self._open.loans.true(os.stat(name, dir_fd=upper_fd, follow_symlinks=False))
            if upper is not None and self._overlay and is_whiteout(self._root, upper_fd, name, upper):
                upper = None
            lower = None
            is_left = lower_child in self._leaving
            if lower_fd is not None and not is_left:
                try:
                    lower = os.stat(name, dir_fd=lower_fd, follow_symlinks=False)
                except FileNotFoundError:
                    lower = None
            pair = Pair(
                name=name,
                path=child,
                lower_path=lower_child,
                upper_fd=upper_fd,
                lower_fd=lower_fd,
                lower=lower,
                trail=trail,
                is_left=is_left,
            )
            if upper is None:
                if lower is not None:
                    yield from self._removed(pair)
            elif stat.S_ISDIR(upper.st_mode):
                yield from self._directory(pair, upper, whole=whole)
            else:
                change = self._leaf(pair, upper)
                if change is not None:
                    yield change

    def _removed(self, pair: Pair) -> Iterator[FileChange]:
        place = self._open.place(pair.path)
        removal = None if self._edits is None else self._edits.removal(pair)
        gathering = Gathering(self._moved)
        passing = both(gathering.passing, None if removal is None else removal.passing)
        before, text = self._read.before(pair, judged=self._judges(place.path), passing=passing)
        assert pair.lower is not None
        needs = gathering.needs() or self._moved.needs_of_file(before, pair.lower)
        change = FileChange(kind=ChangeKind.DELETE, place=place, before=before, before_text=text, needs=needs)
        if self._edits is None or removal is None:
            yield change
        elif (settled := self._edits.settled_removal(change, pair, removal.edit)) is not None:
            yield self._with_moves(settled)

    def _with_moves(self, change: FileChange) -> FileChange:
        """Return the removal of an entry, marked where its content may be what came to a place in doubt."""
        if self._moves is None or change.host_edit is not None:
            return change
        edit = self._moves.in_doubt()
        return change if edit is None else replace(change, host_edit=edit)

    def _directory(self, pair: Pair, upper: os.stat_result, *, whole: bool) -> Iterator[FileChange]:
        child, lower, lower_fd, trail = pair.path, pair.lower, pair.lower_fd, pair.trail
        place = self._open.place(child)
        after = stamp_of(upper)
        fd = open_folder(pair.upper_fd, pair.name, upper, lend_mode=True)
        below: int | None = None
        try:
            redirected = self._overlay and mark_of(self._root, fd, "redirect") is not None
            if redirected and child in self._sources:
                if lower is not None:
                    yield from self._removed(pair)
                source = self._sources[child]
                below = open_beneath(self._open.lower_fd, source, os.O_RDONLY | os.O_DIRECTORY)
                lower = os.fstat(below)
                change = FileChange(
                    kind=ChangeKind.RENAME,
                    place=place,
                    source=self._open.place(source),
                    before=stamp_of(lower),
                    after=after,
                )
                trail = self._trail_below(Trail(moved=True), child, lower, (below, fd))
                moved = replace(pair, lower=lower, trail=trail)
                yield from self._folder_change(change, moved, upper, fd)
                yield from self._folder(fd, below, (child, source), trail, whole=False)
            elif redirected and child in self._open.lost:
                yield self._lost(pair, after)
                yield from self._folder(
                    fd, None, (child, ""), replace(trail, moved=True, gone=True), whole=False
                )
            elif lower is None or lower_fd is None:
                change = FileChange(kind=ChangeKind.CREATE, place=place, after=after)
                if self._edits is not None:
                    if self._edits.is_left_alone(pair, fd):
                        return
                    change = self._edits.lost_folder(change, pair, upper, fd)
                    trail = replace(trail, gone=change.host_edit is not None)
                yield change
                yield from self._folder(fd, None, (child, ""), trail, whole=False)
            elif not stat.S_ISDIR(lower.st_mode):
                before, text = self._read.before(pair, judged=self._judges(place.path))
                change = FileChange(
                    kind=ChangeKind.REPLACE,
                    place=place,
                    before=before,
                    after=after,
                    before_text=text,
                    needs=self._moved.needs_of_file(before, lower),
                )
                if self._edits is not None:
                    settled = self._edits.settled(change, pair, upper, same_xattrs=False)
                    if settled is None:
                        return
                    change = settled
                yield change
                yield from self._folder(fd, None, (child, ""), trail, whole=False)
            else:
                below = self._open_host_folder(lower_fd, pair, lower)
                before = stamp_of(lower)
                trail = replace(trail, moved=trail.moved or redirected)
                trail = self._trail_below(trail, child, lower, (below, fd))
                if before != after or read_xattrs(below) != read_xattrs(fd, lend_mode=True):
                    change = FileChange(kind=ChangeKind.ATTRIBUTES, place=place, before=before, after=after)
                    yield from self._folder_change(change, replace(pair, trail=trail), upper, fd)
                # one that was moved and moved back shows the host's own, also in a folder that was made anew
                opaque = not redirected and (
                    whole or (self._overlay and mark_of(self._root, fd, "opaque") == b"y")
                )
                yield from self._folder(fd, below, (child, pair.lower_path), trail, whole=opaque)
        finally:
            os.close(fd)
            if below is not None:
                os.close(below)

    def _open_host_folder(self, lower_fd: int, pair: Pair, lower: os.stat_result) -> int:
        try:
            return open_folder(lower_fd, pair.name, lower)
        except PermissionError as error:
            path = path_text(os.fsencode(f"{self._root.lower}/{pair.lower_path}"))
            raise IntegrityError(
                f"the host's folder `{self._open.place(pair.path)}` is closed to you: its changes cannot be told",
                hint=f"nothing was changed; open it, then go on with the run: chmod u+rx '{path}'",
            ) from error

    def _lost(self, pair: Pair, after: FileStamp) -> FileChange:
        """Return the change of a folder that the agent moved here and the host removed meanwhile."""
        place = self._open.place(pair.path)
        kind, before, text = ChangeKind.CREATE, None, None
        if pair.lower is not None:
            kind = ChangeKind.REPLACE
            before, text = self._read.before(pair, judged=self._judges(place.path))
        return FileChange(
            kind=kind, place=place, before=before, after=after, before_text=text, host_edit=HostEdit.GONE
        )

    def _trail_below(self, trail: Trail, path: str, lower: os.stat_result, fds: tuple[int, int]) -> Trail:
        """Return what is known below a folder of both sides; `fds` are the host's and the layer's."""
        if self._edits is None or trail.swapped is not None:
            return trail
        swapped = self._edits.swapped(path, lower, *fds)
        return trail if swapped is None else replace(trail, swapped=swapped)

    def _folder_change(
        self, change: FileChange, pair: Pair, upper: os.stat_result, upper_fd: int
    ) -> Iterator[FileChange]:
        if self._edits is None:
            yield change
        elif (settled := self._edits.settled_folder(change, pair, upper, upper_fd)) is not None:
            yield settled

    def _leaf(self, pair: Pair, upper: os.stat_result) -> FileChange | None:
        """Compare one entry that is no folder; None where it is just as on the host."""
        place = self._open.place(pair.path)
        lower_name = pair.lower_name or pair.name
        judged = self._judges(place.path)
        after, after_text, xattrs, target = self._read.after(pair.upper_fd, pair.name, upper, judged=judged)
        hazards = hazards_of(
            after, xattrs, outward=target != "" and self._tracer.leads_outward(pair.path, target)
        )
        origin = origin_of(self._open, pair.upper_fd, pair.name, upper)
        if origin is not None and origin not in self._linked and has_several_names(self._open, origin):
            self._linked[origin] = pair.path
        if pair.lower is None or pair.lower_fd is None:
            change = FileChange(
                kind=ChangeKind.CREATE, place=place, after=after, hazards=hazards, after_text=after_text
            )
            return self._settled(change, pair, upper, same_xattrs=False)
        removal = None
        if self._edits is not None and stat.S_ISDIR(pair.lower.st_mode):
            removal = self._edits.removal(pair)
        gathering = Gathering(self._moved)
        passing = both(gathering.passing, None if removal is None else removal.passing)
        before, before_text = self._read.before(pair, judged=judged, passing=passing)
        same_xattrs = False
        needs: tuple[str, ...] = ()
        if before.type is not after.type:
            kind = ChangeKind.REPLACE
            needs = gathering.needs() or self._moved.needs_of_file(before, pair.lower)
        else:
            lower_fd = open_if_needed(pair.lower_fd, lower_name, pair.lower, before)
            try:
                same_xattrs = lower_fd is None or read_xattrs(lower_fd) == xattrs
                if not same_content(lower_fd, (before, after), (pair.lower, upper)):
                    kind = ChangeKind.MODIFY
                elif same_xattrs and same_attributes(pair.lower, upper):
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
            needs=needs,
            outside_names=self._outside.of(pair.lower),
        )
        below = None if removal is None else removal.edit
        return self._settled(change, pair, upper, same_xattrs=same_xattrs, below=below)

    def _settled(
        self,
        change: FileChange,
        pair: Pair,
        upper: os.stat_result,
        *,
        same_xattrs: bool,
        below: HostEdit | None = None,
    ) -> FileChange | None:
        if self._edits is None:
            return change
        settled = self._edits.settled(change, pair, upper, same_xattrs=same_xattrs, below=below)
        removes = change.kind is ChangeKind.REPLACE and count_below(change) > 0
        return self._with_moves(settled) if settled is not None and removes else settled
