"""The visible steps of a merge, each idempotent, each with its reverse.

How far a merge came is read from the stage folder: a slot that still is in `new` was not put; a slot
in `old` or `moved` was taken. All takes of all roots come before all puts, all puts before all
adjustments, and the two borders are marked, so that an empty `moved` slot means one thing only.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from interlock.model.errors import StuckError
from interlock.model.places import Place, path_text
from interlock.staging.copying import set_attribute_values, set_symlink_attributes
from interlock.staging.errors import ConflictError
from interlock.staging.stamps import tree_digest
from interlock.staging.syscalls import RENAME_EXCHANGE, RENAME_NOREPLACE, open_beneath, renameat2, syncfs
from interlock.staging.wal import Adjust, Attributes, Identity, Put, Take, Wal, WalRoot

NEW, OLD, MOVED = "new", "old", "moved"
_PLACED, _ADJUSTED = "placed", "adjusted"
MARKS = (_PLACED, _ADJUSTED)
"""Folders in a stage folder that say which border all of its steps have passed."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_FLAG = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


class _OpenStage:
    """A root and its stage folder, open for the steps."""

    def __init__(self, root: WalRoot) -> None:
        self.root = root
        self._fds: list[int] = []
        try:
            self.fd = self._open(root.lower, None)
            self.stage = self._open(root.stage, None)
            found, self.device = os.fstat(self.fd), os.fstat(self.stage).st_dev
            # a device's number may be another one after a start of the machine; the two must share one
            if (found.st_dev, found.st_ino) != (self.device, root.ino):
                raise StuckError(
                    f"the folder of root `{root.name}` is another one than when the merge began",
                    hint="put the folder back to its path, then run recover again",
                )
            self.new, self.old, self.moved = (self._open(name, self.stage) for name in (NEW, OLD, MOVED))
        except BaseException:
            self.close()
            raise
        self._parent: tuple[str, int] | None = None

    def _open(self, path: str, dir_fd: int | None) -> int:
        fd = os.open(path, _FOLDER, dir_fd=dir_fd)
        self._fds.append(fd)
        return fd

    def close(self) -> None:
        self.forget_parent()
        while self._fds:
            os.close(self._fds.pop())

    def forget_parent(self) -> None:
        """Drop the remembered folder: paths mean something else in the next phase."""
        parent = getattr(self, "_parent", None)
        if parent is not None:
            os.close(parent[1])
        self._parent = None

    def at(self, path: str) -> tuple[int, str]:
        """Return the open folder above a path of the root, and the name in it.

        Raises: OSError; ELOOP where a symlink has come into the way.
        """
        folder, _, name = path.rpartition("/")
        if self._parent is None or self._parent[0] != folder:
            self.forget_parent()
            # O_PATH: to look up and rename needs no right to list
            self._parent = (folder, open_beneath(self.fd, folder, os.O_PATH | os.O_DIRECTORY))
        return self._parent[1], name or "."

    def is_marked(self, mark: str) -> bool:
        return _ino(self.stage, mark) != 0

    def mark(self, mark: str) -> None:
        if not self.is_marked(mark):
            os.mkdir(mark, 0o700, dir_fd=self.stage)

    def unmark(self, mark: str) -> None:
        if self.is_marked(mark):
            os.rmdir(mark, dir_fd=self.stage)

    def place(self, path: str) -> Place:
        return Place(root=self.root.name, path=path_text(os.fsencode(path)))


class Steps:
    """The steps of one log over its open roots; to be closed."""

    def __init__(self, wal: Wal) -> None:
        self._wal = wal
        self._stages: list[_OpenStage] = []
        self._leaving: list[frozenset[str]] = []
        try:
            for number, root in enumerate(wal.roots):
                self._stages.append(_OpenStage(root))
                moved = (take.path for take in wal.takes if take.root == number and take.is_move)
                self._leaving.append(frozenset(moved))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every folder."""
        for stage in self._stages:
            stage.close()

    def advance(self) -> None:
        """Take every step that has not been taken, to the end, and make it durable.

        Raises: OSError, or ConflictError where the host changed under a step; then `retreat` is to follow.
        """
        for take in self._wal.takes:
            if not self._stages[take.root].is_marked(_PLACED):
                self._take(take)
        self._border(lambda stage: stage.mark(_PLACED))
        for put in self._wal.puts:
            self._put(put)
        self._border(lambda stage: stage.mark(_ADJUSTED))
        for adjust in self._wal.adjusts:
            self._adjust(adjust, adjust.after, strict=True)
        self._sync()

    def retreat(self) -> None:
        """Take every step back that was taken, and make that durable.

        Raises: OSError, or StuckError where the host changed what the merge had put.
        """
        if all(stage.is_marked(_ADJUSTED) for stage in self._stages):
            for adjust in self._wal.adjusts:
                if adjust.before is not None:
                    self._adjust(adjust, adjust.before, strict=False)
        self._border(lambda stage: stage.unmark(_ADJUSTED))
        for put in reversed(self._wal.puts):
            if self._stages[put.root].is_marked(_PLACED):
                self._unput(put)
        self._border(lambda stage: stage.unmark(_PLACED))
        for take in reversed(self._wal.takes):
            self._untake(take)
        self._border(lambda stage: None)
        for adjust in self._wal.restores:
            self._adjust(adjust, adjust.after, strict=False, keeps_owner=True)
        self._sync()

    def _border(self, cross: Callable[[_OpenStage], None]) -> None:
        for stage in self._stages:
            stage.forget_parent()
            cross(stage)

    def _sync(self) -> None:
        devices: set[int] = set()
        for stage in self._stages:
            if stage.device not in devices:
                devices.add(stage.device)
                syncfs(stage.fd)

    def _take(self, take: Take) -> None:
        stage = self._stages[take.root]
        target = stage.moved if take.is_move else stage.old
        if not _ino(target, take.slot):
            folder, name = stage.at(take.path)
            try:
                self._rename(folder, name, target, take.slot)
            except FileNotFoundError:
                raise _conflict(stage.place(take.path)) from None
        self._check(take.root, target, take.slot, take.identity, take.path, is_move=take.is_move)

    def _untake(self, take: Take) -> None:
        stage = self._stages[take.root]
        source = stage.moved if take.is_move else stage.old
        if _ino(source, take.slot):
            folder, name = stage.at(take.path)
            self._rename(source, take.slot, folder, name)
            _return_write(folder, name, take.identity)

    def _put(self, put: Put) -> None:
        stage = self._stages[put.root]
        if put.replaces is not None:
            self._swap(put, put.replaces)
            return
        source = stage.moved if put.is_move else stage.new
        if _ino(source, put.slot) == put.ino:
            folder, name = stage.at(put.path)
            try:
                self._rename(source, put.slot, folder, name)
            except FileExistsError:
                raise _conflict(stage.place(put.path)) from None

    def _unput(self, put: Put) -> None:
        stage = self._stages[put.root]
        if put.replaces is not None:
            self._unswap(put)
            return
        source = stage.moved if put.is_move else stage.new
        if not _ino(source, put.slot):
            try:
                folder, name = stage.at(put.path)
                found = _ino(folder, name)
            except (FileNotFoundError, NotADirectoryError):
                found = 0
            if not found and not put.is_move:
                return  # what was put is gone already
            self._expect(stage, put, found)
            self._rename(folder, name, source, put.slot)

    def _swap(self, put: Put, replaces: Identity) -> None:
        stage = self._stages[put.root]
        if _ino(stage.new, put.slot) == put.ino:
            folder, name = stage.at(put.path)
            if not _ino(stage.old, put.slot):
                try:
                    _renamed(stage.new, put.slot, folder, name, RENAME_EXCHANGE)
                except FileNotFoundError:
                    raise _conflict(stage.place(put.path)) from None
                except OSError as error:
                    if error.errno not in _NO_FLAG:
                        raise
                    # a file system that cannot exchange: two renames, the old file kept beside
                    self._rename(folder, name, stage.old, put.slot)
            if _ino(stage.old, put.slot):
                self._check(put.root, stage.old, put.slot, replaces, put.path, is_move=False)
                self._rename(stage.new, put.slot, folder, name)
        kept = stage.old if _ino(stage.old, put.slot) else stage.new
        self._check(put.root, kept, put.slot, replaces, put.path, is_move=False)

    def _unswap(self, put: Put) -> None:
        stage = self._stages[put.root]
        aside = _ino(stage.old, put.slot) != 0
        was_put = _ino(stage.new, put.slot) != put.ino
        if not aside and not was_put:
            return  # before the path is looked up: what leads there may not be in place either
        folder, name = stage.at(put.path)
        there = _ino(folder, name)
        if was_put and not there:
            # what was put was moved away: the old one just goes back
            self._rename(stage.old if aside else stage.new, put.slot, folder, name)
            return
        if was_put:
            if put.replaces is not None and there == put.replaces.ino and not aside:
                return
            self._expect(stage, put, there)
            if not aside:
                _renamed(stage.new, put.slot, folder, name, RENAME_EXCHANGE)
                if put.replaces is not None:
                    _return_write(folder, name, put.replaces)
                return
            self._rename(folder, name, stage.new, put.slot)
        if aside:
            self._rename(stage.old, put.slot, folder, name)

    def _adjust(
        self, adjust: Adjust, attributes: Attributes, *, strict: bool, keeps_owner: bool = False
    ) -> None:
        stage = self._stages[adjust.root]
        try:
            folder, name = stage.at(adjust.path)
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            if strict and adjust.ino:
                raise _conflict(stage.place(adjust.path)) from None
            return
        if adjust.ino and found.st_ino != adjust.ino:
            if strict:
                raise _conflict(stage.place(adjust.path))
            return
        owner = (found.st_uid, found.st_gid) if keeps_owner else (attributes.uid, attributes.gid)
        if keeps_owner and (stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (
            attributes.mode,
            attributes.mtime_ns,
        ):
            return  # nothing to do, and perhaps no right to do it
        times_ns = (found.st_atime_ns, attributes.mtime_ns)
        if stat.S_ISLNK(found.st_mode):
            set_symlink_attributes(folder, name, owner=owner, times_ns=times_ns)
            return
        fd = open_beneath(folder, name, os.O_PATH)
        try:
            xattrs = attributes.xattrs
            set_attribute_values(
                f"/proc/self/fd/{fd}",
                mode=attributes.mode,
                owner=owner,
                xattrs=None
                if xattrs is None
                else {key: bytes.fromhex(value) for key, value in xattrs.items()},
                times_ns=times_ns,
            )
        finally:
            os.close(fd)

    def _check(
        self, number: int, dir_fd: int, slot: str, identity: Identity, path: str, *, is_move: bool
    ) -> None:
        """Check that what was taken is the very file that the plan saw: no edit slipped in between."""
        found = os.stat(slot, dir_fd=dir_fd, follow_symlinks=False)
        # the owner's write bit of a folder may be lent for a moment, see `_rename_lending`
        free = stat.S_IWUSR if stat.S_ISDIR(found.st_mode) else 0
        same = (found.st_ino, found.st_mode | free, found.st_uid, found.st_gid) == (
            identity.ino,
            identity.mode | free,
            identity.uid,
            identity.gid,
        )
        if same and not stat.S_ISDIR(found.st_mode):
            same = (found.st_size, found.st_mtime_ns) == (identity.size_bytes, identity.mtime_ns)
        elif same and not is_move and identity.digest:
            digest = tree_digest(dir_fd, slot, found, path=path, leaving=self._leaving[number])[1]
            same = digest == identity.digest
        if not same:
            raise _conflict(self._stages[number].place(path))

    @staticmethod
    def _expect(stage: _OpenStage, put: Put, found: int) -> None:
        if found != put.ino:
            raise StuckError(
                f"`{stage.place(put.path)}` was changed by another process while it was merged",
                hint="its old content is kept in the run's folder: move the new file away, then run recover",
            )

    @staticmethod
    def _rename(source_fd: int, source: str, target_fd: int, target: str) -> None:
        """Rename without replacing, also where the file system has no flag for it."""
        try:
            _renamed(source_fd, source, target_fd, target, RENAME_NOREPLACE)
        except OSError as error:
            if error.errno not in _NO_FLAG:
                raise
            if _ino(target_fd, target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
            os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)


def _renamed(source_fd: int, source: str, target_fd: int, target: str, flags: int) -> None:
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


def _return_write(dir_fd: int, name: str, identity: Identity) -> None:
    """Give a folder its own mode where a crash came between the lending of the write bit and its return."""
    if os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode ^ identity.mode == stat.S_IWUSR:
        os.chmod(name, stat.S_IMODE(identity.mode), dir_fd=dir_fd)


def _lend_write(dir_fd: int) -> None:
    # the adjustments at the end (or the restores) give the folder its own mode again
    status = os.fstat(dir_fd)
    if status.st_uid == os.geteuid() and status.st_mode & 0o300 != 0o300:
        os.chmod(f"/proc/self/fd/{dir_fd}", stat.S_IMODE(status.st_mode) | 0o300)


def _ino(dir_fd: int, name: str) -> int:
    """Return the inode of an entry, 0 where there is none."""
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return 0


def _conflict(place: Place) -> ConflictError:
    return ConflictError(
        f"the host changed `{place}` while it was merged",
        places=(place,),
        hint="everything was put back; list the changes again",
    )
