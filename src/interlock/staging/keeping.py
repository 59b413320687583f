"""What a finished merge replaced or removed, kept so that the merge can be undone.

One folder a merge, `undo/<n>` beside the journal: `wal`, the merge's own log, moved here last of all (with it
the merge is kept, without it nothing is); `made`, what the merge put on the host; `stage-<k>`, a root's stage
folder with what the host had; `outside`, where stage folders lie that could not move here; or `not-kept`, why
nothing is kept. All of it comes after the merge's outcome is durable: a crash loses at most the undo.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace

from interlock.model.effects import FileStamp, FileType
from interlock.model.errors import IntegrityError
from interlock.model.places import path_bytes, path_text
from interlock.model.records import dataclass
from interlock.staging.journal import Journal
from interlock.staging.removing import remove_tree
from interlock.staging.stamps import read_xattrs
from interlock.staging.wal import Wal, decode

KEEP_BYTES = 1 << 30
"""So much of one merge is kept unless the caller says otherwise."""
FOLDER = "undo"
NEW, OLD, MOVED = "new", "old", "moved"
_VERSION = "interlock-made-1"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One file that a merge puts on the host, as it was staged.

    Takes: `root`, position among the log's roots; `path`, in the stage folder's `new`, the slot first;
    `xattrs` in hex.
    """

    root: int
    path: str
    ino: int
    mtime_ns: int
    stamp: FileStamp
    xattrs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One merge of a run.

    Takes: `number`, from 1; `why_not`, why it cannot be undone, else "", and then `wal` is its log (each
    root's `stage` is where what the host had lies now) and `made` what it put; `is_undone`, all of it.
    """

    number: int
    path: str
    why_not: str = ""
    wal: Wal | None = None
    made: tuple[Made, ...] = ()
    size_bytes: int = 0
    is_undone: bool = False


def made_at(dir_fd: int, root: int, path: str, stamp: FileStamp) -> Made:
    """Read what one staged file is, below the open `new` of its stage folder."""
    status = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    xattrs: dict[str, str] = {}
    if not stat.S_ISLNK(status.st_mode):
        found = read_xattrs(f"/proc/self/fd/{dir_fd}/{path}", lend_mode=True)
        xattrs = {name: value.hex() for name, value in found.items()}
    return Made(
        root=root, path=path, ino=status.st_ino, mtime_ns=status.st_mtime_ns, stamp=stamp, xattrs=xattrs
    )


def want_kept(held: Journal, keep_bytes: int, made: Iterable[Made]) -> None:
    """Write into a journal, before its log, that the merge is to be kept, and what it puts."""
    rows = [
        [
            one.root,
            path_text(os.fsencode(one.path)),
            one.ino,
            one.mtime_ns,
            one.stamp.type.value,
            one.stamp.mode,
            one.stamp.uid,
            one.stamp.gid,
            one.stamp.size_bytes,
            one.stamp.digest,
            one.stamp.link_target,
            one.xattrs,
        ]
        for one in made
    ]
    body = json.dumps({"keep_bytes": keep_bytes, "made": rows}, separators=(",", ":")).encode()
    held.write_made(f"{_VERSION} {hashlib.sha256(body).hexdigest()}\n".encode() + body)


def keep(held: Journal) -> None:
    """Keep what a finished merge replaced, where that is wanted; may be repeated after a crash.

    Holds: whatever fails, the merge stays finished and nothing is left that `drop_kept` does not find.
    """
    try:
        wal, raw = held.read_wal(), held.read_made()
        if wal is None or raw is None:
            return
        limit, _ = _decode(raw)
        top = os.path.join(os.path.dirname(held.path), FOLDER)
        _keep(held, wal, limit, _next_folder(top))
    except (OSError, IntegrityError) as error:
        reason = error.message if isinstance(error, IntegrityError) else str(error.strerror)
        with suppress(OSError):
            _refuse(_next_folder(os.path.join(os.path.dirname(held.path), FOLDER)), reason)


def kept(top: str) -> tuple[Kept, ...]:
    """Read what is kept of a run's merges, oldest first.

    Takes: `top`, the folder `undo` of the run.
    """
    return tuple(_read(number, os.path.join(top, str(number))) for number in _numbers(top))


def kept_bytes(top: str) -> int:
    """Return how much disk the kept merges of a run take, by what was noted when they were kept."""
    total = 0
    for number in _numbers(top):
        with suppress(OSError, ValueError), open(f"{top}/{number}/size", encoding="ascii") as file:
            total += int(file.read())
    return total


def drop_kept(top: str) -> None:
    """Remove everything that is kept of a run, also what lies beside its workspace.

    Raises: OSError.
    """
    for number in _numbers(top):
        drop(os.path.join(top, str(number)))
    parent, name = os.path.split(os.path.abspath(top))
    remove_below(parent, name)


def drop(path: str, *, but: str = "") -> None:
    """Remove what is kept of one merge, what lies outside first.

    Takes: `but`, a name in its folder that stays, and with it the folder.
    Raises: OSError.
    """
    for outside in outside_of(path):
        remove_below(*os.path.split(outside), keep_time=True)
    if not but:
        remove_below(*os.path.split(path))
        return
    for name in os.listdir(path):
        if name != but:
            remove_below(path, name)


def outside_of(path: str) -> tuple[str, ...]:
    """Return the stage folders of a kept merge that lie beside the workspace."""
    try:
        with open(f"{path}/outside", "rb") as file:
            return tuple(os.fsdecode(path_bytes(text)) for text in json.loads(file.read()))
    except (FileNotFoundError, ValueError):
        return ()


def _keep(held: Journal, wal: Wal, limit: int, path: str) -> None:
    outside = [root for root in wal.roots if os.path.dirname(root.stage) != held.path]
    for root in outside:
        if os.path.dirname(root.stage) == root.lower:
            _refuse(path, "there is no place for it but the workspace itself")
            return
    homes = {root.stage: _home(held.path, path, root.stage) for root in wal.roots}
    size = sum(_size_bytes(where) for pair in homes.items() for where in pair)
    if size > limit:
        _refuse(path, f"it takes {size:,} bytes, and {limit:,} may be kept")
        return
    os.makedirs(path, mode=0o700, exist_ok=True)
    if outside:
        # known durably before it gets the name that only this file knows
        names = [path_text(os.fsencode(homes[root.stage])) for root in outside]
        write_file(f"{path}/outside", json.dumps(names).encode(), durable=True)
    for stage, home in homes.items():
        if os.path.lexists(stage):
            remove_below(*os.path.split(home), keep_time=True)
            _move(stage, home)
    write_file(f"{path}/size", str(size).encode(), durable=False)
    with suppress(FileNotFoundError):
        os.rename(f"{held.path}/made", f"{path}/made")
    os.rename(f"{held.path}/wal", f"{path}/wal")


def _home(journal: str, path: str, stage: str) -> str:
    """Return where a stage folder is kept: it never leaves its mount."""
    parent, name = os.path.split(stage)
    return f"{path}/{name}" if parent == journal else f"{stage}-{FOLDER}-{os.path.basename(path)}"


def _move(stage: str, home: str) -> None:
    times = [(parent, os.stat(parent)) for parent in {os.path.dirname(stage), os.path.dirname(home)}]
    os.rename(stage, home)
    for parent, status in times:
        os.utime(parent, ns=(status.st_atime_ns, status.st_mtime_ns))


def _refuse(path: str, reason: str) -> None:
    """Say durably enough that, and why, a merge is not kept; what was moved already goes."""
    drop(path)
    os.makedirs(path, mode=0o700)
    write_file(f"{path}/not-kept", reason.encode(), durable=False)


def _read(number: int, path: str) -> Kept:
    if os.path.lexists(f"{path}/undone"):
        return Kept(number=number, path=path, why_not="it is undone already", is_undone=True)
    try:
        with open(f"{path}/not-kept", encoding="utf-8") as file:
            return Kept(number=number, path=path, why_not=f"it was not kept: {file.read()}")
    except FileNotFoundError:
        pass
    try:
        with open(f"{path}/wal", "rb") as file:
            wal = decode(file.read())
        with open(f"{path}/made", "rb") as file:
            made = _decode(file.read())[1]
        with open(f"{path}/size", encoding="ascii") as file:
            size_bytes = int(file.read())
    except (OSError, ValueError, IntegrityError):
        return Kept(number=number, path=path, why_not="a crash came before it was kept whole")
    outside = {os.path.basename(name): name for name in outside_of(path)}
    roots = []
    for root in wal.roots:
        name = os.path.basename(root.stage)
        home = outside.get(f"{name}-{FOLDER}-{number}", f"{path}/{name}")
        if not all(os.path.isdir(f"{home}/{part}") for part in (NEW, OLD, MOVED)):
            return Kept(number=number, path=path, why_not="what was kept of it is gone")
        roots.append(replace(root, stage=home))
    return Kept(
        number=number, path=path, wal=replace(wal, roots=tuple(roots)), made=made, size_bytes=size_bytes
    )


def _decode(raw: bytes) -> tuple[int, tuple[Made, ...]]:
    head, _, body = raw.partition(b"\n")
    if head != f"{_VERSION} {hashlib.sha256(body).hexdigest()}".encode():
        raise IntegrityError("the record of what the merge put is damaged")
    document = json.loads(body)
    return document["keep_bytes"], tuple(
        Made(
            root=root,
            path=os.fsdecode(path_bytes(path)),
            ino=ino,
            mtime_ns=mtime_ns,
            stamp=FileStamp(
                type=FileType(kind),
                mode=mode,
                uid=uid,
                gid=gid,
                size_bytes=size_bytes,
                digest=digest,
                link_target=target,
            ),
            xattrs=xattrs,
        )
        for (
            root, path, ino, mtime_ns, kind, mode, uid, gid, size_bytes, digest, target, xattrs,
        ) in document["made"]
    )  # fmt: skip


def _numbers(top: str) -> list[int]:
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(int(name) for name in os.listdir(top) if name.isdigit())
    return []


def _next_folder(top: str) -> str:
    """Return the folder of the merge that ends now: the first without an end of its own."""
    number = 1
    while any(os.path.lexists(f"{top}/{number}/{name}") for name in ("wal", "not-kept", "undone")):
        number += 1
    return f"{top}/{number}"


def _size_bytes(top: str) -> int:
    """Return the bytes on the disk below a folder, 0 where there is none; deep trees cost no stack."""
    return sum(status.st_blocks * 512 for status in _statuses(top))


def _statuses(top: str) -> Iterator[os.stat_result]:
    seen: set[int] = set()
    waiting = [top]
    while waiting:
        with (
            suppress(FileNotFoundError, NotADirectoryError, PermissionError),
            os.scandir(waiting.pop()) as at,
        ):
            for entry in at:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(entry.path)
                elif status.st_ino not in seen:
                    seen.add(status.st_ino)
                    yield status


def write_file(path: str, data: bytes, *, durable: bool) -> None:
    """Write a file whole, under its name only once it is written. Raises: OSError."""
    with open(f"{path}.new", "wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.rename(f"{path}.new", path)
    if durable:
        fd = os.open(os.path.dirname(path), _FOLDER)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def remove_below(parent: str, name: str, *, keep_time: bool = False) -> None:
    """Remove an entry of a folder with all below it; one that is gone already is fine.

    Takes: `keep_time`, whether the folder keeps its own time.
    Raises: OSError.
    """
    try:
        fd = os.open(parent, _FOLDER)
    except FileNotFoundError:
        return
    try:
        before = os.fstat(fd)
        remove_tree(fd, name)
        if keep_time:
            os.utime(fd, ns=(before.st_atime_ns, before.st_mtime_ns))
    finally:
        os.close(fd)
