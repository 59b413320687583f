"""What killed runs left behind and nobody needs: found, told and removed; work that is staged is only named.

Processes, mounts and networks need no cleaning: they end with the monitor. Folders and cgroups stay.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from interlock.model.errors import InputError, IntegrityError, InterlockError
from interlock.model.events import Staging
from interlock.model.records import dataclass
from interlock.runtime import folders as runs

GONE = ".gone-"
"""Begins the name of a run's folder that is being removed."""
_UNTOLD_S = 60.0
"""So long a folder without a lock may be one that a process is about to lock."""
_OF_OPEN_RUNS = (
    "stage",
    "scratch",
    runs.JOURNAL,
    runs.NET_FOLDER,
    "keys",
    "snapshot",
    "blends",
    "base",
    "touches",
)
"""What only an open run needs. Of `undo` a closed one needs all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something that nobody needs any more.

    Takes: `run_id`, "" where it belongs to none; `what`, in words; `size_bytes` on the disk.
    """

    run_id: str
    path: str
    what: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A run that is not ended, and what the principal may do with it."""

    run_id: str
    message: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What was removed (or would be), what was kept, and what could not be removed, with the reason."""

    removed: tuple[Leftover, ...]
    kept: tuple[Kept, ...]
    failed: tuple[str, ...]


def clean(*, older_than_ns: int | None = None, dry_run: bool = False) -> Cleaning:
    """Remove what killed runs left behind.

    Takes: `older_than_ns`, the age from which whole closed runs go too, with their evidence; `dry_run`, whether it
    is only said.
    Holds: nothing of a run that a process works on, and no staged work, is touched.
    """
    removed: list[Leftover] = []
    kept: list[Kept] = []
    failed: list[str] = []
    for path in _half_removed():
        _remove(Leftover(run_id="", path=path, what="a closed run, half removed", size_bytes=_size(path)),
                removed, failed, dry_run=dry_run)  # fmt: skip
    for run_id in runs.all_run_ids():
        path = os.path.join(runs.runs_folder(), run_id)
        if not os.path.exists(os.path.join(path, "lock")) and not _is_old(path):
            continue  # being made now
        with _alone(path) as free:
            if not free:
                continue
            try:
                for one in _of_run(run_id, path, older_than_ns, kept, dry_run=dry_run):
                    _remove(one, removed, failed, dry_run=dry_run)
            except InterlockError as error:
                failed.append(f"`{path}`: {error.message}")
            except OSError as error:
                failed.append(f"`{path}`: {error.strerror}")
    for path in _groups():
        one = Leftover(run_id="", path=path, what="the cgroup of a run whose monitor is gone", size_bytes=0)
        if not dry_run:
            try:
                os.rmdir(path)
            except OSError:
                continue  # something is in it, or another process was faster
        removed.append(one)
    return Cleaning(removed=tuple(removed), kept=tuple(kept), failed=tuple(failed))


def _of_run(
    run_id: str, path: str, older_than_ns: int | None, kept: list[Kept], *, dry_run: bool
) -> Iterator[Leftover]:
    from interlock import staging
    from interlock.staging.journal import KEPT

    try:
        folder: runs.RunFolder | None = runs.load(path)
    except IntegrityError:
        folder = None
    if _never_began(path, folder):
        yield Leftover(run_id=run_id, path=path, what="a run that never began", size_bytes=_size(path))
        return
    if folder is None:
        kept.append(
            Kept(
                run_id=run_id,
                message="its description is damaged",
                choices=(f"interlock verify {path}/ledger",),
            )
        )
        return
    if folder.sealed:
        if os.path.exists(folder.at(runs.UNDO, runs.JOURNAL, "doing")):
            kept.append(
                Kept(run_id=run_id, message="its undo is not ended", choices=(f"interlock undo {run_id}",))
            )
        elif os.path.lexists(folder.at(KEPT)):
            # the host's own files may lie in it
            kept.append(
                Kept(
                    run_id=run_id,
                    message="its merge was given up, and what is left of it may be needed",
                    choices=(f"rm -r {folder.at(KEPT)}  (when nothing in it is needed)",),
                )
            )
        elif older_than_ns is not None and time.time_ns() - int(folder.started_at_ns) > older_than_ns:
            size_bytes = _size(path)
            if not dry_run and os.path.isdir(folder.at(runs.UNDO)):
                # it lies beside the workspace in part
                staging.drop_kept(folder.at(runs.UNDO))
            yield Leftover(run_id=run_id, path=path, what="a closed run, whole", size_bytes=size_bytes)
            return
        for name in _OF_OPEN_RUNS:
            below = os.path.join(path, name)
            if os.path.lexists(below) and (name != "keys" or _has_entries(below)):
                yield Leftover(
                    run_id=run_id, path=below, what=f"`{name}` of a closed run", size_bytes=_size(below)
                )
        return
    control = os.path.join(path, "control")
    if os.path.lexists(control):
        yield Leftover(run_id=run_id, path=control, what="the socket of a monitor that is gone", size_bytes=0)
    scratch = os.path.join(path, "scratch")
    if _has_entries(scratch):
        yield Leftover(
            run_id=run_id,
            path=scratch,
            what="mount points of a sandbox that is gone",
            size_bytes=_size(scratch),
        )
    yield from _half_staged(run_id, folder, dry_run=dry_run)
    kept.append(_kept(run_id, folder))


def _half_staged(run_id: str, folder: runs.RunFolder, *, dry_run: bool) -> Iterator[Leftover]:
    """Find the copies beside a workspace of a merge that was cut off before it began."""
    from interlock import staging
    from interlock.staging.journal import locked

    journal = folder.at(runs.JOURNAL)
    if os.path.exists(f"{journal}/wal") or not os.path.exists(f"{journal}/stages"):
        return
    with locked(journal, create=False) as held:
        paths = (held.stages() if held is not None else None) or []
    found = [
        Leftover(run_id=run_id, path=path, what="copies for a merge that never began", size_bytes=_size(path))
        for path in paths
        if os.path.isdir(path)
    ]
    if not dry_run:
        staging.recover(journal)
    yield from found


def _kept(run_id: str, folder: runs.RunFolder) -> Kept:
    if os.path.exists(folder.at(runs.JOURNAL, "wal")):
        return Kept(run_id=run_id, message="its commit was cut off", choices=(f"interlock recover {run_id}",))
    return Kept(
        run_id=run_id,
        message="open: what it staged is kept",
        choices=(f"interlock apply {run_id}", f"interlock discard {run_id}"),
    )


def _never_began(path: str, folder: runs.RunFolder | None) -> bool:
    """Say whether a run's command was never started: that comes after the ledger's first signature."""
    signed = False
    with suppress(FileNotFoundError), os.scandir(os.path.join(path, "ledger", "sigs")) as entries:
        signed = any(entry.stat(follow_symlinks=False).st_size for entry in entries)
    if signed:
        return False
    if folder is None:
        # a description that is there, and cannot be read, is damage and no early end
        return not os.path.exists(os.path.join(path, "run.json"))
    return folder.staging is Staging.COPY or not any(_has_entries(item.upper) for item in folder.folders)


def _has_entries(path: str) -> bool:
    try:
        return bool(os.listdir(path))
    except FileNotFoundError:
        return False


def _remove(one: Leftover, removed: list[Leftover], failed: list[str], *, dry_run: bool) -> None:
    if not dry_run:
        from interlock import staging

        parent, name = os.path.split(one.path)
        try:
            descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if parent == runs.runs_folder() and not name.startswith(GONE):
                    # a run that is half removed must not look like one that is damaged
                    os.rename(name, GONE + name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
                    name = GONE + name
                staging.remove_tree(descriptor, name)
            finally:
                os.close(descriptor)
        except OSError as error:
            failed.append(f"`{one.path}`: {error.strerror}")
            return
    removed.append(one)


@contextmanager
def _alone(path: str) -> Iterator[bool]:
    """Hold a run's lock; False where another process has it."""
    try:
        lock = runs.RunLock(path)
    except OSError:
        yield True  # a disk that is full or read-only: nobody can have it either
        return
    try:
        try:
            lock.acquire(os.path.basename(path))
        except InputError:
            yield False
            return
        yield True
    finally:
        lock.release()


def _half_removed() -> list[str]:
    with suppress(FileNotFoundError), os.scandir(runs.runs_folder()) as entries:
        return sorted(entry.path for entry in entries if entry.name.startswith(GONE))
    return []


def _is_old(path: str) -> bool:
    return time.time() - os.lstat(path).st_mtime > _UNTOLD_S


def _groups() -> tuple[str, ...]:
    from interlock.boundary import cgroup

    return cgroup.leftovers()


def _size(path: str) -> int:
    """Return the bytes on the disk of a tree, following no link; a part that cannot be read counts nothing."""
    total = 0
    waiting = [path]
    while waiting:
        here = waiting.pop()
        try:
            status = os.lstat(here)
            total += status.st_blocks * 512
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(here) as entries:
                    waiting += [entry.path for entry in entries]
        except OSError:
            continue
    return total


def age_ns(text: str) -> int:
    """Read an age such as `30d`, `12h` or `2w`.

    Raises: InputError.
    """
    units = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not (number.isascii() and number.isdigit()):
        raise InputError(f"`{text}` is no age", hint="write a number and m, h, d or w: --older-than 30d")
    return int(number) * units[unit] * 10**9
