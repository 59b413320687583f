"""The journal folder of a merge: its lock, its log, its outcome, and the stage folders it knows of.

Files, each written whole and made durable before the next thing happens:
`stages`, where stage folders are or may be; `wal`, the log, there once everything is staged;
`outcome`, `finished`, `rolling-back`, `rolled-back` or `given-up`. The outcome stays until `forget` or the next
merge, so that a recovery can be asked again and says the same. `made`, not durable, is for an undo.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from interlock.model.errors import IntegrityError, StuckError
from interlock.model.places import path_bytes, path_text
from interlock.staging.removing import remove_tree
from interlock.staging.wal import Wal, decode, encode

FINISHED = "finished"
ROLLING_BACK = "rolling-back"
ROLLED_BACK = "rolled-back"
GIVEN_UP = "given-up"
"""The principal leaves the merge as it is: it is never gone on with."""
KEPT = "given-up"
"""The folder beside the journal into which that of a merge that was given up goes."""

_STAGE = re.compile(r"stage-\d+|\.interlock-[0-9a-f]{16}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Journal:
    """An open, locked journal folder."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd

    def read_wal(self) -> Wal | None:
        """Return the log, None where nothing was staged completely.

        Raises: IntegrityError where it is damaged.
        """
        raw = self._read("wal")
        return None if raw is None else decode(raw)

    def write_wal(self, wal: Wal) -> None:
        """Make the log durable: from here on the merge is intended."""
        self._write("wal", encode(wal))

    def drop_wal(self) -> None:
        """Remove the log, durably, before anything of it was made visible."""
        self._unlink("wal")
        os.fsync(self.fd)

    def read_outcome(self) -> str:
        """Return the outcome, "" where there is none yet."""
        raw = self._read("outcome")
        if raw is None:
            return ""
        text = raw.decode("ascii", "replace").strip()
        if text not in (FINISHED, ROLLING_BACK, ROLLED_BACK, GIVEN_UP):
            raise IntegrityError(
                "the outcome of the merge is damaged", hint="look at the run's folder by hand"
            )
        return text

    def given_up(self) -> bool:
        """Say whether the merge was given up."""
        return self._read("outcome") == GIVEN_UP.encode() + b"\n"

    def write_outcome(self, outcome: str) -> None:
        """Make an outcome durable."""
        self._write("outcome", outcome.encode() + b"\n")

    def read_made(self) -> bytes | None:
        """Return the record of what was staged, for an undo; None where none is wanted."""
        return self._read("made")

    def write_made(self, raw: bytes) -> None:
        """Write that record; a crash may lose it, and with it the undo."""
        self._write("made", raw, durable=False)

    def begin(self, stages: list[str]) -> None:
        """Forget an earlier merge, and make durable where this one's stage folders will be."""
        self.clear()
        self._write("stages", json.dumps([path_text(os.fsencode(stage)) for stage in stages]).encode())

    def stages(self) -> list[str] | None:
        """Return where stage folders may be, None where no merge began."""
        raw = self._read("stages")
        if raw is None:
            return None
        try:
            found = [os.fsdecode(path_bytes(text)) for text in json.loads(raw)]
        except (ValueError, TypeError, AttributeError):
            found = [""]
        # each is removed some day: only what `stage_path` may have chosen
        if not all(path.startswith("/") and _STAGE.fullmatch(os.path.basename(path)) for path in found):
            raise IntegrityError(
                "the list of stage folders is damaged", hint="look at the run's folder by hand"
            )
        return found

    def clean(self) -> None:
        """Remove the stage folders and everything but the outcome. May be repeated."""
        for stage in self.stages() or []:
            parent, _, name = stage.rpartition("/")
            try:
                fd = os.open(parent or "/", _FOLDER)
            except FileNotFoundError:
                continue
            try:
                if not _exists(fd, name):
                    continue
                before = os.fstat(fd)
                remove_tree(fd, name)
                if parent != self.path:
                    # beside or in the root: the folder's time is the host's own
                    os.utime(fd, ns=(before.st_atime_ns, before.st_mtime_ns))
            finally:
                os.close(fd)
        for name in ("wal", "made", "stages"):
            self._unlink(name)
        for name in ("wal", "made", "stages", "outcome"):
            self._unlink(f"{name}.new")

    def set_aside(self) -> None:
        """Move the whole folder, with all that the merge put and took in it, to where nothing removes it."""
        parent = os.path.dirname(self.path)
        os.makedirs(f"{parent}/{KEPT}", mode=0o700, exist_ok=True)
        os.rename(self.path, f"{parent}/{KEPT}/{os.path.basename(self.path)}")
        for path in (f"{parent}/{KEPT}", parent):
            fd = os.open(path, _FOLDER)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def clear(self) -> None:
        """Remove the outcome too, never before the log is gone for good."""
        if self._read("outcome") is not None:
            os.fsync(self.fd)
            self._unlink("outcome")

    def _read(self, name: str) -> bytes | None:
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        with open(fd, "rb") as file:
            return file.read()

    def _write(self, name: str, data: bytes, *, durable: bool = True) -> None:
        self._unlink(f"{name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(f"{name}.new", flags, 0o600, dir_fd=self.fd)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(f"{name}.new", name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        if durable:
            os.fsync(self.fd)

    def _unlink(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)


@contextmanager
def locked(path: str, *, create: bool) -> Iterator[Journal | None]:
    """Open a journal folder alone; gives None where there is none and it is not to be made.

    Raises: StuckError where another process works on the same merge; OSError.
    """
    path = os.path.abspath(path)
    if create:
        os.makedirs(path, mode=0o700, exist_ok=True)
    try:
        fd = os.open(path, _FOLDER)
    except FileNotFoundError:
        yield None
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise StuckError(
                "another process is merging or recovering this run", hint="wait for it, then try again"
            ) from None
        yield Journal(path, fd)
    finally:
        os.close(fd)


def stage_path(journal: Journal, root_path: str, root_fd: int, number: int) -> str:
    """Choose where a root's stage folder goes: a place from which a rename into the root works.

    Returns: a folder of the journal itself where it lies on the root's mount; else a hidden one beside the
    root, or in it.
    """
    inside = f"{journal.path}/stage-{number}"
    if _mount_of(journal.fd) == _mount_of(root_fd):
        return inside
    name = f".interlock-{hashlib.sha256(os.fsencode(inside)).hexdigest()[:16]}"
    root_path = os.path.realpath(root_path)
    parent = os.path.dirname(root_path)
    try:
        fd = os.open(parent, _FOLDER)
    except OSError:
        return f"{root_path}/{name}"
    try:
        if _mount_of(fd) == _mount_of(root_fd) and os.access(parent, os.W_OK | os.X_OK):
            return f"{parent}/{name}"
    finally:
        os.close(fd)
    return f"{root_path}/{name}"


def _mount_of(fd: int) -> tuple[int, str]:
    """Return a descriptor's device and mount; a bind mount of the same device is another mount."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
        mount = next((line.split()[1] for line in file if line.startswith("mnt_id:")), "")
    return os.fstat(fd).st_dev, mount


def _exists(dir_fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
