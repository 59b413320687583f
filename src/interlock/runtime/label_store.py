"""Labels of places between runs: written with each merge, and told to the next run that stages these places.

labels/places.sqlite   below the state folder; the rows are those of `label_rows`
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.events import LabelsKnown, PlaceLabel
from interlock.model.labels import Confidentiality, Integrity
from interlock.model.places import Place, path_bytes, path_text
from interlock.model.records import changed
from interlock.runtime.folders import state_folder

if TYPE_CHECKING:
    from interlock.monitor import State
    from interlock.policy import Knowledge, Policy
    from interlock.runtime.folders import RunFolder, StagedFolder
    from interlock.runtime.label_rows import Row
    from interlock.staging.roots import StagedRoot

MOST_LABELS = 20_000
"""So many labels are told to a run; of more the rest is told by its level alone, or counts as lost."""
MOST_UNSEEN = 5_000
"""Of places that only might hold something, so many are told one by one."""
RECOGNISED_BYTES = 8 << 20
RECOGNISED_RUN_BYTES = 64 << 20
"""Bounds of what is looked through for sensitive values when it is merged: of one file, and of a merge. Beyond them a
file is as sensitive as it might be."""
_HASHED_RUN_BYTES = 256 << 20
_MOVED_AT_MOST = 100_000
NEXT = "labels of earlier runs are lost: review the files, then start a new store: interlock labels --reset"


def store_file() -> str:
    """Return the store's file."""
    return os.path.join(state_folder(), "labels", "places.sqlite")


def is_there() -> bool:
    """Say whether there is a store; cheap, since every start asks."""
    return os.path.exists(store_file())


def stamp() -> tuple[int, int, int] | None:
    """Return what changes when the store is written, None where there is none."""
    with suppress(OSError):
        status = os.stat(store_file())
        return status.st_ino, status.st_size, status.st_mtime_ns
    return None


def labels_for(folders: tuple[StagedFolder, ...], policy: Policy) -> LabelsKnown | None:
    """Return what the store says of the places of a run on which its verdicts may depend, None where that is nothing.

    Holds: it never fails; a store that is damaged makes `lost`.
    """
    if not is_there():
        return None
    from interlock.runtime.label_rows import DamagedError, read_rows

    roots = [(path_text(os.fsencode(folder.lower)).rstrip("/"), folder) for folder in folders]
    tops = [root for root, _folder in roots if not any(_within(root, one) for one, _other in roots)]
    try:
        lost, rows = read_rows(
            store_file(), *tops, whole=bool(policy.trusted or policy.git_trusted), everything=False
        )
    except DamagedError as error:
        return LabelsKnown(lost=f"the label store is damaged: {error}")
    if lost:
        return LabelsKnown(lost=lost)
    found = list(_fitting(roots, policy, rows))
    return _told(found, policy) if found else None


def _within(path: str, folder: str) -> bool:
    return path != folder and path.startswith(f"{folder}/")


def _fitting(
    roots: list[tuple[str, StagedFolder]], policy: Policy, rows: Iterable[Row]
) -> Iterator[PlaceLabel]:
    """Yield the labels of rows that fit the bytes that the host has now, each at the innermost root around it."""
    keeps = {folder.name: folder.keeps() for _root, folder in roots}
    budget = [_HASHED_RUN_BYTES]
    done = ""
    for row in rows:
        if row.path == done:
            continue
        root, folder = max((one for one in roots if _within(row.path, one[0])), key=_depth)
        place = Place(root=folder.name, path=row.path[len(root) + 1 :])
        keep = keeps[folder.name]
        if keep is not None and not keep(place.path):
            continue
        if row.may_hold is Confidentiality.PUBLIC and not policy.may_trust(place):
            continue
        if _has(row, budget):
            done = row.path
            yield PlaceLabel(
                place=place,
                integrity=row.integrity,
                level=row.level,
                may_hold=row.may_hold,
                run_id=row.run_id,
                held=row.held,
                fields=row.fields,
            )


def _depth(root: tuple[str, StagedFolder]) -> int:
    return len(root[0])


def _has(row: Row, budget: list[int]) -> bool:
    """Say whether the host still has the bytes of a row; where that would take too long, it has."""
    try:
        file = os.open(path_bytes(row.path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        return True
    except OSError:
        return False
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size != row.size_bytes:
            return False
        budget[0] -= row.size_bytes
        return not row.digest or budget[0] < 0 or _digest(file) == row.digest
    except OSError:
        return True
    finally:
        os.close(file)


def _digest(file: int) -> str:
    made = sha256()
    while block := os.read(file, 1 << 20):
        made.update(block)
    return made.hexdigest()


def _told(found: list[PlaceLabel], policy: Policy) -> LabelsKnown:
    """Make the event: each label, or of too many what they might hold at most."""
    unseen = [one for one in found if one.level is Confidentiality.PUBLIC and not policy.may_trust(one.place)]
    elsewhere = Confidentiality.PUBLIC
    if len(unseen) > MOST_UNSEEN:
        elsewhere = max(one.may_hold for one in unseen)
        left = set(unseen)
        found = [one for one in found if one not in left]
    if len(found) > MOST_LABELS:
        return LabelsKnown(lost=f"{len(found):,} places below the roots have labels, too many for a run")
    return LabelsKnown(places=tuple(found), elsewhere=elsewhere)


def record(
    folder: RunFolder,
    roots: Iterable[StagedRoot],
    state: State,
    released: Iterable[FileChange],
    substitutes: Mapping[Place, FileStamp],
) -> str:
    """Write the labels that a merge is about to need, durably and before it.

    Takes: `substitutes`, what is merged at a place instead of the staged bytes.
    Returns: why earlier labels were lost by it, `""` where none were.
    Raises: StuckError, where they cannot be written: then nothing may be merged.
    """
    rows = list(_Recording(folder, roots, state).rows(released, substitutes))
    if not rows:
        return ""
    from interlock.runtime.label_rows import write_rows

    return write_rows(store_file(), rows)


class _Recording:
    """Makes the rows of one merge."""

    def __init__(self, folder: RunFolder, roots: Iterable[StagedRoot], state: State) -> None:
        assert state.policy is not None
        assert state.knowledge is not None
        self._folder = folder
        self._roots = {root.name: root for root in roots}
        self._lowers = {item.name: path_text(os.fsencode(item.lower)) for item in folder.folders}
        self._state = state
        self._policy = state.policy
        self._now = state.knowledge.read_label
        self._places = state.knowledge.places
        self._known: Knowledge | None = None
        self._left = RECOGNISED_RUN_BYTES
        self._at_ns = time.time_ns()

    def rows(self, released: Iterable[FileChange], substitutes: Mapping[Place, FileStamp]) -> Iterator[Row]:
        for change in released:
            after = substitutes.get(change.place, change.after)
            if after is None or change.kind is ChangeKind.ATTRIBUTES:
                continue
            if after.type is FileType.FILE:
                yield self._row_of(change, after)
            elif after.type is FileType.DIRECTORY and change.source is not None:
                yield from self._moved(change.source, change.place)

    def _row_of(self, change: FileChange, after: FileStamp) -> Row:
        from interlock.policy.sensitive_fields import combined

        label, held = self._places.inherited(self._policy, change, self._now)
        level = Confidentiality.PUBLIC
        fields: tuple[str, ...] = ()
        if label.confidentiality > Confidentiality.PUBLIC:
            level, fields = self._recognised(change, after)
            level = min(label.confidentiality, level)
        if change.source is not None:
            # what was moved unread is as sensitive as its old place was
            level, fields = combined((level, fields), *self._moved_from(change.source, change.place))
        return self._row(
            change.place,
            digest=after.digest if not after.digest.startswith("stat:") else "",
            size_bytes=after.size_bytes,
            integrity=label.integrity,
            level=level,
            may_hold=label.confidentiality,
            held=tuple(f"{self._lowers.get(one.root, one.root)}/{one.path}" for one in held),
            fields=fields,
        )

    def _moved_from(self, source: Place, target: Place) -> Iterator[tuple[Confidentiality, tuple[str, ...]]]:
        """Yield the levels of a place, by the policy and by the store, with their fields; of a file that now ends
        otherwise it is not known what its fields are."""
        policy, places = self._policy, self._places
        same = os.path.splitext(source.path)[1].lower() == os.path.splitext(target.path)[1].lower()
        yield policy.whole_level_at(source), ()
        for level, fields in (
            *policy.sensitive_fields_at(source),
            (places.level_of(source), places.fields_at(source)),
        ):
            yield level, fields if same else ()

    def _row(
        self,
        place: Place,
        *,
        digest: str,
        size_bytes: int,
        integrity: Integrity,
        level: Confidentiality,
        may_hold: Confidentiality,
        held: tuple[str, ...],
        fields: tuple[str, ...],
    ) -> Row:
        from interlock.runtime.label_rows import Row

        return Row(
            path=f"{self._lowers[place.root].rstrip('/')}/{place.path}",
            digest=digest,
            size_bytes=size_bytes,
            integrity=integrity,
            level=level,
            may_hold=max(level, may_hold),
            held=held,
            run_id=self._folder.run_id,
            at_ns=self._at_ns,
            fields=fields,
        )

    def _recognised(self, change: FileChange, after: FileStamp) -> tuple[Confidentiality, tuple[str, ...]]:
        """Return the level of the sensitive values that the bytes of a change are seen to hold, and in which fields."""
        from interlock.policy.sensitive_fields import fields_holding
        from interlock.staging.sides import read_staged

        size = after.size_bytes
        self._left -= size
        root = self._roots.get(change.place.root)
        if size > RECOGNISED_BYTES or self._left < 0 or root is None:
            return Confidentiality.CRITICAL, ()
        known = self._knowledge()
        try:
            data = read_staged(root, change, RECOGNISED_BYTES + 1).data
        except OSError:
            return Confidentiality.CRITICAL, ()
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            # No text: what was sensitive and no text either may be copied here.
            level = max(known.unlisted_level, known.lost_level, known.level_in(data.decode("latin-1")))
            return level, ()
        level_in = changed(known, unlisted_level=Confidentiality.PUBLIC).level_in
        level = level_in(text)
        if level is Confidentiality.PUBLIC:
            return level, ()
        return level, fields_holding(change.place.path, text, level_in)

    def _knowledge(self) -> Knowledge:
        """Return what is known of sensitive values; where reads were not seen, that of all sensitive places."""
        if self._known is None:
            known = self._state.knowledge
            assert known is not None
            if (
                known.lost_level > Confidentiality.PUBLIC
                and not known.places.lost
                and not self._policy.detects  # what lies anywhere may have been found sensitive
            ):
                from interlock.runtime.reads import sensitive_places

                policy, places = self._policy, known.places
                reads = sensitive_places(
                    self._folder.folders,
                    lambda place: max(policy.level_of(place), places.level_of(place)),
                    policy.sandbox.expose,
                )
                if reads is not None:
                    known = known.with_reads(policy, reads, 0).with_unknown_reads(policy, listed=True)
            self._known = known
        return self._known

    def _moved(self, source: Place, target: Place) -> Iterator[Row]:
        """Yield what a renamed folder takes along: the labels below it, and the levels that its old place gave."""
        from interlock.policy.sensitive_fields import combined
        from interlock.runtime.label_rows import DamagedError, read_rows

        old, new = (f"{self._lowers[one.root].rstrip('/')}/{one.path}" for one in (source, target))
        if is_there():
            with suppress(DamagedError):  # a damaged one is put aside when the rows are written
                for row in read_rows(store_file(), old, whole=True, everything=False)[1]:
                    yield replace(row, path=new + row.path[len(old) :], at_ns=self._at_ns)
        if self._policy.highest_level is Confidentiality.PUBLIC:
            return
        seen = 0
        for folder, _names, files in os.walk(path_bytes(old)):
            for name in files:
                seen += 1
                path = os.path.join(folder, name)
                below = path_text(path)[len(old) + 1 :]
                place = Place(root=source.root, path=f"{source.path}/{below}")
                whole = (self._policy.whole_level_at(place), ())
                level, fields = combined(whole, *self._policy.sensitive_fields_at(place))
                if level is Confidentiality.PUBLIC or seen > _MOVED_AT_MOST:
                    continue
                moved = Place(root=target.root, path=f"{target.path}/{below}")
                kept = self._kept_level(moved, path, level, fields)
                if kept is not None:
                    yield kept

    def _kept_level(
        self, place: Place, path: bytes, level: Confidentiality, fields: tuple[str, ...]
    ) -> Row | None:
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            status = os.fstat(file)
            return self._row(
                place,
                digest=_digest(file) if stat.S_ISREG(status.st_mode) else "",
                size_bytes=status.st_size,
                integrity=self._now.integrity,
                level=level,
                may_hold=level,
                held=(path_text(path),),
                fields=fields,
            )
        finally:
            os.close(file)


def fitting_rows(path: str) -> tuple[str, list[Row]]:
    """Return the rows of a path and of all below it that fit what the host has there, for `interlock labels`.

    Takes: `path`, in `path_text` writing.
    Returns: also why labels were lost, `""` where none were. The whole store is checked.
    """
    if not is_there():
        return "", []
    from interlock.runtime.label_rows import DamagedError, read_rows

    try:
        lost, rows = read_rows(store_file(), path, whole=True, everything=True)
    except DamagedError as error:
        return f"the label store is damaged: {error}", []
    found: dict[str, Row] = {}
    budget = [_HASHED_RUN_BYTES]
    for row in rows:
        if row.path not in found and _has(row, budget):
            found[row.path] = row
    return lost, list(found.values())
