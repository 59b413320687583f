"""A host file with several names in an overlay with an index: which names does one staged file stand for?

Such an overlay keeps hard links together: a write through one name shows at all of them, though its layer
holds the file at that one name alone. The layer's file is tied to the host's by its `origin` mark, a file
handle; a file that merely took the place of one of the names has no such mark, and says nothing of the others.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Collection, Iterator

from interlock.model.records import dataclass
from interlock.staging.layers import OpenRoot, mark_of
from interlock.staging.roots import TRUSTED_XATTR_PREFIX
from interlock.staging.stamps import open_folder
from interlock.staging.syscalls import open_beneath

_MARK_HEAD_BYTES = 21
"""Before the handle stand version, magic, length, flags, handle type, and the file system's 16-byte id."""
_TYPE_AT = 4
_HANDLE_BYTES = 128

_libc = ctypes.CDLL(None, use_errno=True)


class _FileHandle(ctypes.Structure):
    _fields_ = (
        ("handle_bytes", ctypes.c_uint32),
        ("handle_type", ctypes.c_int32),
        ("data", ctypes.c_ubyte * _HANDLE_BYTES),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A file handle, as the kernel gives it for an inode of one file system."""

    type: int
    data: bytes


def origin_of(opened_root: OpenRoot, dir_fd: int, name: str, status: os.stat_result) -> Handle | None:
    """Return which host file a file of the layer was copied up from, where an index may tie it to others.

    Takes: `dir_fd` and `name`, where the layer has it; `status`, its lstat.
    Returns: None also where no other name can be tied to it.
    """
    root = opened_root.root
    # the index itself holds one more link to each file that it knows
    if status.st_nlink < 2 or not opened_root.is_overlay or root.xattr_prefix != TRUSTED_XATTR_PREFIX:
        return None
    if stat.S_ISDIR(status.st_mode):
        return None
    try:
        mark = os.getxattr(
            f"/proc/self/fd/{dir_fd}/{name}", f"{root.xattr_prefix}origin", follow_symlinks=False
        )
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return None
        raise
    return handle_in(mark)


def handle_in(mark: bytes) -> Handle | None:
    """Read the file handle in an overlay's `origin` mark, or the name of an index entry; None where it has none."""
    if len(mark) <= _MARK_HEAD_BYTES:
        return None
    return Handle(type=mark[_TYPE_AT], data=mark[_MARK_HEAD_BYTES:])


def handle_at(dir_fd: int, name: str) -> Handle | None:
    """Return the handle of an entry of an open folder, None on a file system that has none."""
    handle = _FileHandle(_HANDLE_BYTES, 0)
    mount = ctypes.c_int(0)
    if _libc.name_to_handle_at(dir_fd, os.fsencode(name), ctypes.byref(handle), ctypes.byref(mount), 0) != 0:
        code = ctypes.get_errno()
        if code in (errno.EOPNOTSUPP, errno.EOVERFLOW, errno.ENOSYS):
            return None
        raise OSError(code, os.strerror(code), name)
    return Handle(type=handle.handle_type, data=bytes(handle.data[: handle.handle_bytes]))


def host_names(
    opened_root: OpenRoot, handles: Collection[Handle], alone: Collection[Handle] = ()
) -> Iterator[tuple[str, Handle]]:
    """List the host's names, below the root, of those files among `handles` that have several.

    Takes: `alone`, files of which the layer has no name (`alone_in_index`): one name on the host is enough.
    Returns: (host path, handle), in order.
    """
    wanted: dict[int, Handle] = {}
    unknown: set[Handle] = set()
    for handle in {*handles, *alone}:
        try:
            status = status_by_handle(opened_root.lower_fd, handle)
        except PermissionError:
            unknown.add(handle)
            continue
        if status is not None and (status.st_nlink > 1 or handle in alone):
            wanted[status.st_ino] = handle
    if wanted or unknown:
        fewest = 1 if unknown.intersection(alone) else 2
        yield from _walk(opened_root.lower_fd, "", wanted, unknown, fewest)


def names_in_layer(opened_root: OpenRoot, handle: Handle, path: str = "") -> list[str]:
    """List the names that the layer has of a host file which it copied up."""
    found = []
    fd = open_beneath(opened_root.upper_fd, path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(fd) as entries:
            names = sorted((one.name, one.is_dir(follow_symlinks=False)) for one in entries)
        for name, is_folder in names:
            child = f"{path}/{name}" if path else name
            if is_folder:
                found += names_in_layer(opened_root, handle, child)
            elif origin_of(opened_root, fd, name, os.stat(name, dir_fd=fd, follow_symlinks=False)) == handle:
                found.append(child)
    finally:
        os.close(fd)
    return found


def has_several_names(opened_root: OpenRoot, handle: Handle) -> bool:
    """Say whether the host's file of a handle has several names, or may have."""
    try:
        status = status_by_handle(opened_root.lower_fd, handle)
    except PermissionError:
        return True
    return status is not None and status.st_nlink > 1


def shows_host(opened_root: OpenRoot, path: str, lower_path: str) -> bool:
    """Say whether the merged view still shows at `path` what the host has at `lower_path`, untouched."""
    sources = {new: old for old, new in opened_root.moved.items()}
    seen = ""
    fd = os.dup(opened_root.upper_fd)
    try:
        for part in path.split("/"):
            seen = f"{seen}/{part}" if seen else part
            if seen in sources and not lower_path.startswith(sources[seen] + "/"):
                return False
            try:
                status = os.stat(part, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                return True
            if not stat.S_ISDIR(status.st_mode):
                return False
            below = open_folder(fd, part, status, lend_mode=True)
            os.close(fd)
            fd = below
            if mark_of(opened_root.root, fd, "opaque") == b"y":
                return False
    finally:
        os.close(fd)
    return False


def status_by_handle(mount_fd: int, handle: Handle) -> os.stat_result | None:
    """Return the status of a handle's file, None where it is gone.

    Takes: `mount_fd`, anything open on its file system.
    Raises: OSError; PermissionError for an ordinary user.
    """
    raw = _FileHandle(len(handle.data), handle.type)
    ctypes.memmove(raw.data, handle.data, min(len(handle.data), _HANDLE_BYTES))
    fd = _libc.open_by_handle_at(mount_fd, ctypes.byref(raw), os.O_PATH | os.O_CLOEXEC)
    if fd < 0:
        code = ctypes.get_errno()
        if code == errno.ESTALE:
            return None
        raise OSError(code, os.strerror(code))
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def _walk(
    top_fd: int, path: str, wanted: dict[int, Handle], unknown: set[Handle], fewest: int
) -> Iterator[tuple[str, Handle]]:
    """Walk below a folder. Takes: `fewest`, how many names a file has at least that may be one of `unknown`."""
    fd = open_beneath(top_fd, path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(fd) as entries:
            found = [(one.name, one.inode(), one.is_dir(follow_symlinks=False)) for one in entries]
        for name, ino, is_folder in sorted(found, key=lambda entry: os.fsencode(entry[0])):
            child = f"{path}/{name}" if path else name
            if is_folder:
                yield from _walk(top_fd, child, wanted, unknown, fewest)
            elif ino in wanted:
                yield child, wanted[ino]
            elif unknown and os.stat(name, dir_fd=fd, follow_symlinks=False).st_nlink >= fewest:
                handle = handle_at(fd, name)
                if handle in unknown:
                    yield child, handle
    finally:
        os.close(fd)
