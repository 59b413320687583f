"""Folders of a staged layer that are closed to their owner, opened for as long as the layer is read.

A command may take from itself the right to list or to enter a folder. Root reads it all the same. An ordinary user
lends itself the two bits: for the whole reading, since they are asked for at each look-up and not at the opening
alone. Each loan is in a book beside the layer, durable before it is made, so that a killed reader's loans are given
back by the next one; and the mode that such a folder is listed with is its own, not the lent one.
"""

import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from interlock.model.errors import IntegrityError
from interlock.model.places import path_bytes, path_text
from interlock.staging.stamps import check_depth
from interlock.staging.syscalls import open_beneath

_NEEDED = stat.S_IRUSR | stat.S_IXUSR
_PIN = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_EXTRA = tuple(name for name in dir(os.stat_result) if name.startswith("st_"))

_guard = threading.RLock()
_held: dict[str, "Loans"] = {}


@contextmanager
def lending(upper: str) -> Iterator["Loans"]:
    """Keep the loans on a layer for as long as it is read; readings within readings share them.

    Takes: `upper`, the layer's folder.
    Raises: OSError; IntegrityError, where the book of a killed reader is damaged.
    """
    with _guard:
        loans = _held.get(upper)
        if loans is None:
            loans = Loans(upper)
            _held[upper] = loans
        loans.readers += 1
    try:
        yield loans
    finally:
        with _guard:
            loans.readers -= 1
            if not loans.readers:
                del _held[upper]
                try:
                    loans.give_back()
                finally:
                    loans.close()


class Loans:
    """What is lent on one layer; `give_back` ends it. Root needs nothing lent."""

    def __init__(self, upper: str) -> None:
        self.readers = 0
        self._upper = upper
        self._book_path = f"{upper}.lent"
        self._book: int | None = None
        self._lent: list[tuple[str, int, int]] = []
        self._modes: dict[int, int] = {}
        self._lends = os.geteuid() != 0
        if self._lends and os.path.lexists(self._book_path):
            self._open_book()
            try:
                self._lent = self._read_book()
                self.give_back()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let go of the book, and leave it for the next reader."""
        if self._book is not None:
            os.close(self._book)
        self._book, self._lent, self._modes = None, [], {}

    def true(self, status: os.stat_result) -> os.stat_result:
        """Return a status with the mode that the folder has without the loan."""
        mode = self._modes.get(status.st_ino)
        if mode is None or not stat.S_ISDIR(status.st_mode):
            return status
        extra = {name: getattr(status, name) for name in _EXTRA if hasattr(status, name)}
        return os.stat_result((stat.S_IFDIR | mode, *status[1:]), extra)

    def lend(self, dir_fd: int, name: str, status: os.stat_result, path: str) -> None:
        """Open a folder of the layer to its owner, where that is needed.

        Takes: `dir_fd` and `name`, where it is; `status`, its lstat; `path`, where it is below the layer.
        """
        if not self._lends or not is_closed(status):
            return
        pin = os.open(name, _PIN, dir_fd=dir_fd)
        try:
            self._lend_pinned(pin, path)
        finally:
            os.close(pin)

    def lend_top(self) -> None:
        """Open the layer's own folder to its owner, where that is needed."""
        if self._lends:
            pin = os.open(self._upper, _PIN)
            try:
                self._lend_pinned(pin, "")
            finally:
                os.close(pin)

    def lend_below(self, fd: int, path: str = "") -> None:
        """Open every folder below an open one of the layer to its owner, where that is needed."""
        if not self._lends:
            return
        check_depth(path)
        with os.scandir(fd) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        for name in names:
            child = f"{path}/{name}" if path else name
            self.lend(fd, name, os.stat(name, dir_fd=fd, follow_symlinks=False), child)
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            try:
                self.lend_below(below, child)
            finally:
                os.close(below)

    def lend_way(self, path: str) -> None:
        """Open the layer's own folder and those on the way to a path below it, as far as they are there."""
        if not self._lends:
            return
        self.lend_top()
        top = os.open(self._upper, _PIN)
        try:
            self._lend_all(top, _prefixes(path)[:-1])
        except (FileNotFoundError, NotADirectoryError):
            return
        finally:
            os.close(top)

    def open_folder(self, top_fd: int, path: str) -> int:
        """Open a folder of the layer by its path, to look things up in it (`O_PATH`).

        Takes: `top_fd`, the layer's own folder, open.
        Raises: OSError.
        """
        try:
            fd = open_beneath(top_fd, path, _PIN)
        except PermissionError:
            if not self._lends:
                raise
        else:
            if not self._lends or not is_closed(os.fstat(fd)):
                return fd
            os.close(fd)
        self._lend_all(top_fd, _prefixes(path))
        return open_beneath(top_fd, path, _PIN)

    def give_back(self) -> None:
        """Give every folder its own mode back, what lies in a folder before the folder. Raises: OSError."""
        if self._book is None:
            return
        top = os.open(self._upper, _PIN)
        try:
            for path, ino, mode in sorted(self._lent, key=lambda one: -_depth(one[0])):
                try:
                    pin = open_beneath(top, path, _PIN)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # removed since
                try:
                    found = os.fstat(pin)
                    # another mode is none that was lent here: who set it meant it
                    if (found.st_ino, stat.S_IMODE(found.st_mode)) == (ino, mode | _NEEDED):
                        os.chmod(f"/proc/self/fd/{pin}", mode)
                finally:
                    os.close(pin)
        finally:
            os.close(top)
        os.unlink(self._book_path)
        self.close()

    def _lend_all(self, top_fd: int, paths: list[str]) -> None:
        for path in paths:
            pin = open_beneath(top_fd, path, _PIN)
            try:
                self._lend_pinned(pin, path)
            finally:
                os.close(pin)

    def _lend_pinned(self, pin: int, path: str) -> None:
        status = os.fstat(pin)
        mode = stat.S_IMODE(status.st_mode)
        if not is_closed(status):
            return
        with _guard:
            if self._book is None:
                self._open_book()
            assert self._book is not None
            self._note(f"{mode:o} {status.st_ino} {path_text(os.fsencode(path))}\n".encode())
            self._lent.append((path, status.st_ino, mode))
            self._modes[status.st_ino] = mode
            os.chmod(f"/proc/self/fd/{pin}", mode | _NEEDED)

    def _note(self, row: bytes) -> None:
        """Make a row of the book durable, whole or not at all. Raises: OSError."""
        assert self._book is not None
        before = os.fstat(self._book).st_size
        try:
            while row:
                row = row[os.write(self._book, row) :]
            os.fsync(self._book)
        except OSError:
            os.ftruncate(self._book, before)
            raise

    def _open_book(self) -> None:
        """Open the book, and wait for another process that reads the layer by it."""
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            book = os.open(self._book_path, flags, 0o600)
            fcntl.flock(book, fcntl.LOCK_EX)
            if os.fstat(book).st_nlink:
                self._book = book
                return
            os.close(book)  # its reader ended, and the book with it

    def _read_book(self) -> list[tuple[str, int, int]]:
        assert self._book is not None
        with open(self._book, "rb", closefd=False) as file:
            whole, _, _torn = file.read().rpartition(b"\n")
        try:
            rows = [line.split(" ", 2) for line in whole.decode().split("\n") if line]
            # what is torn was not lent yet
            return [(os.fsdecode(path_bytes(path)), int(ino), int(mode, 8)) for mode, ino, path in rows]
        except ValueError as error:
            raise IntegrityError(
                f"`{self._book_path}` says what no reader of a staged layer wrote",
                hint="discard the run; or give the folders of the layer their modes, and remove the file",
            ) from error


def is_closed(status: os.stat_result) -> bool:
    """Say whether a folder is ours and we may not list it or not enter it."""
    return status.st_mode & _NEEDED != _NEEDED and status.st_uid == os.geteuid() != 0


def _prefixes(path: str) -> list[str]:
    parts = path.split("/") if path else []
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0
