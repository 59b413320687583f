"""The log of an undo: the merge's own steps in the reverse.

What the merge put is taken, what it took is put, what it moved goes back; folders get the time that they had,
where nobody else has changed them since.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace

from interlock.model.dependencies import PathMap
from interlock.staging.keeping import Kept
from interlock.staging.undo_checks import RootCheck
from interlock.staging.undo_entries import Deed, Entry, moves_of, spot
from interlock.staging.wal import Adjust, Attributes, Identity, Put, Take, Wal, WalRoot


def log_of(
    kept: Kept,
    checks: Sequence[RootCheck],
    entries: Sequence[Entry],
    known: Mapping[str, Identity | None],
    *,
    is_whole: bool,
) -> Wal:
    """Write the log that takes the entries back.

    Takes: `entries`, with all that they need; `known`, by key, what the host had of each when it was compared;
    `is_whole`, whether nothing of the merge is left then, so that folders get their times back.
    """
    if kept.wal is None:
        raise AssertionError("a merge that is not kept cannot be undone")
    roots: list[WalRoot] = []
    logs: list[_RootLog] = []
    maps = moves_of(kept.wal)
    for number, root in enumerate(kept.wal.roots):
        mine = [entry for entry in entries if entry.root == number]
        status = os.fstat(checks[number].lower)
        # a device's number may be another one since the machine was started anew
        roots.append(replace(root, device=status.st_dev))
        log = _RootLog(kept.wal, number, checks[number], maps[number], mine)
        log.write(known, is_whole=is_whole)
        logs.append(log)
    return Wal(
        roots=tuple(roots),
        takes=tuple(one for log in logs for one in sorted(log.takes, key=lambda take: -_depth(take.path))),
        puts=tuple(one for log in logs for one in sorted(log.puts, key=lambda put: _depth(put.path))),
        adjusts=tuple(one for log in logs for one in _deeper_first(log.adjusts)),
        restores=tuple(one for log in logs for one in _deeper_first(log.restores)),
    )


class _RootLog:
    def __init__(
        self, wal: Wal, number: int, check: RootCheck, paths: PathMap, entries: Sequence[Entry]
    ) -> None:
        self._wal, self._number, self._check, self._paths = wal, number, check, paths
        self._entries = entries
        self._back = self._moves_back()
        self._moving = {entry.path for entry in entries if entry.deed is Deed.MOVED}
        self._going = {entry.path for entry in entries if entry.deed in (Deed.CREATED, Deed.REPLACED)}
        self.takes: list[Take] = []
        self.puts: list[Put] = []
        self.adjusts: dict[str, Adjust] = {}
        self.restores: dict[str, Adjust] = {}

    def _moves_back(self) -> PathMap:
        """Map, of the folders that go back, their place now to the one that they will have."""
        back: dict[str, str] = {}
        moved = [entry for entry in self._entries if entry.deed is Deed.MOVED]
        for entry in sorted(moved, key=lambda entry: _depth(entry.old)):
            back[entry.path] = _within(PathMap(back), spot(entry.old, self._paths))
        return PathMap(back)

    def write(self, known: Mapping[str, Identity | None], *, is_whole: bool) -> None:
        touched: dict[str, None] = {}
        for number, entry in enumerate(self._entries):
            identity = known[entry.key]
            target = _within(self._back, spot(entry.old, self._paths))
            match entry.deed:
                case Deed.CREATED if identity is not None:
                    self._take(entry, f"u{number}", identity)
                    touched[_parent(entry.path)] = None
                case Deed.MOVED if identity is not None:
                    self._take(entry, f"v{number}", identity)
                    self._put(entry.ino, target, f"v{number}", is_move=True)
                    touched[_parent(entry.path)] = None
                    touched[self._back.to_lower(_parent(target))] = None
                case Deed.REMOVED if entry.identity is not None:
                    self._put(entry.identity.ino, target, entry.slot)
                    touched[self._back.to_lower(_parent(target))] = None
                case Deed.REPLACED if identity is not None and entry.identity is not None:
                    at = _within(self._back, entry.path)
                    self._put(entry.identity.ino, at, entry.slot, replaces=identity)
                    touched[_parent(entry.path)] = None
                case _:
                    pass
        self._frame(touched, is_whole=is_whole)
        for entry in self._entries:
            if entry.adjust is not None:
                self._adjust(entry.path, entry.adjust, is_whole=is_whole)

    def _take(self, entry: Entry, slot: str, identity: Identity) -> None:
        self.takes.append(
            Take(
                root=self._number,
                path=entry.path,
                slot=slot,
                identity=identity,
                is_move=entry.deed is Deed.MOVED,
            )
        )

    def _put(
        self, ino: int, path: str, slot: str, *, is_move: bool = False, replaces: Identity | None = None
    ) -> None:
        self.puts.append(
            Put(root=self._number, path=path, slot=slot, ino=ino, is_move=is_move, replaces=replaces)
        )

    def _frame(self, touched: dict[str, None], *, is_whole: bool) -> None:
        """Plan the attributes of the folders around, which change as entries come and go."""
        before = {one.ino: one for one in self._wal.restores if one.root == self._number}
        left = {one.ino: one.after for one in self._wal.adjusts if one.root == self._number and one.ino}
        if is_whole:
            for one in before.values():
                found = self._check.status(self._paths.to_merged(one.path))
                if found is not None and found.st_ino == one.ino:
                    touched[self._paths.to_merged(one.path)] = None
        there: set[int] = set()
        for path in touched:
            status = self._check.status(path)
            if status is None or not stat.S_ISDIR(status.st_mode):
                continue
            now = _attributes(status)
            self.restores[path] = self._adjustment(path, status.st_ino, now, now)
            if self._goes(path):
                continue
            there.add(status.st_ino)
            was = before.get(status.st_ino)
            after = now
            if is_whole and was is not None:
                ours = left.get(status.st_ino, was.after)
                if ours.mtime_ns == status.st_mtime_ns:
                    after = replace(now, mtime_ns=was.after.mtime_ns)
            at = self._back.to_merged(path)
            self.adjusts[at] = self._adjustment(at, status.st_ino, after, now)
        kept = [entry.old for entry in self._entries if entry.deed in (Deed.REMOVED, Deed.REPLACED)]
        for one in before.values():
            # folders that come back: they lost entries while the merge took them
            if one.ino not in there and any(_at_or_below(one.path, old) for old in kept):
                at = self._back.to_merged(self._paths.to_merged(one.path))
                self.adjusts.setdefault(at, self._adjustment(at, one.ino, one.after, None))

    def _adjust(self, path: str, done: Adjust, *, is_whole: bool) -> None:
        status = self._check.status(path)
        if status is None or done.before is None:
            return
        now = _attributes(status)
        if done.after.xattrs is not None:
            now = replace(now, xattrs=done.after.xattrs)  # as it was just compared
        after = done.before
        if stat.S_ISDIR(status.st_mode) and not (is_whole and status.st_mtime_ns == done.after.mtime_ns):
            after = replace(after, mtime_ns=status.st_mtime_ns)
        at = self._back.to_merged(path)
        self.adjusts[at] = self._adjustment(at, status.st_ino, after, now)

    def _adjustment(self, path: str, ino: int, after: Attributes, before: Attributes | None) -> Adjust:
        return Adjust(root=self._number, path=path, ino=ino, after=after, before=before)

    def _goes(self, path: str) -> bool:
        """Say whether a folder of the host goes away with the undo, at it or above it."""
        while path:
            if path in self._moving:
                return False
            if path in self._going:
                return True
            path = _parent(path)
        return False


def _within(paths: PathMap, path: str) -> str:
    """Return where a place of the host will be: with the folders above it."""
    parent, _, name = path.rpartition("/")
    above = paths.to_merged(parent)
    return f"{above}/{name}" if above else name


def _attributes(status: os.stat_result) -> Attributes:
    return Attributes(
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        mtime_ns=status.st_mtime_ns,
    )


def _deeper_first(adjusts: Mapping[str, Adjust]) -> list[Adjust]:
    return sorted(adjusts.values(), key=lambda adjust: -_depth(adjust.path))


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _at_or_below(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above}/")
