"""A commit while the agent's overlay is mounted: what must wait, and what the layer must say first.

A commit writes below the mounted overlay. What it writes there the view takes from the layer, so the view stays as it
is. A new folder must be marked as hiding what lies below it, which the kernel does not always do by itself: else what
the agent removes from it afterwards would come back from the host. Two kinds of changes wait for the command's end:

- a folder that was moved: the layer holds a mark with its old place, which the kernel also keeps in memory as long as
  anybody stands in the folder; after the commit the host has the folder at the new place alone;
- a host file with several names, where the overlay has an index: it counts a file's names as a difference to the
  host's, and finds the file by the host's inode.
"""

import os
import stat
from collections.abc import Collection, Sequence
from contextlib import ExitStack

from interlock.model.dependencies import PathMap, host_path, moved_folders
from interlock.model.effects import ChangeKind, FileChange, FileType
from interlock.model.events import Staging
from interlock.model.places import path_bytes
from interlock.staging.dependents import with_dependents
from interlock.staging.indexed import alone_in_index
from interlock.staging.layers import opened
from interlock.staging.linked import Handle, handle_at
from interlock.staging.roots import TRUSTED_XATTR_PREFIX, StagedRoot, open_index
from interlock.staging.stamps import lent_mode, open_folder
from interlock.staging.syscalls import open_beneath


def waits_for_the_end(roots: Sequence[StagedRoot], changes: Sequence[FileChange]) -> frozenset[int]:
    """Return the positions of the changes that may be merged only once the overlay is unmounted.

    Takes: `changes`, of these roots, as listed.
    Returns: also every change that needs one of them.
    Raises: OSError, where the host cannot be looked at.
    """
    found = [index for index, change in enumerate(changes) if change.kind is ChangeKind.RENAME]
    for root in roots:
        if root.mode is not Staging.OVERLAY or root.xattr_prefix != TRUSTED_XATTR_PREFIX:
            continue
        moved = {_raw(old): _raw(new) for old, new in moved_folders(changes, root.name).items()}
        with ExitStack() as stack:
            lower = os.open(root.lower, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, lower)
            index_fd = open_index(root)
            if index_fd is not None:
                stack.callback(os.close, index_fd)
            alone = alone_in_index(root, index_fd)
            for index, change in enumerate(changes):
                if change.place.root == root.name and change.before is not None:
                    whole = change.kind in (ChangeKind.DELETE, ChangeKind.REPLACE)
                    if change.before.type is FileType.DIRECTORY and not whole:
                        continue
                    if change.kind is ChangeKind.RENAME:
                        continue
                    path = host_path(_raw(change.place.path), PathMap(moved))
                    if _has_links(lower, path, frozenset(moved)) or _is_alone(lower, path, alone):
                        found.append(index)
    return with_dependents(changes, found)


def shield(roots: Sequence[StagedRoot], changes: Sequence[FileChange]) -> None:
    """Mark the new folders among the changes as hiding what a commit is going to put below them.

    Takes: `roots`, over the living layers; `changes`, that are about to be merged, before any of them is.
    Raises: OSError.
    Holds: the view is as before: the host has nothing yet below a folder that is marked. The agent may go on.
    """
    for root in roots:
        if root.mode is not Staging.OVERLAY:
            continue
        new = {
            _raw(change.place.path)
            for change in changes
            if change.place.root == root.name
            and change.kind in (ChangeKind.CREATE, ChangeKind.REPLACE)
            and change.after is not None
            and change.after.type is FileType.DIRECTORY
        }
        topmost = [path for path in new if path.rpartition("/")[0] not in new]
        if topmost:
            _shield(root, sorted(topmost, key=os.fsencode))


def _shield(root: StagedRoot, paths: Sequence[str]) -> None:
    with opened(root) as opened_root:
        for path in paths:
            try:
                fd = open_beneath(opened_root.upper_fd, path, os.O_PATH | os.O_DIRECTORY)
            except (FileNotFoundError, NotADirectoryError):
                continue  # the agent took it away since
            try:
                at = f"/proc/self/fd/{fd}"
                marks = os.listxattr(at)
                # one that stands over a folder of the host shows that folder, and must go on to
                shows = f"{root.xattr_prefix}redirect" in marks or _is_folder(
                    opened_root.lower_fd, host_path(path, PathMap(opened_root.moved))
                )
                if not shows and f"{root.xattr_prefix}opaque" not in marks:
                    with lent_mode(at, 0o600):
                        os.setxattr(at, f"{root.xattr_prefix}opaque", b"y")
            finally:
                os.close(fd)


def _is_folder(lower: int, path: str) -> bool:
    try:
        os.close(open_beneath(lower, path, os.O_PATH | os.O_DIRECTORY))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_alone(lower: int, path: str, alone: Collection[Handle]) -> bool:
    """Say whether the overlay's index alone has the file that the host has at a path."""
    if not alone:
        return False
    folder, _, name = path.rpartition("/")
    try:
        parent = open_beneath(lower, folder, os.O_PATH | os.O_DIRECTORY)
        try:
            return handle_at(parent, name) in alone
        finally:
            os.close(parent)
    except FileNotFoundError:
        return False


def _has_links(lower: int, path: str, leaving: frozenset[str]) -> bool:
    """Say whether the host's file at a path, or one below it, has several names."""
    folder, _, name = path.rpartition("/")
    try:
        parent = open_beneath(lower, folder, os.O_PATH | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    try:
        return _links_at(parent, name, path, leaving)
    finally:
        os.close(parent)


def _links_at(parent: int, name: str, path: str, leaving: frozenset[str]) -> bool:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return status.st_nlink > 1
    fd = open_folder(parent, name, status)
    try:
        return any(
            _links_at(fd, entry, f"{path}/{entry}", leaving)
            for entry in os.listdir(fd)
            if f"{path}/{entry}" not in leaving
        )
    finally:
        os.close(fd)


def _raw(path: str) -> str:
    return os.fsdecode(path_bytes(path))
