"""The lock on a workspace while something is merged into it: runs stage side by side, but merge one at a time.

A file for each folder lies in the state folder, named by the hash of the folder's real path. A merge holds the
files of its own folders alone, and those of the folders above together with whoever merges beside it: so two
merges exclude each other also where one workspace lies inside the other.

Runs with different state folders (root's and an ordinary user's) do not see each other's lock. Nothing is lost by
that: every step of a merge checks that the host is still what was planned over, and a merge that finds it changed
is taken back.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256

from interlock.model.errors import StuckError
from interlock.runtime.folders import state_folder

NOTE_AFTER_S = 1.0
LONGEST_WAIT_S = 60.0
_PAUSE_S = 0.01

_held: dict[str, int] = {}
"""How often this process holds a lock: recovery and the merge that it ends may both ask for it."""


@contextmanager
def workspace_lock(paths: Sequence[str], note: Callable[[str], None]) -> Iterator[None]:
    """Hold the folders' locks; the same process may take them again inside.

    Takes: `paths`, the staged folders of a run; `note`, told once when there is something to wait for.
    Raises: StuckError, naming the process that holds one, after a minute.
    """
    with ExitStack() as stack:
        for name, (path, alone) in sorted(_wanted(paths).items()):
            if _held.get(name):
                _held[name] += 1
            else:
                descriptor = _acquire(name, path, note, alone=alone)
                stack.callback(os.close, descriptor)
                # by hand too: a child that was forked meanwhile would hold it on
                stack.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)
                _held[name] = 1
            stack.callback(_leave, name)
        yield


def _leave(name: str) -> None:
    _held[name] -= 1
    if not _held[name]:
        del _held[name]


def _wanted(paths: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """Return per lock file the folder it stands for, and whether it is wanted alone."""
    wanted: dict[str, tuple[str, bool]] = {}
    for path in {os.path.realpath(path) for path in paths}:
        folder, alone = path, True
        while True:
            name = sha256(os.fsencode(folder)).hexdigest()[:32]
            wanted[name] = (folder, alone or wanted.get(name, ("", False))[1])
            if folder == "/":
                break
            folder, alone = os.path.dirname(folder), False
    return wanted


def _acquire(name: str, path: str, note: Callable[[str], None], *, alone: bool) -> int:
    locks = os.path.join(state_folder(), "locks")
    try:
        os.makedirs(locks, mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(os.path.join(locks, name), flags, 0o600)
    except OSError as error:
        raise StuckError(
            f"the lock for `{path}` cannot be had: {error.strerror}",
            hint=f"mend the folder `{locks}`, then apply the run again",
        ) from error
    try:
        _wait(descriptor, path, note, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if alone:
            # for whoever waits for us; a full disk must not stop a merge here
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _wait(descriptor: int, path: str, note: Callable[[str], None], kind: int) -> None:
    began = time.monotonic()
    told = False
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        waited_s = time.monotonic() - began
        if waited_s > LONGEST_WAIT_S:
            raise StuckError(
                f"another run merges into `{path}` for over {LONGEST_WAIT_S:.0f} s{_holder(descriptor)}",
                hint="wait until it ends, then apply this run again: nothing of it was merged",
            )
        if waited_s > NOTE_AFTER_S and not told:
            told = True
            note(f"waiting: another run merges into `{path}`{_holder(descriptor)}")
        time.sleep(_PAUSE_S)


def _holder(descriptor: int) -> str:
    """Name the process that holds a lock, as its file says; "" where it merges beside or above `path`."""
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return f" (process {text})" if text.isdigit() and os.path.exists(f"/proc/{text}") else ""
