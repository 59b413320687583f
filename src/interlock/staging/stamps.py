"""What a file is: its type, its stamp, its digest, and the xattrs that go with it."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from interlock.model.effects import FileStamp, FileType
from interlock.model.places import path_text
from interlock.staging.syscalls import open_beneath

CHUNK_BYTES = 1 << 20
DEPTH_LIMIT = 256
"""Folders nested deeper than this are refused: each level costs a descriptor."""
FACTS_PREFIX = "stat:"
BEFORE_DIGEST_LIMIT_BYTES = 64 << 20
"""Host files up to this size get a digest when they change: it is what finds a conflict later."""

_TYPES = {
    stat.S_IFREG: FileType.FILE,
    stat.S_IFDIR: FileType.DIRECTORY,
    stat.S_IFLNK: FileType.SYMLINK,
    stat.S_IFIFO: FileType.FIFO,
    stat.S_IFSOCK: FileType.SOCKET,
    stat.S_IFCHR: FileType.CHARACTER_DEVICE,
    stat.S_IFBLK: FileType.BLOCK_DEVICE,
}
_KEPT_SYSTEM_XATTRS = ("system.posix_acl_access", "system.posix_acl_default", "security.capability")
CAPABILITY_XATTR = "security.capability"
_ZEROS = bytes(CHUNK_BYTES)

Visit = Callable[[str, os.stat_result], None]
"""Called with the path and the lstat of an entry that is come by."""


def type_of(status: os.stat_result) -> FileType:
    """Return the file's type."""
    return type_of_mode(status.st_mode)


def type_of_mode(mode: int) -> FileType:
    """Return the type that a whole mode holds."""
    return _TYPES[stat.S_IFMT(mode)]


def stamp_of(status: os.stat_result, *, digest: str = "", link_target: str = "") -> FileStamp:
    """Make the stamp of a file from its status; `link_target` as the kernel gave it."""
    kind = type_of(status)
    return FileStamp(
        type=kind,
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        size_bytes=status.st_size if kind is FileType.FILE else 0,
        digest=digest,
        link_target=path_text(os.fsencode(link_target)),
    )


def is_kept_xattr(name: str) -> bool:
    """Say whether an xattr is part of a file's content for the merge.

    An overlay's own marks never are, whichever overlay: on the host they would steer a later one.
    """
    if name.startswith("user."):
        return not name.startswith("user.overlay.")
    return name in _KEPT_SYSTEM_XATTRS


def read_xattrs(file: int | str, *, lend_mode: bool = False) -> dict[str, bytes]:
    """Read the xattrs of an open file (or of a `/proc/self/fd` path) that the merge keeps."""
    try:
        names = [name for name in os.listxattr(file) if is_kept_xattr(name)]
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise
    if not names:
        return {}
    with lent_mode(file, 0o400 if lend_mode else 0):
        return {name: os.getxattr(file, name) for name in names}


@contextmanager
def lent_mode(file: int | str, bits: int) -> Iterator[None]:
    """Lend a file of ours permission bits: even an open file's xattrs are guarded by its mode.

    Takes: `bits`, 0 for none. Holds: root needs nothing lent, and the mode is as before afterwards.
    """
    status = os.stat(file)
    mode = stat.S_IMODE(status.st_mode)
    needed = bool(bits) and mode & bits != bits and status.st_uid == os.geteuid() != 0
    if needed:
        os.chmod(file, mode | bits)
    try:
        yield
    finally:
        if needed:
            os.chmod(file, mode)


def open_file(dir_fd: int, name: str, status: os.stat_result, *, lend_mode: bool = False) -> int:
    """Open a regular file for reading, and only that file: no link, FIFO or other inode in its place.

    Takes: `status`, its lstat; `lend_mode`, whether the owner's read bit may be lent for the moment of the
    opening (the staged copy is ours to touch, the host is not).
    Raises: OSError; ESTALE where the name now means another file.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    return _open_same(dir_fd, name, status, flags, lend_mode=lend_mode)


def open_folder(dir_fd: int, name: str, status: os.stat_result, *, lend_mode: bool = False) -> int:
    """Open a folder for listing, as `open_file` does a file."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    return _open_same(dir_fd, name, status, flags, lend_mode=lend_mode)


def _open_same(dir_fd: int, name: str, status: os.stat_result, flags: int, *, lend_mode: bool) -> int:
    try:
        fd = os.open(name, flags, dir_fd=dir_fd)
    except PermissionError:
        if not lend_mode or status.st_uid != os.geteuid():
            raise
        mode = stat.S_IMODE(status.st_mode)
        pin = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            os.chmod(f"/proc/self/fd/{pin}", mode | 0o500)
            try:
                fd = os.open(name, flags, dir_fd=dir_fd)
            finally:
                os.chmod(f"/proc/self/fd/{pin}", mode)
        finally:
            os.close(pin)
    found = os.fstat(fd)
    if (found.st_ino, found.st_dev) != (status.st_ino, status.st_dev):
        os.close(fd)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), name)
    return fd


def digest_of(fd: int, status: os.stat_result) -> str:
    """Return the SHA-256 of an open file's bytes in hex; a hole is hashed without being read."""
    return read_file(fd, status, keep_bytes=0)[0]


def read_file(fd: int, status: os.stat_result, *, keep_bytes: int) -> tuple[str, bytes | None]:
    """Return an open file's digest, and its bytes where there are at most `keep_bytes` of them."""
    size = status.st_size
    if size <= CHUNK_BYTES:
        data = os.pread(fd, CHUNK_BYTES, 0)
        return hashlib.sha256(data).hexdigest(), data if len(data) <= keep_bytes else None
    digest = hashlib.sha256()
    for start, end, is_data in extents(fd, status):
        offset = start
        while offset < end:
            want = min(CHUNK_BYTES, end - offset)
            chunk = os.pread(fd, want, offset) if is_data else _ZEROS[:want]
            if not chunk:
                raise OSError(errno.EIO, "the file shrank while it was read")
            digest.update(chunk)
            offset += len(chunk)
    return digest.hexdigest(), None


def extents(fd: int, status: os.stat_result) -> list[tuple[int, int, bool]]:
    """List an open file's data and holes as (start, end, is data), from 0 to its size."""
    size = status.st_size
    if status.st_blocks * 512 >= size:
        return [(0, size, True)] if size else []
    out: list[tuple[int, int, bool]] = []
    offset = 0
    while offset < size:
        try:
            start = os.lseek(fd, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                out.append((offset, size, False))
                return out
            if error.errno == errno.EINVAL:
                out.append((offset, size, True))
                return out
            raise
        if start > offset:
            out.append((offset, start, False))
        end = os.lseek(fd, start, os.SEEK_HOLE)
        out.append((start, end, True))
        offset = end
    return out


def tree_digest(
    dir_fd: int,
    name: str,
    status: os.stat_result,
    *,
    path: str = "",
    leaving: frozenset[str] = frozenset(),
    passing: Visit | None = None,
) -> tuple[int, str]:
    """Return how many entries lie below a folder, and a digest over what each of them is.

    Takes: `path`, the folder's path as `leaving` writes paths; `leaving`, folders that move out of it and
    are not counted; `passing`, told of each entry that is counted.
    Holds: no file is opened; a folder's own times and size do not count: they change when an entry leaves.
    """
    digest = hashlib.sha256()
    count = 0

    def visit(parent_fd: int, entry: str, found: os.stat_result, at: str) -> None:
        nonlocal count
        check_depth(at)
        fd = open_folder(parent_fd, entry, found)
        try:
            for child in sorted(os.listdir(fd), key=os.fsencode):
                child_at = f"{at}/{child}" if at else child
                if child_at in leaving:
                    continue
                status = os.stat(child, dir_fd=fd, follow_symlinks=False)
                count += 1
                if passing is not None:
                    passing(child_at, status)
                is_folder = stat.S_ISDIR(status.st_mode)
                times = (0, 0) if is_folder else (status.st_size, status.st_mtime_ns)
                facts = f"{status.st_mode} {status.st_uid} {status.st_gid} {times[0]} {times[1]}".encode()
                relative = os.fsencode(child_at[len(path) :])
                digest.update(b"%d %s %s\n" % (len(relative), relative, facts))
                if stat.S_ISLNK(status.st_mode):
                    target = os.fsencode(os.readlink(child, dir_fd=fd))
                    digest.update(b"%d %s\n" % (len(target), target))
                if is_folder:
                    visit(fd, child, status, child_at)
        finally:
            os.close(fd)

    visit(dir_fd, name, status, path)
    return count, digest.hexdigest()


def check_depth(path: str) -> None:
    """Refuse a path that is nested too deep.

    Raises: OSError, ENAMETOOLONG.
    """
    if path.count("/") >= DEPTH_LIMIT:
        raise OSError(errno.ENAMETOOLONG, f"folders are nested deeper than {DEPTH_LIMIT}")


def before_stamp(dir_fd: int, path: str, *, leaving: frozenset[str] = frozenset(), whole: bool) -> FileStamp:
    """Read what the host has at a path below `dir_fd` now.

    Takes: `whole`, whether a folder stands for everything below it (it is to go).
    Returns: the stamp, a file's digest as `host_digest` has it; with `whole`, a folder's `size_bytes` is the
    number of entries below and `digest` is over them.
    Raises: OSError; ENOENT where there is nothing.
    """
    parent, _, name = path.rpartition("/")
    parent_fd = open_beneath(dir_fd, parent, os.O_PATH | os.O_DIRECTORY)
    try:
        return stamp_at(parent_fd, name or ".", path=path, leaving=leaving, whole=whole)
    finally:
        os.close(parent_fd)


def stamp_at(
    dir_fd: int,
    name: str,
    *,
    path: str = "",
    leaving: frozenset[str] = frozenset(),
    whole: bool,
    passing: Visit | None = None,
) -> FileStamp:
    """Read the stamp of one entry of an open folder, as `before_stamp` does; `passing` as `tree_digest` has it."""
    status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    kind = type_of(status)
    if kind is FileType.SYMLINK:
        return stamp_of(status, link_target=os.readlink(name, dir_fd=dir_fd))
    if kind is FileType.FILE:
        return stamp_of(status, digest=host_digest(dir_fd, name, status))
    if kind is FileType.DIRECTORY and whole:
        count, digest = tree_digest(dir_fd, name, status, path=path, leaving=leaving, passing=passing)
        return FileStamp(
            type=kind,
            mode=stat.S_IMODE(status.st_mode),
            uid=status.st_uid,
            gid=status.st_gid,
            size_bytes=count,
            digest=digest,
        )
    return stamp_of(status)


def host_digest(dir_fd: int, name: str, status: os.stat_result) -> str:
    """Return the digest of a host file; of one that is too large or may not be read, one over its facts.

    Returns: the latter as `stat:` and a hash over inode, size and time of the last write: it finds an edit, and is
    never taken for a content's.
    """
    if status.st_size > BEFORE_DIGEST_LIMIT_BYTES:
        return _facts_digest(status)
    try:
        fd = open_file(dir_fd, name, status)
    except PermissionError:
        return _facts_digest(status)
    try:
        return digest_of(fd, status)
    finally:
        os.close(fd)


def _facts_digest(status: os.stat_result) -> str:
    facts = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}".encode()
    return FACTS_PREFIX + hashlib.sha256(facts).hexdigest()[:32]


def paths_of_inodes(dir_fd: int, wanted: Collection[int], path: str = "") -> list[tuple[str, int]]:
    """List the files below an open folder whose inode is wanted: (path, inode), in order."""
    out: list[tuple[str, int]] = []
    fd = open_beneath(dir_fd, path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(fd) as entries:
            found = [(e.name, e.inode(), e.is_dir(follow_symlinks=False)) for e in entries]
    finally:
        os.close(fd)
    for name, ino, is_folder in sorted(found, key=lambda entry: os.fsencode(entry[0])):
        child = f"{path}/{name}" if path else name
        if is_folder:
            out.extend(paths_of_inodes(dir_fd, wanted, child))
        elif ino in wanted:
            out.append((child, ino))
    return out
