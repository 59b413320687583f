"""Renames of a merge, also of and in folders that their owner may not write to."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from interlock.staging.syscalls import RENAME_EXCHANGE, RENAME_NOREPLACE, renameat2
from interlock.staging.wal import Identity

NO_FLAG = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""What a file system says that cannot exchange, or rename without replacing."""


def rename_free(source_fd: int, source: str, target_fd: int, target: str) -> None:
    """Rename without replacing, also where the file system has no flag for it.

    Raises: OSError; EEXIST where the target is there.
    """
    try:
        rename_with_flags(source_fd, source, target_fd, target, RENAME_NOREPLACE)
    except OSError as error:
        if error.errno not in NO_FLAG:
            raise
        if ino_at(target_fd, target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
        os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)


def rename_with_flags(source_fd: int, source: str, target_fd: int, target: str, flags: int) -> None:
    """Rename; lends the owner's write bit where a folder of ours lacks it."""
    try:
        renameat2(source_fd, source, target_fd, target, flags)
    except PermissionError:
        _lend_write(source_fd)
        _lend_write(target_fd)
        _rename_lending(source_fd, source, target_fd, target, flags)


def _rename_lending(source_fd: int, source: str, target_fd: int, target: str, flags: int) -> None:
    """Rename folders that their owner may not write to: a new parent is written into the folder itself."""
    with ExitStack() as stack:
        stack.enter_context(_lent_write(source_fd, source))
        if flags & RENAME_EXCHANGE:
            stack.enter_context(_lent_write(target_fd, target))
        renameat2(source_fd, source, target_fd, target, flags)


@contextmanager
def _lent_write(dir_fd: int, name: str) -> Iterator[None]:
    status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & stat.S_IWUSR:
        yield
        return
    pin = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        mode = stat.S_IMODE(status.st_mode)
        os.chmod(f"/proc/self/fd/{pin}", mode | stat.S_IWUSR)
        try:
            yield
        finally:
            os.chmod(f"/proc/self/fd/{pin}", mode)
    finally:
        os.close(pin)


def return_write(dir_fd: int, name: str, identity: Identity) -> None:
    """Give a folder its own mode where a crash came between the lending of the write bit and its return."""
    if os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode ^ identity.mode == stat.S_IWUSR:
        os.chmod(name, stat.S_IMODE(identity.mode), dir_fd=dir_fd)


def _lend_write(dir_fd: int) -> None:
    # the adjustments at the end (or the restores) give the folder its own mode again
    status = os.fstat(dir_fd)
    if status.st_uid == os.geteuid() and status.st_mode & 0o300 != 0o300:
        os.chmod(f"/proc/self/fd/{dir_fd}", stat.S_IMODE(status.st_mode) | 0o300)


def ino_at(dir_fd: int, name: str) -> int:
    """Return the inode of an entry, 0 where there is none."""
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return 0
