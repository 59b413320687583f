"""The file of the label store: rows in SQLite, each with a check of its own, written as one and durable at once.

A row is for bytes at a path, not for a path: an edit of the user's makes other bytes, and the row does not fit them. So
the rows of a merge can be written before it: whatever a crash leaves, what an agent wrote has its label, and what it
did not write has none.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from hashlib import sha256

from interlock.model.errors import IntegrityError, StuckError
from interlock.model.labels import Confidentiality, Integrity
from interlock.model.records import dataclass

FORMAT = "1"
KEPT_A_PATH = 4
"""Older bytes of a place that are still known: an undo, or a checkout, brings them back."""
_CHECKED_BYTES = 4 << 20
"""A store up to this size is checked whole at each start; a larger one row by row, and whole by `interlock labels`."""
_BUSY_S = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS label (
    path TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, integrity INTEGER NOT NULL,
    level INTEGER NOT NULL, may_hold INTEGER NOT NULL, held TEXT NOT NULL, run TEXT NOT NULL,
    at_ns INTEGER NOT NULL, seal TEXT NOT NULL, fields TEXT NOT NULL DEFAULT '', PRIMARY KEY (path, digest)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sensitive ON label (path) WHERE may_hold > 0;
"""
_DROP_OLD = f"""
DELETE FROM label WHERE path = ?1 AND at_ns < (
    SELECT at_ns FROM label WHERE path = ?1 ORDER BY at_ns DESC LIMIT 1 OFFSET {KEPT_A_PATH - 1})
"""  # noqa: S608
_COLUMNS = "path, digest, size, integrity, level, may_hold, held, run, at_ns, seal"
_FIELDS = "fields"
"""A later column, with a seal of its own: who does not know it reads the row, and the level counts for the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The label of some bytes at a path.

    Takes: `path`, absolute, in `path_text` writing; `digest`, SHA-256 in hex, `""` where it is not known (then any
    bytes of that size have the label); `level` and the rest as in `events.PlaceLabel`.
    """

    path: str
    digest: str
    size_bytes: int
    integrity: Integrity
    level: Confidentiality
    may_hold: Confidentiality
    held: tuple[str, ...]
    run_id: str
    at_ns: int
    fields: tuple[str, ...] = ()


class DamagedError(Exception):
    """The store is not what was written. Its text says how."""


def read_rows(file: str, *paths: str, whole: bool, everything: bool) -> tuple[str, list[Row]]:
    """Read the labels of some paths and of all below them.

    Takes: `whole`, whether also rows count that hold nothing sensitive; `everything`, whether the whole file is
    checked whatever its size.
    Returns: why labels were lost before, `""` where none were; the rows, newest first for each path.
    Raises: DamagedError.
    """
    try:
        with closing(_opened(f"file:{_quoted(file)}?mode=rw")) as store:
            if everything or os.stat(file).st_size <= _CHECKED_BYTES:
                (sound,) = store.execute("PRAGMA quick_check(1)").fetchone()
                if sound != "ok":
                    raise DamagedError("its pages do not fit together")
            meta = dict(store.execute("SELECT name, value FROM meta"))
            if meta.get("format") != FORMAT:
                raise DamagedError("it has another format")
            return str(meta.get("lost", "")), [
                row for path in paths for row in _rows(store, path, whole=whole)
            ]
    except sqlite3.Error as error:
        raise DamagedError(f"SQLite cannot read it ({type(error).__name__})") from error
    except OSError as error:
        raise DamagedError(f"it cannot be read: {error.strerror}") from error


def _rows(store: sqlite3.Connection, path: str, *, whole: bool) -> Iterator[Row]:
    below = path.rstrip("/")
    fields = _FIELDS if _has_fields(store) else "''"
    asked = (
        f"SELECT {_COLUMNS}, {fields} FROM label WHERE (path = ? OR (path >= ? AND path < ?))"  # noqa: S608
        f"{'' if whole else ' AND may_hold > 0'} ORDER BY path, at_ns DESC"
    )
    for values in store.execute(asked, (below, f"{below}/", f"{below}0")):
        yield _row(values)


def _has_fields(store: sqlite3.Connection) -> bool:
    return any(column[1] == _FIELDS for column in store.execute("PRAGMA table_info(label)"))


def _row(read: tuple[object, ...]) -> Row:
    values, fields = read[:-1], _fields(read)
    if values[-1] != _seal(values[:-1]) or fields is None:
        raise DamagedError("a row is not what was written")
    path, digest, size, integrity, level, may_hold, held, run, at_ns = values[:-1]
    assert isinstance(size, int)
    assert isinstance(at_ns, int)
    assert isinstance(integrity, int)
    assert isinstance(level, int)
    assert isinstance(may_hold, int)
    return Row(
        path=str(path),
        digest=str(digest),
        size_bytes=size,
        integrity=Integrity(integrity),
        level=Confidentiality(level),
        may_hold=Confidentiality(may_hold),
        held=tuple(json.loads(str(held))),
        run_id=str(run),
        at_ns=at_ns,
        fields=fields,
    )


def _fields(read: tuple[object, ...]) -> tuple[str, ...] | None:
    """Return the fields of a row as it was read, None where they are not what was written."""
    written = str(read[-1])
    if not written:
        return ()
    seal, _, names = written.partition(" ")
    return tuple(json.loads(names)) if seal == _seal((*read[:-1], names)) else None


def write_rows(file: str, rows: Iterable[Row]) -> str:
    """Add rows, durably and all or none; a damaged store is put aside, and the new one remembers that.

    Returns: why labels were lost by that, `""` where none were.
    Raises: StuckError, where nothing can be written.
    """
    ready = [_values(row) for row in rows]
    try:
        try:
            _write(file, ready)
            return ""
        except sqlite3.OperationalError as error:
            if not _is_damage(error):
                raise
            reason = str(error)
        except sqlite3.DatabaseError as error:
            reason = str(error)
        lost = f"the store was damaged ({reason})"
        put_aside(file)
        _write(file, ready, lost=lost)
        return lost
    except (sqlite3.Error, OSError) as error:
        raise StuckError(
            f"the label store `{file}` cannot be written: {error}",
            hint="free space there, or make it writable; nothing was merged: interlock apply last",
        ) from error


def _is_damage(error: sqlite3.OperationalError) -> bool:
    return "malformed" in str(error) or "no such" in str(error)


def _write(file: str, values: list[tuple[object, ...]], *, lost: str = "") -> None:
    if not os.path.exists(file):
        _make(file, lost)
    with closing(_opened(f"file:{_quoted(file)}?mode=rw")) as store:
        store.execute("PRAGMA synchronous = EXTRA")
        store.execute("BEGIN IMMEDIATE")
        with store:
            if os.stat(file).st_size <= _CHECKED_BYTES:
                (sound,) = store.execute("PRAGMA quick_check(1)").fetchone()
                if sound != "ok":
                    raise sqlite3.DatabaseError("its pages do not fit together")
            if not store.execute("SELECT 1 FROM meta WHERE name = 'format'").fetchone():
                raise sqlite3.DatabaseError("it has no format")
            if not _has_fields(store):
                store.execute(f"ALTER TABLE label ADD COLUMN {_FIELDS} TEXT NOT NULL DEFAULT ''")
            marks = ", ".join("?" * (len(_COLUMNS.split(",")) + 1))
            store.executemany(
                f"INSERT OR REPLACE INTO label ({_COLUMNS}, {_FIELDS}) VALUES ({marks})",  # noqa: S608
                values,
            )
            store.executemany(_DROP_OLD, [(one[0],) for one in values])


def _make(file: str, lost: str) -> None:
    """Make an empty store under its name as one: a file that has not all of its tables was damaged."""
    folder = os.path.dirname(file)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    made = f"{file}.new-{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(made)
    # Readable by its owner from its first moment: paths tell of the user's work.
    os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    with closing(_opened(f"file:{_quoted(made)}?mode=rw")) as store:
        store.execute("PRAGMA synchronous = EXTRA")
        store.execute("BEGIN IMMEDIATE")
        with store:
            for statement in _SCHEMA.split(";"):
                store.execute(statement)
            store.execute("INSERT INTO meta VALUES ('format', ?)", (FORMAT,))
            if lost:
                store.execute("INSERT INTO meta VALUES ('lost', ?)", (lost,))
    with suppress(FileExistsError):
        os.link(made, file)  # a run beside this one may have made it meanwhile
    os.unlink(made)
    _harden(folder)


def forget(file: str, path: str) -> int:
    """Remove the labels of a path and of all below it; return how many. Raises: IntegrityError, StuckError."""
    below = path.rstrip("/")
    try:
        with closing(_opened(f"file:{_quoted(file)}?mode=rw")) as store, store:
            store.execute("PRAGMA synchronous = EXTRA")
            gone = store.execute(
                "DELETE FROM label WHERE path = ? OR (path >= ? AND path < ?)",
                (below, f"{below}/", f"{below}0"),
            )
            return gone.rowcount
    except sqlite3.OperationalError as error:
        raise StuckError(f"the label store `{file}` cannot be written: {error}") from error
    except sqlite3.Error as error:
        raise IntegrityError(
            f"the label store `{file}` is damaged", hint="start a new one: interlock labels --reset"
        ) from error


def put_aside(file: str) -> str:
    """Rename a store, so that nothing reads it any more; return its new name, `""` where there is none."""
    aside = f"{file}.damaged-{time.time_ns()}"
    with suppress(FileNotFoundError):
        os.unlink(f"{file}-journal")
    try:
        os.rename(file, aside)
    except FileNotFoundError:
        return ""
    _harden(os.path.dirname(file))
    return aside


def _opened(name: str) -> sqlite3.Connection:
    return sqlite3.connect(name, timeout=_BUSY_S, uri=True, isolation_level=None)


def _quoted(file: str) -> str:
    # by hand: what the standard library has for it takes longer to load than the store to read
    return "".join(f"%{ord(char):02x}" if char in "%?#" else char for char in file)


def _harden(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _values(row: Row) -> tuple[object, ...]:
    values: tuple[object, ...] = (
        row.path,
        row.digest,
        row.size_bytes,
        int(row.integrity),
        int(row.level),
        int(max(row.may_hold, row.level)),
        json.dumps(row.held),
        row.run_id,
        row.at_ns,
    )
    sealed = (*values, _seal(values))
    names = json.dumps(row.fields)
    return (*sealed, f"{_seal((*sealed, names))} {names}" if row.fields else "")


def _seal(values: tuple[object, ...]) -> str:
    return sha256(json.dumps(values).encode()).hexdigest()[:24]
