"""A copy of the staged layers of an agent that lives, as they are at one moment.

It is made like the move of a living machine: passes copy while the agent works, each only what changed since the
one before, and the last pass, for which the agent stands still, has little left to copy.

What tells that a file did not change is its status, ctime above all: it moves at every write and nobody can set
it. A store through a shared mapping moves it at the first touch of a page alone, so a page that was dirty when the
file was copied may change again unseen. Such a mapping counts as a writer of its inode, and the kernel gives a read
lease only on a file without writers: a file on which a lease could be had when it was copied can only change through
a later opening, and so with a later ctime. Every other file is copied again in each pass, the last one too.
"""

import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple

from interlock.model.events import Staging
from interlock.model.records import dataclass
from interlock.staging.copying import copy_symlink, set_attributes
from interlock.staging.errors import MergeFailedError
from interlock.staging.indexed import entries_alone
from interlock.staging.layers import is_whiteout
from interlock.staging.lending import is_closed, lending
from interlock.staging.pouring import pour
from interlock.staging.removing import empty_folder, remove_tree
from interlock.staging.roots import TRUSTED_XATTR_PREFIX, StagedRoot, open_index
from interlock.staging.stamps import check_depth, lent_mode, open_file, open_folder, read_xattrs

_LIVE_PASSES = 5
_FEW = 16
"""A pass that copied no more than this leaves little to the next one."""
_TICK_NS = 20_000_000
"""A status can be as old as the kernel's clock tick when it is told: what is younger is not trusted."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WENT = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ELOOP, errno.ENXIO, errno.EACCES)
"""What a path that the agent changes under our hands gives."""


def take_snapshot(
    roots: Sequence[StagedRoot], folder: str, pause: Callable[[], AbstractContextManager[None]]
) -> tuple[StagedRoot, ...]:
    """Copy the staged layers while their agent works, and let it stand still for the last look only.

    Takes: `folder`, absent or empty, on the layers' file system if blocks are to be shared; `pause`, inside of
    which nobody writes to any of the roots.
    Returns: the same roots over the copies, in order: what is listed, planned and merged of them does not move.
    Raises: MergeFailedError, where the copy cannot be made; what `pause` raises. Then the folder is empty again.
    Holds: no host file is opened; the layers are only read.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    mirrors: list[_Mirror] = []
    copies: list[StagedRoot] = []
    try:
        try:
            for number, root in enumerate(roots):
                copy = replace(root, upper=f"{folder}/{number}")
                mirrors.append(_Mirror(root, _open_layer(root), copy.upper))
                index_fd = open_index(root)
                if index_fd is not None:
                    copy = replace(copy, index=f"{folder}/index-{number}")
                    mirrors.append(_Mirror(root, index_fd, copy.index, is_index=True))
                copies.append(copy)
            for _ in range(_LIVE_PASSES):
                if sum(mirror.follow() for mirror in mirrors) <= _FEW:
                    break
            with pause():
                for mirror in mirrors:
                    mirror.follow(still=True)
            for mirror in mirrors:
                mirror.finish(f"{folder}/names")
        finally:
            for mirror in mirrors:
                mirror.close()
    except OSError as error:
        _empty(folder)
        raise MergeFailedError(
            f"the staged copy cannot be held fast: {error.strerror}",
            hint="free space in the state folder, then try again; nothing was released",
        ) from error
    except BaseException:
        _empty(folder)
        raise
    return tuple(copies)


def _open_layer(root: StagedRoot) -> int:
    with lending(root.upper) as loans:
        loans.lend_top()
        return os.open(root.upper, _FOLDER)


def _empty(folder: str) -> None:
    fd = os.open(folder, _FOLDER)
    try:
        empty_folder(fd)
    finally:
        os.close(fd)


class _Seen(NamedTuple):
    """What an entry was when it was copied.

    Takes: `facts`, that change with it; `is_settled`, whether they tell of each change; `copy`, the copy's inode;
    `names`, how many the layer's file has.
    """

    facts: tuple[int, ...]
    is_settled: bool
    copy: int
    names: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attributes:
    """What a folder's copy is to be given at the end."""

    status: os.stat_result
    xattrs: dict[str, bytes]
    marks: dict[str, bytes]
    is_settled: bool


class _Mirror:
    """One folder of a root's staged copy, and its copy, brought in step pass by pass; to be closed.

    Takes: `source`, the open folder, which is closed with the rest; `is_index`, whether it is the overlay's index, of
    which only what nothing else holds is copied.
    """

    def __init__(self, root: StagedRoot, source: int, target: str, *, is_index: bool = False) -> None:
        self._root = root
        self._source = source
        self._is_index = is_index
        self._overlay = root.mode is Staging.OVERLAY
        self._seen: dict[str, _Seen] = {}
        self._folders: dict[str, _Attributes] = {}
        self._below: dict[str, set[str]] = {}
        self._links: dict[int, tuple[str, int]] = {}
        self._copied = 0
        self._still = False
        try:
            os.mkdir(target, 0o700)
            self._target = os.open(target, _FOLDER)
        except BaseException:
            os.close(source)
            raise

    def close(self) -> None:
        """Close both folders."""
        os.close(self._source)
        os.close(self._target)

    def follow(self, *, still: bool = False) -> int:
        """Copy what is not as it was copied.

        Takes: `still`, whether nobody writes meanwhile, so that nothing may slip away.
        Returns: how many entries were copied.
        """
        self._still, self._copied = still, 0
        self._links = {}
        if not still and is_closed(os.fstat(self._source)):
            return 0
        with lending(self._root.upper) as self._loans:
            if still:
                self._loans.lend_top()
            self._folder(self._source, self._target, "")
        return self._copied

    def finish(self, names: str) -> None:
        """Give the folders their attributes, and the files as many names as they had.

        Takes: `names`, a folder for the names that lie outside of the layer (an overlay's index has some): a
        listing tells by their number whether a file has further ones.
        """
        counts: dict[int, int] = {}
        for seen in self._seen.values():
            if seen.names > 1:
                counts[seen.copy] = counts.get(seen.copy, 0) + 1
        for path, seen in self._seen.items():
            if seen.names > counts.get(seen.copy, seen.names):
                os.makedirs(names, mode=0o700, exist_ok=True)
                beside = f"{names}/{os.fstat(self._target).st_ino}-{seen.copy}"
                if not os.path.lexists(beside):
                    os.link(path, beside, src_dir_fd=self._target, follow_symlinks=False)
        # what lies below first: a folder may lose its write bit
        for path, attributes in sorted(
            self._folders.items(), key=lambda one: one[0].count("/"), reverse=True
        ):
            if path:
                self._finish_folder(path, attributes)
        self._finish_folder("", self._folders[""])

    def _finish_folder(self, path: str, attributes: _Attributes) -> None:
        fd = os.open(path or ".", _FOLDER, dir_fd=self._target)
        try:
            for name, value in attributes.marks.items():
                os.setxattr(fd, name, value)
            set_attributes(fd, attributes.status, attributes.xattrs)
        finally:
            os.close(fd)

    def _folder(self, source: int, target: int, path: str) -> None:
        check_depth(path)
        self._note_folder(source, path)
        names = list(entries_alone(self._root, source)) if self._is_index else os.listdir(source)
        below = self._below.setdefault(path, set())
        for name in below.difference(names):
            self._drop(target, name, f"{path}/{name}" if path else name)
            below.discard(name)
        for name in names:
            child = f"{path}/{name}" if path else name
            try:
                status = os.stat(name, dir_fd=source, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    self._enter((source, target), name, status, child)
                else:
                    self._leaf((source, target), name, status, child)
            except OSError as error:
                if self._still or error.errno not in _WENT:
                    raise
                # the agent took it away just now: the next pass sees what came of it
                self._drop(target, name, child)
                below.discard(name)
                self._copied += 1
            else:
                below.add(name)

    def _note_folder(self, fd: int, path: str) -> None:
        known = self._folders.get(path)
        status = self._loans.true(os.fstat(fd))
        if known is not None and known.is_settled and _facts(known.status) == _facts(status):
            return
        is_settled = status.st_ctime_ns < time.time_ns() - _TICK_NS
        self._folders[path] = _Attributes(
            status=status,
            xattrs=read_xattrs(fd, lend_mode=True),
            marks=self._marks(fd),
            is_settled=is_settled,
        )

    def _marks(self, file: int | str) -> dict[str, bytes]:
        """Read the overlay's own marks: what the layer says without them is something else."""
        if not self._overlay:
            return {}
        try:
            found = os.listxattr(file) if isinstance(file, int) else os.listxattr(file, follow_symlinks=False)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                return {}
            raise
        names = [name for name in found if name.startswith(self._root.xattr_prefix)]
        if not names:
            return {}
        if not isinstance(file, int):
            return {name: os.getxattr(file, name, follow_symlinks=False) for name in names}
        with lent_mode(file, 0o400):
            return {name: os.getxattr(file, name) for name in names}

    def _enter(self, fds: tuple[int, int], name: str, status: os.stat_result, child: str) -> None:
        source, target = fds
        if is_closed(status):
            if not self._still:
                return  # its agent would see it opened: that waits for the last look
            self._loans.lend(source, name, status, child)
        below = open_folder(source, name, status)
        try:
            if child not in self._folders:
                self._drop(target, name, child)
                os.mkdir(name, 0o700, dir_fd=target)
            copy = os.open(name, _FOLDER, dir_fd=target)
            try:
                self._folder(below, copy, child)
            finally:
                os.close(copy)
        finally:
            os.close(below)

    def _leaf(self, fds: tuple[int, int], name: str, status: os.stat_result, child: str) -> None:
        target = fds[1]
        seen = self._seen.get(child)
        first = self._links.get(status.st_ino) if status.st_nlink > 1 else None
        stays = seen is not None and seen.is_settled and seen.facts == _facts(status)
        if seen is not None and stays and (first is None or first[1] == seen.copy):
            if status.st_nlink > 1:
                self._links[status.st_ino] = (child, seen.copy)
            return
        if seen is not None or child in self._folders:
            self._drop(target, name, child)
        self._copied += 1
        if first is not None and self._seen[first[0]].facts == _facts(status):
            os.link(first[0], name, src_dir_fd=self._target, dst_dir_fd=target, follow_symlinks=False)
            self._seen[child] = self._seen[first[0]]
            return
        copied, is_settled = self._copy(fds, name, status)
        copy = os.stat(name, dir_fd=target, follow_symlinks=False).st_ino
        self._seen[child] = _Seen(
            facts=_facts(copied), is_settled=is_settled, copy=copy, names=copied.st_nlink
        )
        if copied.st_nlink > 1:
            self._links[copied.st_ino] = (child, copy)

    def _copy(self, fds: tuple[int, int], name: str, status: os.stat_result) -> tuple[os.stat_result, bool]:
        """Copy one entry that is no folder.

        Returns: its status when it was read, and whether every later change will show in it.
        """
        source, target = fds
        is_old = status.st_ctime_ns < time.time_ns() - _TICK_NS
        if self._overlay and is_whiteout(self._root, source, name, status):
            os.mknod(name, stat.S_IFCHR | 0o600, 0, dir_fd=target)
            return status, is_old
        if stat.S_ISREG(status.st_mode):
            return self._copy_file(fds, name, status)
        if stat.S_ISLNK(status.st_mode):
            copy_symlink(source, name, status, target, name)
        else:
            # a FIFO, socket or device node; the node alone, for nothing listens at it
            os.mknod(name, stat.S_IFMT(status.st_mode) | 0o600, status.st_rdev, dir_fd=target)
            set_attributes(f"/proc/self/fd/{target}/{name}", status, {})
        if self._root.xattr_prefix == TRUSTED_XATTR_PREFIX:  # only regular files can have others
            for mark, value in self._marks(f"/proc/self/fd/{source}/{name}").items():
                os.setxattr(f"/proc/self/fd/{target}/{name}", mark, value, follow_symlinks=False)
        return status, is_old

    def _copy_file(
        self, fds: tuple[int, int], name: str, found: os.stat_result
    ) -> tuple[os.stat_result, bool]:
        reading = open_file(fds[0], name, found, lend_mode=True)
        try:
            status = os.fstat(reading)
            is_settled = status.st_ctime_ns < time.time_ns() - _TICK_NS and _has_no_writer(reading)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            writing = os.open(name, flags, 0o600, dir_fd=fds[1])
            try:
                pour(reading, writing, status)
                for mark, value in self._marks(reading).items():
                    os.setxattr(writing, mark, value)
                set_attributes(writing, status, read_xattrs(reading, lend_mode=True))
            finally:
                os.close(writing)
        finally:
            os.close(reading)
        return status, is_settled

    def _drop(self, target: int, name: str, child: str) -> None:
        """Remove a copy with all below it, and forget it."""
        remove_tree(target, name)
        todo = [child]
        while todo:
            path = todo.pop()
            self._seen.pop(path, None)
            self._folders.pop(path, None)
            todo.extend(f"{path}/{one}" for one in self._below.pop(path, ()))


def _facts(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_ino, status.st_mode, status.st_ctime_ns, status.st_mtime_ns, status.st_size)


def _has_no_writer(fd: int) -> bool:
    """Say whether nobody has an open file open for writing, or mapped so that it could be written.

    Returns: False also where it cannot be told.
    """
    try:
        # whoever opens it for writing in this very moment waits for us, and we are told: by a signal that
        # nobody heeds, instead of one that ends us
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True
