"""The undo of a kept merge, planned: what it would take back, and what stands in its way."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from interlock.model.errors import InputError, IntegrityError
from interlock.model.places import Place, path_bytes, path_text
from interlock.model.records import dataclass
from interlock.staging.keeping import Kept
from interlock.staging.undo_checks import Changed, RootCheck
from interlock.staging.undo_entries import Deed, Entry, closed, entries_of, moves_of, needs_of
from interlock.staging.undo_log import log_of
from interlock.staging.wal import Identity, Wal


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoStep:
    """One thing that an undo takes back; `back_to`, where a moved folder was before."""

    deed: Deed
    place: Place
    back_to: Place | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """What an undo of one merge would do.

    Takes: `steps`; `changed`, what is not as the merge left it any more; `left`, what is unchanged and hangs
    on something that is changed; `wal`, the log of the undo, None where it must not or cannot be done now;
    `keys`, of what it takes back; `is_whole`, whether nothing of the merge is left to undo then.
    """

    kept: Kept
    steps: tuple[UndoStep, ...]
    changed: tuple[Changed, ...]
    left: tuple[Place, ...]
    keys: tuple[str, ...]
    is_whole: bool
    wal: Wal | None


def plan_undo(
    kept: Kept,
    *,
    done: frozenset[str] = frozenset(),
    selection: Sequence[Place] = (),
    except_changed: bool = False,
    later: Sequence[Kept] = (),
) -> UndoPlan:
    """Plan the undo of a kept merge against the host as it is now.

    Takes: `done`, keys that are undone already; `selection`, only these places and what they need, () for all;
    `except_changed`, whether what is unchanged goes back where other things changed; `later`, merges that are
    to be undone before this one: what they touched is not looked at yet, and the plan has no log.
    Raises: InputError, where the selection names a part of what came or went as one; IntegrityError, where a
    root's folder is another one, or the host cannot be looked at.
    """
    if kept.wal is None:
        raise InputError(f"commit {kept.number} of the run cannot be undone: {kept.why_not}")
    try:
        with ExitStack() as stack:
            checks: list[RootCheck] = []
            for number in range(len(kept.wal.roots)):
                checks.append(RootCheck(kept, number))
                stack.callback(checks[-1].close)
            return _Planner(kept, kept.wal, checks, _Selection(kept.wal, selection)).plan(
                done, _shadow(later), except_changed=except_changed
            )
    except OSError as error:
        name = path_text(os.fsencode(error.filename)) if isinstance(error.filename, str | bytes) else ""
        raise IntegrityError(
            f"what the run committed cannot be compared with what is there now: {error.strerror} `{name}`",
            hint="nothing was changed; let the folder be read (chmod u+rx), then undo again",
        ) from error


class _Selection:
    """The places that are wanted, as paths of the log's roots."""

    def __init__(self, wal: Wal, places: Sequence[Place]) -> None:
        names = {root.name: number for number, root in enumerate(wal.roots)}
        self._all = not places
        self._paths = [
            (names[place.root], os.fsdecode(path_bytes(place.path)))
            for place in places
            if place.root in names
        ]

    def has(self, root: int, path: str) -> bool:
        return self._all or any(root == number and _at_or_below(path, at) for number, at in self._paths)

    def is_inside(self, root: int, path: str) -> bool:
        """Say whether a wanted place lies below a path."""
        return any(root == number and at.startswith(f"{path}/") for number, at in self._paths)


class _Planner:
    def __init__(self, kept: Kept, wal: Wal, checks: Sequence[RootCheck], selection: _Selection) -> None:
        self._kept, self._wal, self._checks, self._selection = kept, wal, checks, selection
        self._maps = moves_of(wal)
        self._extra: list[Changed] = []

    def plan(self, done: frozenset[str], shadow: frozenset[Place], *, except_changed: bool) -> UndoPlan:
        whole = entries_of(self._kept, done)
        entries, picked = self._select(whole)
        needs = needs_of(entries, self._maps)
        chosen = closed(picked, needs)
        leaving = self._leaving(entries)
        # which file it is comes first, its comparison after: an edit between the two shows in the merge
        known = {index: self._identity(entries[index], leaving) for index in chosen}
        changed: dict[int, tuple[Changed, ...]] = {}
        for index in sorted(chosen):
            entry = entries[index]
            if not _is_shadowed(entry.place(self._wal), shadow):
                found = self._checks[entry.root].changed(entry, is_freed=bool(needs[index]))
                changed[index] = tuple(found)
        bad = frozenset(index for index, found in changed.items() if found)
        good, left = chosen, frozenset[int]()
        if bad and except_changed:
            entries, chosen = self._with_parts(entries, chosen, bad)
            needs = needs_of(entries, self._maps)
            known |= {i: self._identity(entries[i], leaving) for i in chosen if i not in known}
            good = frozenset(index for index in chosen if not closed({index}, needs) & bad)
            left = chosen - good - bad
        told = [one for found in changed.values() for one in found] + self._extra
        going = [entries[index] for index in sorted(good)]
        is_whole = {entry.key for entry in going} == {entry.key for entry in whole}
        wal = None
        if not shadow and going and (except_changed or not told):
            log = {entry.key: known[index] for index, entry in enumerate(entries) if index in good}
            wal = log_of(self._kept, self._checks, going, log, is_whole=is_whole)
        return UndoPlan(
            kept=self._kept,
            steps=tuple(
                UndoStep(deed=one.deed, place=one.place(self._wal), back_to=one.source(self._wal))
                for one in going
            ),
            changed=tuple(dict.fromkeys(told)),
            left=tuple(entries[index].place(self._wal) for index in sorted(left)),
            keys=tuple(entry.key for entry in going),
            is_whole=is_whole,
            wal=wal,
        )

    def _select(self, whole: Sequence[Entry]) -> tuple[list[Entry], set[int]]:
        """Return the entries, created folders split where only a part is wanted, and which are wanted."""
        entries: list[Entry] = []
        picked: set[int] = set()
        for entry in whole:
            root = entry.root
            if self._selection.has(root, entry.path) or self._selection.has(root, entry.old):
                picked.add(len(entries))
                entries.append(entry)
                continue
            entries.append(entry)
            if entry.deed is Deed.CREATED and self._selection.is_inside(root, entry.path):
                parts = self._parts(entry)
                picked.update(range(len(entries), len(entries) + len(parts)))
                entries.extend(parts)
                inside = self._checks[root].changed(entry, is_freed=True)
                wanted = [one for one in inside if self._wants(root, one)]
                self._extra.extend(wanted)
            elif entry.deed in (Deed.REMOVED, Deed.REPLACED) and self._selection.is_inside(root, entry.old):
                raise InputError(
                    f"`{entry.place(self._wal)}` was {entry.deed.value} as one, and comes back as one",
                    hint="name that folder",
                )
        return entries, picked

    def _wants(self, root: int, one: Changed) -> bool:
        return self._selection.has(root, os.fsdecode(path_bytes(one.place.path)))

    def _parts(self, entry: Entry) -> tuple[Entry, ...]:
        return self._checks[entry.root].parts(entry, lambda path: self._selection.has(entry.root, path))

    def _with_parts(
        self, entries: Sequence[Entry], chosen: frozenset[int], bad: frozenset[int]
    ) -> tuple[list[Entry], frozenset[int]]:
        """Add what is unchanged of created folders that are changed in part."""
        out, more = list(entries), set(chosen)
        for index in sorted(bad):
            if entries[index].deed is Deed.CREATED:
                parts = self._checks[entries[index].root].parts(entries[index], lambda path: True)
                more.update(range(len(out), len(out) + len(parts)))
                out.extend(parts)
        return out, frozenset(more)

    def _leaving(self, entries: Sequence[Entry]) -> Mapping[int, frozenset[str]]:
        return {
            root: frozenset(one.path for one in entries if one.root == root and one.deed is Deed.MOVED)
            for root in range(len(self._wal.roots))
        }

    def _identity(self, entry: Entry, leaving: Mapping[int, frozenset[str]]) -> Identity | None:
        check = self._checks[entry.root]
        if entry.deed in (Deed.REMOVED, Deed.ADJUSTED) or check.status(entry.path) is None:
            return None
        try:
            return check.identity(entry.path, leaving[entry.root], digest=entry.deed is not Deed.MOVED)
        except OSError:
            return None  # the comparison says why it cannot be looked at


def _shadow(later: Sequence[Kept]) -> frozenset[Place]:
    """Return every place that merges to be undone first have touched."""
    out: set[Place] = set()
    for kept in later:
        for entry in entries_of(kept):
            if kept.wal is not None:
                name = kept.wal.roots[entry.root].name
                for path in (entry.path, entry.old):
                    out.add(Place(root=name, path=path_text(os.fsencode(path))))
    return frozenset(out)


def _is_shadowed(place: Place, shadow: frozenset[Place]) -> bool:
    return any(
        place.root == other.root
        and (_at_or_below(place.path, other.path) or _at_or_below(other.path, place.path))
        for other in shadow
    )


def _at_or_below(path: str, above: str) -> bool:
    return not above or path == above or path.startswith(f"{above}/")
