"""Bytes from one open file into another, holes kept, blocks shared where the file system can."""

import errno
import os

from interlock.staging.stamps import CHUNK_BYTES, extents
from interlock.staging.syscalls import share_bytes

_CANNOT_SHARE = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF)


def pour(reading: int, writing: int, status: os.stat_result) -> None:
    """Give an open file the bytes and the holes of another; what it held before is gone.

    Takes: `status`, of the file that is read, as it was when it was opened.
    Raises: OSError.
    Holds: one that shrinks meanwhile gives what it still has: whoever copies what lives looks again.
    """
    size = status.st_size
    if size <= CHUNK_BYTES and status.st_blocks * 512 >= size:
        data = os.pread(reading, CHUNK_BYTES, 0)
        write_all(writing, data, 0)
        os.ftruncate(writing, len(data))
        return
    os.ftruncate(writing, 0)
    pour_extents(reading, writing, status, living=True)


def pour_extents(reading: int, writing: int, status: os.stat_result, *, living: bool = False) -> None:
    """Give an empty open file the bytes and the holes of another, shared where that can be.

    Takes: `living`, whether whoever writes to the file may shrink it meanwhile.
    Raises: OSError; EIO where it shrank and nobody was to write to it.
    """
    if share_bytes(reading, writing):
        return
    in_kernel = True
    for start, end, is_data in extents(reading, status):
        offset = start if is_data else end
        while offset < end:
            count = 0
            if in_kernel:
                try:
                    count = os.copy_file_range(reading, writing, end - offset, offset, offset)
                except OSError as error:
                    if error.errno not in _CANNOT_SHARE:
                        raise
                    in_kernel = False
            if not in_kernel:
                data = os.pread(reading, min(CHUNK_BYTES, end - offset), offset)
                write_all(writing, data, offset)
                count = len(data)
            if count == 0:
                if not living:
                    raise OSError(errno.EIO, "the file shrank while it was copied")
                break
            offset += count
    os.ftruncate(writing, status.st_size)


def write_all(fd: int, data: bytes, offset: int) -> None:
    """Write all of it at an offset. Raises: OSError."""
    view = memoryview(data)
    while view:
        count = os.pwrite(fd, view, offset)
        view = view[count:]
        offset += count
