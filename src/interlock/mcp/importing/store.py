"""What an import changed, kept outside of the file, so that it can be taken back byte for byte.

Holds: a record is on the disk before the file is changed, and both are written whole or not at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from contextlib import suppress

from interlock.mcp.importing.editing import Change
from interlock.model.errors import InputError, IntegrityError
from interlock.model.records import dataclass
from interlock.runtime.folders import state_folder

_VERSION = 1
MAX_BYTES = 4 << 20
"""Settings that are larger are nobody's settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """An import that is in force. Takes: `before`, the file as it was; `after`, SHA-256 of what the import left."""

    place: str
    before: bytes
    after: str
    changes: tuple[Change, ...]


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def find(place: str) -> Imported | None:
    """Return what is known of an import into a file, None where there is none. Raises: IntegrityError."""
    try:
        with open(_path(place), encoding="utf-8") as file:
            kept = json.load(file)
        if kept["version"] != _VERSION or kept["place"] != place:
            raise ValueError
        return Imported(
            place=place,
            before=base64.b64decode(kept["before"], validate=True),
            after=str(kept["after"]),
            changes=tuple(
                Change(path=tuple(one["path"]), before=one["before"], after=one["after"])
                for one in kept["changes"]
            ),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"what was kept of the import into `{place}` cannot be read",
            hint=f"look at `{_path(place)}`",
        ) from error


def keep(imported: Imported) -> None:
    """Keep what an import changes. Raises: InputError."""
    changes = [{"path": list(one.path), "before": one.before, "after": one.after} for one in imported.changes]
    kept = {
        "version": _VERSION,
        "place": imported.place,
        "before": base64.b64encode(imported.before).decode(),
        "after": imported.after,
        "changes": changes,
    }
    path = _path(imported.place)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    # Settings hold keys: nobody else shall read them here.
    replace(path, json.dumps(kept, indent=1).encode(), private=True)


def forget(place: str) -> None:
    """Forget an import."""
    with suppress(FileNotFoundError):
        os.unlink(_path(place))


def read(place: str) -> bytes:
    """Return a file's bytes. Raises: InputError."""
    try:
        with open(place, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"`{place}` cannot be read: {error.strerror}", hint="give the path of a client's settings"
        ) from error
    if len(data) > MAX_BYTES:
        raise InputError(f"`{place}` is larger than {MAX_BYTES >> 20} MiB", hint="give a client's settings")
    return data


def replace(place: str, data: bytes, *, private: bool = False, expected: bytes | None = None) -> None:
    """Write a file whole or not at all, with the mode and owner that it has.

    Takes: `private`, whether it is ours and for nobody else to read; `expected`, what it must still hold.
    Raises: InputError.
    """
    draft = f"{place}.interlock-{os.getpid()}"
    try:
        was = os.stat(place) if not private else None
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if was is not None:
                    if (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
                        with suppress(PermissionError):
                            os.fchown(file.fileno(), was.st_uid, was.st_gid)
                    os.fchmod(file.fileno(), was.st_mode & 0o7777)
                file.flush()
                os.fsync(file.fileno())
            if expected is not None and read(place) != expected:
                raise InputError(f"`{place}` was changed meanwhile", hint="try again")
            os.replace(draft, place)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise _unwritable(place, error) from error
    with suppress(OSError):
        folder = os.open(os.path.dirname(place) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _unwritable(place: str, error: OSError) -> InputError:
    return InputError(
        f"`{place}` cannot be written: {error.strerror}",
        hint="look at its owner and mode, then try again",
    )


def _path(place: str) -> str:
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    return os.path.join(state_folder(), "mcp-imports", f"{name}.json")
