"""Copies that keep what a file is: bytes, holes, owner, mode, xattrs, times, hard links."""

import hashlib
import os
import stat

from interlock.model.effects import FileType
from interlock.staging.pouring import pour_extents, write_all
from interlock.staging.stamps import (
    CHUNK_BYTES,
    check_depth,
    digest_of,
    extents,
    lent_mode,
    open_file,
    open_folder,
    read_xattrs,
    type_of,
)


def copy_file(
    source_fd: int,
    source: str,
    status: os.stat_result,
    target_fd: int,
    target: str,
    *,
    lend_mode: bool = False,
) -> str:
    """Copy a regular file under a new name and return the digest of what was written.

    Takes: the two open folders and the names in them; `status`, the source's lstat.
    Raises: OSError; EEXIST where the target is there already.
    """
    reading = open_file(source_fd, source, status, lend_mode=lend_mode)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        writing = os.open(target, flags, 0o600, dir_fd=target_fd)
        try:
            if status.st_size <= CHUNK_BYTES:
                digest = _copy_small(reading, writing, status)
            else:
                pour_extents(reading, writing, status)
                digest = digest_of(writing, os.fstat(writing))
            set_attributes(writing, status, read_xattrs(reading, lend_mode=lend_mode))
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    return digest


def _copy_small(reading: int, writing: int, status: os.stat_result) -> str:
    data = os.pread(reading, CHUNK_BYTES + 1, 0)
    if status.st_blocks * 512 < len(data):
        for start, end, is_data in extents(reading, status):
            if is_data:
                write_all(writing, data[start:end], start)
        os.ftruncate(writing, len(data))
    else:
        write_all(writing, data, 0)
    return hashlib.sha256(data).hexdigest()


def set_attributes(file: int | str, status: os.stat_result, xattrs: dict[str, bytes]) -> None:
    """Give a file the owner, mode, times and kept xattrs of another.

    Takes: `file`, open, or its `/proc/self/fd` path; `status` and `xattrs` of the file to be like.
    Raises: OSError; EPERM where we may not give them (another's owner, a capability).
    """
    set_attribute_values(
        file,
        mode=stat.S_IMODE(status.st_mode),
        owner=(status.st_uid, status.st_gid),
        xattrs=xattrs,
        times_ns=(status.st_atime_ns, status.st_mtime_ns),
    )


def set_attribute_values(
    file: int | str,
    *,
    mode: int,
    owner: tuple[int, int],
    xattrs: dict[str, bytes] | None,
    times_ns: tuple[int, int],
) -> None:
    """Set a file's attributes, each only where it differs; `xattrs` None leaves those alone."""
    now = os.stat(file)
    changes_owner = (now.st_uid, now.st_gid) != owner
    # the owner first: a change of owner takes set-id bits and capabilities away
    if changes_owner:
        os.chown(file, *owner)
    if xattrs is not None:
        with lent_mode(file, 0o600):
            present = read_xattrs(file)
            for name in present:
                if name not in xattrs:
                    os.removexattr(file, name)
            for name, value in xattrs.items():
                if present.get(name) != value or changes_owner:
                    os.setxattr(file, name, value)
    # after the ACL, which moves the group bits
    if changes_owner or xattrs or stat.S_IMODE(now.st_mode) != mode:
        os.chmod(file, mode)
    os.utime(file, ns=times_ns)


def copy_symlink(source_fd: int, source: str, status: os.stat_result, target_fd: int, target: str) -> str:
    """Copy a symlink itself, with owner and times, and return its target."""
    text = os.readlink(source, dir_fd=source_fd)
    os.symlink(text, target, dir_fd=target_fd)
    set_symlink_attributes(
        target_fd,
        target,
        owner=(status.st_uid, status.st_gid),
        times_ns=(status.st_atime_ns, status.st_mtime_ns),
    )
    return text


def set_symlink_attributes(
    dir_fd: int, name: str, *, owner: tuple[int, int], times_ns: tuple[int, int]
) -> None:
    """Give a symlink itself an owner and times."""
    now = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if (now.st_uid, now.st_gid) != owner:
        os.chown(name, *owner, dir_fd=dir_fd, follow_symlinks=False)
    os.utime(name, ns=times_ns, dir_fd=dir_fd, follow_symlinks=False)


def copy_tree(lower: str, upper: str) -> tuple[str, ...]:
    """Fill the empty folder `upper` with a full copy of `lower`, for file systems without overlays.

    Returns: what had to be left out (devices that we may not make, what is on another file system), as
    paths below `lower`. A listing would show these as removed: where there are any, the run must not start.
    Raises: OSError.
    """
    left_out: list[str] = []
    links: dict[int, str] = {}
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    lower_fd = os.open(lower, flags)
    try:
        upper_fd = os.open(upper, flags)
        try:
            device = os.fstat(lower_fd).st_dev
            _copy_folder(lower_fd, upper_fd, "", (upper_fd, device, links, left_out))
            set_attributes(upper_fd, os.fstat(lower_fd), read_xattrs(lower_fd))
        finally:
            os.close(upper_fd)
    finally:
        os.close(lower_fd)
    return tuple(left_out)


def _copy_folder(
    source_fd: int, target_fd: int, path: str, context: tuple[int, int, dict[int, str], list[str]]
) -> None:
    top_fd, device, links, left_out = context
    check_depth(path)
    for name in sorted(os.listdir(source_fd), key=os.fsencode):
        child = f"{path}/{name}" if path else name
        status = os.stat(name, dir_fd=source_fd, follow_symlinks=False)
        kind = type_of(status)
        if kind is FileType.DIRECTORY and status.st_dev != device:
            # Folders alone tell: on an overlay, files have the device of the layer that they lie in.
            left_out.append(child)
        elif kind is FileType.DIRECTORY:
            os.mkdir(name, 0o700, dir_fd=target_fd)
            below = open_folder(source_fd, name, status)
            try:
                made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=target_fd)
                try:
                    _copy_folder(below, made, child, context)
                    set_attributes(made, status, read_xattrs(below))
                finally:
                    os.close(made)
            finally:
                os.close(below)
        elif status.st_nlink > 1 and status.st_ino in links:
            os.link(
                links[status.st_ino], name, src_dir_fd=top_fd, dst_dir_fd=target_fd, follow_symlinks=False
            )
        else:
            if kind is FileType.SYMLINK:
                copy_symlink(source_fd, name, status, target_fd, name)
            elif kind is FileType.FILE:
                copy_file(source_fd, name, status, target_fd, name)
            else:
                try:
                    make_special(status, target_fd, name)
                except PermissionError:
                    left_out.append(child)
                    continue
            if status.st_nlink > 1:
                links[status.st_ino] = child


def make_special(status: os.stat_result, target_fd: int, name: str) -> None:
    """Make a FIFO, socket or device node like another; the node alone, for nothing listens at it."""
    os.mknod(name, stat.S_IFMT(status.st_mode) | 0o600, status.st_rdev, dir_fd=target_fd)
    # by its folder and name, which cannot be a symlink: we have just made it where nobody else writes
    set_attributes(f"/proc/self/fd/{target_fd}/{name}", status, {})
