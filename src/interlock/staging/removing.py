"""Removal of our own trees, through open folders so that no link leads it astray."""

import os
import stat

from interlock.staging.roots import StagedRoot, open_index


def discard(root: StagedRoot) -> None:
    """Drop everything in the staged copy, whose overlay is not mounted; its top folder stays, empty.

    Holds: no symlink is followed, and nothing outside of `root.upper` and `root.index` is touched.
    Raises: OSError.
    """
    # the index first: a file that the layer has no more would else count as one that only the index holds
    index_fd = open_index(root)
    if index_fd is not None:
        _empty_and_close(index_fd)
    above = os.open(os.path.dirname(root.upper), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _empty_and_close(_open_own_folder(above, os.path.basename(root.upper)))
    finally:
        os.close(above)


def _empty_and_close(fd: int) -> None:
    try:
        empty_folder(fd)
    finally:
        os.close(fd)


def remove_tree(dir_fd: int, name: str) -> None:
    """Remove an entry of an open folder with all below it; one that is gone already is fine.

    Raises: OSError.
    """
    try:
        status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=dir_fd)
            return
        fd = _open_own_folder(dir_fd, name)
    except FileNotFoundError:
        return
    try:
        empty_folder(fd)
    finally:
        os.close(fd)
    try:
        os.rmdir(name, dir_fd=dir_fd)
    except FileNotFoundError:
        return


def empty_folder(fd: int) -> None:
    """Remove everything below an open folder, however deep (a hostile tree costs no stack).

    Raises: OSError.
    """
    # Grandchildren that are folders are moved up under fresh names, so that depth never grows.
    fresh = f".interlock-{os.urandom(8).hex()}-"
    count = 0
    while True:
        entries = _entries(fd)
        if not entries:
            return
        for name, is_folder in entries:
            if not is_folder:
                os.unlink(name, dir_fd=fd)
                continue
            below = _open_own_folder(fd, name)
            try:
                for child, child_is_folder in _entries(below):
                    if child_is_folder:
                        os.close(_open_own_folder(below, child))
                        count += 1
                        os.rename(child, f"{fresh}{count}", src_dir_fd=below, dst_dir_fd=fd)
                    else:
                        os.unlink(child, dir_fd=below)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=fd)


def _entries(fd: int) -> list[tuple[str, bool]]:
    with os.scandir(fd) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]


def _open_own_folder(dir_fd: int, name: str) -> int:
    """Open a folder of ours for emptying, and give its owner the bits that it needs."""
    pin = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        status = os.fstat(pin)
        if status.st_mode & 0o700 != 0o700 and status.st_uid == os.geteuid():
            os.chmod(f"/proc/self/fd/{pin}", 0o700)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=pin)
    finally:
        os.close(pin)
