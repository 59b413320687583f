"""The visible steps of a merge, each idempotent, each with its reverse.

How far a merge came is read from the stage folder: a slot that still is in `new` was not put; a slot
in `old` or `moved` was taken. All takes of all roots come before all puts, all puts before all
adjustments, and the two borders are marked, so that an empty `moved` slot means one thing only.
"""

import os
import stat
from collections.abc import Callable

from interlock.model.errors import StuckError
from interlock.model.places import Place
from interlock.staging.copying import set_attribute_values, set_symlink_attributes
from interlock.staging.errors import ConflictError
from interlock.staging.open_stage import ADJUSTED, PLACED, OpenStage
from interlock.staging.renaming import NO_FLAG, ino_at, rename_free, rename_with_flags, return_write
from interlock.staging.stamps import tree_digest
from interlock.staging.syscalls import RENAME_EXCHANGE, open_beneath, syncfs
from interlock.staging.wal import Adjust, Attributes, Identity, Put, Take, Wal


class Steps:
    """The steps of one log over its open roots; to be closed."""

    def __init__(self, wal: Wal) -> None:
        self._wal = wal
        self._stages: list[OpenStage] = []
        self._leaving: list[frozenset[str]] = []
        try:
            for number, root in enumerate(wal.roots):
                opens = frozenset(adjust.path for adjust in wal.adjusts if adjust.root == number)
                self._stages.append(OpenStage(root, opens))
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
            if not self._stages[take.root].is_marked(PLACED):
                self._take(take)
        self._border(lambda stage: stage.mark(PLACED))
        for put in self._wal.puts:
            self._put(put)
        self._border(lambda stage: stage.mark(ADJUSTED))
        for adjust in self._wal.adjusts:
            self._adjust(adjust, adjust.after, strict=True)
        self._sync()

    def retreat(self) -> None:
        """Take every step back that was taken, and make that durable.

        Raises: OSError, or StuckError where the host changed what the merge had put.
        """
        if all(stage.is_marked(ADJUSTED) for stage in self._stages):
            for adjust in self._wal.adjusts:
                if adjust.before is not None:
                    self._adjust(adjust, adjust.before, strict=False)
        self._border(lambda stage: stage.unmark(ADJUSTED))
        for put in reversed(self._wal.puts):
            if self._stages[put.root].is_marked(PLACED):
                self._unput(put)
        self._border(lambda stage: stage.unmark(PLACED))
        for take in reversed(self._wal.takes):
            self._untake(take)
        self._border(lambda stage: None)
        for adjust in self._wal.restores:
            self._adjust(adjust, adjust.after, strict=False, keeps_owner=True)
        self._sync()

    def _border(self, cross: Callable[[OpenStage], None]) -> None:
        for stage in self._stages:
            stage.forget_parent()
            cross(stage)

    def _sync(self) -> None:
        devices: set[int] = set()
        for stage in self._stages:
            if stage.device not in devices:
                devices.add(stage.device)
                syncfs(stage.stage)

    def _take(self, take: Take) -> None:
        stage = self._stages[take.root]
        target = stage.moved if take.is_move else stage.old
        if not ino_at(target, take.slot):
            folder, name = stage.at(take.path)
            try:
                rename_free(folder, name, target, take.slot)
            except FileNotFoundError:
                raise _conflict(stage.place(take.path)) from None
        self._check(take.root, target, take.slot, take.identity, take.path, is_move=take.is_move)

    def _untake(self, take: Take) -> None:
        stage = self._stages[take.root]
        source = stage.moved if take.is_move else stage.old
        if ino_at(source, take.slot):
            folder, name = stage.at(take.path)
            rename_free(source, take.slot, folder, name)
            return_write(folder, name, take.identity)

    def _put(self, put: Put) -> None:
        stage = self._stages[put.root]
        if put.replaces is not None:
            self._swap(put, put.replaces)
            return
        source = stage.moved if put.is_move else stage.new
        if ino_at(source, put.slot) == put.ino:
            folder, name = stage.at(put.path)
            try:
                rename_free(source, put.slot, folder, name)
            except FileExistsError:
                raise _conflict(stage.place(put.path)) from None

    def _unput(self, put: Put) -> None:
        stage = self._stages[put.root]
        if put.replaces is not None:
            self._unswap(put)
            return
        source = stage.moved if put.is_move else stage.new
        if not ino_at(source, put.slot):
            try:
                folder, name = stage.at(put.path)
                found = ino_at(folder, name)
            except (FileNotFoundError, NotADirectoryError):
                found = 0
            if not found and not put.is_move:
                return  # what was put is gone already
            self._expect(stage, put, found)
            rename_free(folder, name, source, put.slot)

    def _swap(self, put: Put, replaces: Identity) -> None:
        stage = self._stages[put.root]
        if ino_at(stage.new, put.slot) == put.ino:
            folder, name = stage.at(put.path)
            if not ino_at(stage.old, put.slot):
                try:
                    rename_with_flags(stage.new, put.slot, folder, name, RENAME_EXCHANGE)
                except FileNotFoundError:
                    raise _conflict(stage.place(put.path)) from None
                except OSError as error:
                    if error.errno not in NO_FLAG:
                        raise
                    # a file system that cannot exchange: two renames, the old file kept beside
                    rename_free(folder, name, stage.old, put.slot)
            if ino_at(stage.old, put.slot):
                self._check(put.root, stage.old, put.slot, replaces, put.path, is_move=False)
                rename_free(stage.new, put.slot, folder, name)
        kept = stage.old if ino_at(stage.old, put.slot) else stage.new
        self._check(put.root, kept, put.slot, replaces, put.path, is_move=False)

    def _unswap(self, put: Put) -> None:
        stage = self._stages[put.root]
        aside = ino_at(stage.old, put.slot) != 0
        was_put = ino_at(stage.new, put.slot) != put.ino
        if not aside and not was_put:
            return  # before the path is looked up: what leads there may not be in place either
        folder, name = stage.at(put.path)
        there = ino_at(folder, name)
        if was_put and not there:
            # what was put was moved away: the old one just goes back
            rename_free(stage.old if aside else stage.new, put.slot, folder, name)
            return
        if was_put:
            if put.replaces is not None and there == put.replaces.ino and not aside:
                return
            self._expect(stage, put, there)
            if not aside:
                rename_with_flags(stage.new, put.slot, folder, name, RENAME_EXCHANGE)
                if put.replaces is not None:
                    return_write(folder, name, put.replaces)
                return
            rename_free(folder, name, stage.new, put.slot)
        if aside:
            rename_free(stage.old, put.slot, folder, name)

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
    def _expect(stage: OpenStage, put: Put, found: int) -> None:
        if found != put.ino:
            raise StuckError(
                f"`{stage.place(put.path)}` was changed by another process while it was merged",
                hint="its old content is kept in the run's folder: move the new file away, then run recover",
            )


def _conflict(place: Place) -> ConflictError:
    return ConflictError(
        f"the host changed `{place}` while it was merged",
        places=(place,),
        hint="everything was put back; list the changes again",
    )
