"""What a staged Git index stands or falls with: a refused file must not come back from it at the next commit.

An index that stays behind is always in order, since the host still has its blobs and its branch; one that goes ahead
of its branch, or names a file that was refused, offers that file to the user's next `git commit`.

Source: gitrepository-layout(5); gitformat-index(5).
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import replace

from interlock.model.effects import ChangeKind, FileChange
from interlock.model.places import path_bytes, path_text
from interlock.staging.git_index import read_index
from interlock.staging.roots import StagedRoot
from interlock.staging.syscalls import open_beneath

_MOST_BYTES = 8 << 20
_MOST_NAMES = 2000
_BRANCH = re.compile(rb"ref:\s*(refs/heads/(?!.*\.\.)[^\s\0]+)\s*")


def with_needs(root: StagedRoot, change: FileChange) -> FileChange:
    """Return the change of an index with the places that it stands or falls with.

    Takes: `change`, at a place whose last name is `index`; one that is no repository's comes back as it is.
    """
    folder, _, _ = change.place.path.rpartition("/")
    if change.kind not in (ChangeKind.CREATE, ChangeKind.MODIFY):
        return change
    head = _side(root, _below(folder, "HEAD"))
    if not any(head):
        return change
    above, _, name = folder.rpartition("/")
    common = above.rpartition("/")[0] if above.rpartition("/")[2] == "worktrees" else folder
    branch = _BRANCH.fullmatch(head[1] or b"")
    reference = _below(common, path_text(branch[1])) if branch is not None else _below(folder, "HEAD")
    needs = [_below(folder, "HEAD"), reference, _below(common, "reftable/tables.list")]
    old, new = _side(root, reference)
    if old == new and name == ".git":
        needs += [_below(above, one) for one in _names(root, change.place.path)]
    return replace(change, needs=tuple(dict.fromkeys(needs)))


def _names(root: StagedRoot, index: str) -> list[str]:
    """Return the files that the staged index has otherwise than the host's; none where that cannot be told."""
    before, after = (read_index(content) if content else {} for content in _side(root, index))
    if before is None or after is None:
        return []
    named = [
        name
        for name in before.keys() | after.keys()
        if (before.get(name) and before[name].object_id) != (after.get(name) and after[name].object_id)
    ]
    return sorted(path_text(name) for name in named) if len(named) <= _MOST_NAMES else []


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _side(root: StagedRoot, path: str) -> tuple[bytes | None, bytes | None]:
    """Return a file's content on the host, and as the command sees it (the host's where it changed nothing)."""
    lower = _read(root.lower, path)
    upper = _read(root.upper, path)
    return lower, lower if upper is None else upper


def _read(side: str, path: str) -> bytes | None:
    try:
        top = os.open(side, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            descriptor = open_beneath(top, os.fsdecode(path_bytes(path)), os.O_RDONLY | os.O_NONBLOCK)
        finally:
            os.close(top)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = file.read(_MOST_BYTES + 1)
    return content if len(content) <= _MOST_BYTES else None
