"""What a merge puts, copied beside its target and checked against what was listed."""

import errno
import os
import time
from collections.abc import Iterator

from interlock.model.effects import FileStamp, FileType
from interlock.model.errors import IntegrityError
from interlock.model.places import Place, path_text
from interlock.staging.copying import (
    copy_file,
    copy_symlink,
    make_special,
    set_attribute_values,
    set_attributes,
)
from interlock.staging.lending import Loans
from interlock.staging.merge_plan import StageItem, Substitute
from interlock.staging.stamps import host_digest, open_file, read_xattrs, stamp_of, type_of
from interlock.staging.syscalls import open_beneath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_COPY_INSTEAD = frozenset(
    {
        errno.EXDEV,
        errno.EMLINK,
        errno.EPERM,
        errno.EACCES,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ELOOP,
        errno.EOPNOTSUPP,
        errno.ESTALE,
    }
)
"""Why a file cannot be another name of a host file; every other error is one of the disk."""


class Filler:
    """Copies the items of one root into its stage folder, checked against what was listed; to be closed.

    Takes: `fds`, open: the stage folder's `new`, the layer, the host's folder.
    """

    def __init__(
        self, name: str, fds: tuple[int, int, int], loans: Loans, *, index_fd: int | None = None
    ) -> None:
        self._name, self._loans = name, loans
        self._new, self._upper, self._lower = fds
        self._index = index_fd
        self._links: dict[int, str] = {}
        self._folders: list[StageItem] = []
        self._parent: tuple[str, int] | None = None

    def close(self) -> None:
        """Close the folder that is open."""
        if self._parent is not None:
            os.close(self._parent[1])
        self._parent = None

    def _at(self, item: StageItem) -> tuple[int, str]:
        """Return the open folder above a staged file, and its name; items of one folder come together."""
        if item.entry:
            if self._index is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), item.upper_path)
            return self._index, item.entry
        folder, _, name = item.upper_path.rpartition("/")
        if self._parent is None or self._parent[0] != folder:
            self.close()
            self._parent = (folder, self._loans.open_folder(self._upper, folder))
        return self._parent[1], name

    def add(self, item: StageItem) -> None:
        """Copy one item. Raises: OSError; IntegrityError, where the copy is not what was listed."""
        if item.host_link is not None and self._link_host(item, item.host_link):
            return
        fd, name = self._at(item)
        status = self._loans.true(os.stat(name, dir_fd=fd, follow_symlinks=False))
        kind = type_of(status)
        found = stamp_of(status)
        earlier = self._links.get(status.st_ino) if item.instead is None else None
        if earlier is not None:
            os.link(earlier, item.path, src_dir_fd=self._new, dst_dir_fd=self._new, follow_symlinks=False)
            return
        if item.instead is not None:
            found = self._put_substitute(item, item.instead, fd, name)
        elif kind is FileType.SYMLINK:
            target = copy_symlink(fd, name, status, self._new, item.path)
            found = stamp_of(status, link_target=target)
        elif kind is FileType.DIRECTORY:
            os.mkdir(item.path, 0o700, dir_fd=self._new)
            self._folders.append(item)
        elif kind is FileType.FILE:
            digest = copy_file(fd, name, status, self._new, item.path, lend_mode=True)
            found = stamp_of(status, digest=digest)
        elif kind is FileType.FIFO:
            make_special(status, self._new, item.path)
        is_linked = kind is not FileType.DIRECTORY and (status.st_nlink > 1 or item.entry != "")
        if item.instead is None and is_linked:
            self._links[status.st_ino] = item.path
        self._match(item, found)

    def finish_folders(self) -> Iterator[StageItem]:
        """Give the staged folders their attributes, now that nothing more goes into them.

        Returns: each when it has them, the deeper first: what lies in one may be out of reach afterwards.
        """
        for item in reversed(self._folders):
            source = self._loans.open_folder(self._upper, item.upper_path)
            try:
                target = os.open(item.path, _FOLDER | os.O_NOFOLLOW, dir_fd=self._new)
                try:
                    set_attributes(
                        target,
                        self._loans.true(os.fstat(source)),
                        read_xattrs(f"/proc/self/fd/{source}", lend_mode=True),
                    )
                finally:
                    os.close(target)
            finally:
                os.close(source)
            yield item

    def _put_substitute(self, item: StageItem, instead: Substitute, fd: int, name: str) -> FileStamp:
        """Copy the bytes that stand for the staged ones, with the attributes that were planned.

        Nobody made this content before now, so it is dated now, as an editor would.
        """
        folder, _, own = instead.path.rpartition("/")
        source = os.open(folder, _FOLDER)
        try:
            found = os.stat(own, dir_fd=source, follow_symlinks=False)
            digest = copy_file(source, own, found, self._new, item.path)
        finally:
            os.close(source)
        xattrs = instead.xattrs
        if xattrs is None:
            staged = open_file(fd, name, os.stat(name, dir_fd=fd, follow_symlinks=False), lend_mode=True)
            try:
                xattrs = read_xattrs(staged, lend_mode=True)
            finally:
                os.close(staged)
        now = time.time_ns()
        target = os.open(item.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._new)
        try:
            set_attribute_values(
                target,
                mode=item.after.mode,
                owner=(item.after.uid, item.after.gid),
                xattrs=dict(xattrs),
                times_ns=(now, now),
            )
            return stamp_of(os.fstat(target), digest=digest)
        finally:
            os.close(target)

    def _link_host(self, item: StageItem, host_path: str) -> bool:
        """Make the item another name of a host file; False where that cannot be, and a copy must do."""
        folder, _, name = host_path.rpartition("/")
        try:
            fd = open_beneath(self._lower, folder, os.O_PATH | os.O_DIRECTORY)
        except OSError as error:
            if error.errno not in _COPY_INSTEAD:
                raise
            return False
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if type_of(status) is not item.after.type:
                return False
            if item.after.type is FileType.SYMLINK:
                same = path_text(os.fsencode(os.readlink(name, dir_fd=fd))) == item.after.link_target
            else:
                same = host_digest(fd, name, status) == item.after.digest
            if not same:
                return False
            os.link(name, item.path, src_dir_fd=fd, dst_dir_fd=self._new, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _COPY_INSTEAD:
                raise
            return False
        finally:
            os.close(fd)
        return True

    def _match(self, item: StageItem, found: FileStamp) -> None:
        if found != item.after:
            place = Place(root=self._name, path=path_text(os.fsencode(item.upper_path)))
            raise IntegrityError(
                f"the staged copy of `{place}` is not what was listed",
                hint="something still writes to it; list the changes again",
            )
