"""Repositories whose own folder lies outside of the workspace: worktrees, submodules, `--separate-git-dir`.

A `.git` file names such a folder, and anything that wrote into the workspace may have written it. It is followed only
where the folder that it names is Git's, belongs to the same user, and names this very `.git` file back.

Source: gitrepository-layout(5): `gitdir`, `commondir`, `worktrees/<id>/gitdir`; git-config(1): `core.worktree`.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from interlock.model.records import dataclass

_POINTER = b"gitdir: "
_LIMIT_BYTES = 65536
_MOST_FOLDERS = 2000
"""How many folders below the workspace are looked into for worktrees and submodules."""
_SKIPPED = frozenset((".git", ".hg", ".venv", "venv", "node_modules", "target", "__pycache__"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """Git's own folder, as a `.git` file names it.

    Takes: `folder`, what of it is to be staged (of a worktree the common folder), a real path; `proven`, whether it
    names the `.git` file back.
    """

    pointer: str
    folder: str
    proven: bool

    @property
    def name(self) -> str:
        """Return the repository's name: `repo` of `/home/me/repo/.git` and of `/srv/repo.git`."""
        return repository_name(self.folder)


def repository_name(folder: str) -> str:
    """Return the name of the repository whose own folder this is."""
    above, last = os.path.split(folder)
    if last in (".git", ".bare"):
        last = os.path.basename(above)
    return last.removesuffix(".git") or "repository"


def top_of(folder: str, home: str) -> str | None:
    """Return the top folder of the repository that a folder lies in, None where there is none to use.

    Takes: `home`, which is no workspace though it is a repository, nor is what holds it. Both are real paths.
    Holds: the repository belongs to this user; to root a repository of whoever has the folder is one too.
    """
    here = folder
    owners = (os.geteuid(), os.stat(folder).st_uid) if os.geteuid() == 0 else (os.geteuid(),)
    while here != "/" and not _within(home, here):
        pointer = os.path.join(here, ".git")
        with suppress(OSError):
            status = os.lstat(pointer)
            if stat.S_ISDIR(status.st_mode) and is_git_folder(pointer) and status.st_uid in owners:
                return here
            if stat.S_ISREG(status.st_mode):
                found = _followed(pointer)
                return here if found is not None and found.proven and status.st_uid in owners else None
        here = os.path.dirname(here)
    return None


def is_git_folder(path: str) -> bool:
    """Say whether a folder looks like Git's own."""
    with suppress(OSError):
        return (
            stat.S_ISREG(os.lstat(f"{path}/HEAD").st_mode)
            and stat.S_ISDIR(os.lstat(f"{path}/objects").st_mode)
            and stat.S_ISDIR(os.lstat(f"{path}/refs").st_mode)
        )
    return False


def repositories_outside(workspace: str) -> tuple[Repository, ...]:
    """Return the folders of Git outside of a workspace that its `.git` files name, at its top and two levels below.

    Holds: no link is followed on the way to a `.git` file.
    """
    found: dict[str, Repository] = {}
    for pointer in _pointers(workspace):
        with suppress(OSError):
            one = _followed(pointer)
            if one is None or _within(one.folder, workspace) or _within(workspace, one.folder):
                continue
            if one.folder not in found or one.proven:
                found[one.folder] = one
    return tuple(found.values())


def _pointers(workspace: str) -> Iterator[str]:
    looked_at = 0
    level = [workspace]
    for depth in range(3):
        below: list[str] = []
        for folder in level:
            looked_at += 1
            if looked_at > _MOST_FOLDERS:
                return
            pointer = f"{folder}/.git"
            with suppress(OSError):
                if stat.S_ISREG(os.lstat(pointer).st_mode):
                    yield pointer
            if depth < 2:
                with suppress(OSError), os.scandir(folder) as entries:
                    below.extend(
                        entry.path
                        for entry in entries
                        if entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False)
                    )
        level = sorted(below)


def _followed(pointer: str) -> Repository | None:
    """Read where a `.git` file leads; None where that is no folder of Git's."""
    text = _line(pointer)
    if not text.startswith(_POINTER):
        return None
    folder = _real(os.path.dirname(pointer), text.removeprefix(_POINTER))
    if not os.path.isdir(folder):
        return None
    above = os.path.dirname(folder)
    if os.path.basename(above) == "worktrees":
        common = os.path.dirname(above)
        proven = (
            _real(folder, _line(f"{folder}/commondir")) == common
            and _real(folder, _line(f"{folder}/gitdir")) == pointer
        )
    else:
        common = folder
        worktree = _worktree(folder)
        proven = worktree is not None and _real(folder, worktree) == os.path.dirname(pointer)
    proven = (
        proven
        and is_git_folder(common)
        and os.lstat(common).st_uid == os.lstat(folder).st_uid == os.lstat(pointer).st_uid
        and _is_ours(os.lstat(common))
    )
    return Repository(pointer=pointer, folder=common, proven=proven)


def _is_ours(status: os.stat_result) -> bool:
    return os.geteuid() in (0, status.st_uid)


def _line(path: str) -> bytes:
    return _content(path).rstrip(b"\r\n")


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        content = file.read(_LIMIT_BYTES + 1)
    return content if len(content) <= _LIMIT_BYTES and b"\0" not in content else b""


def _real(base: str, text: bytes) -> str:
    return os.path.realpath(os.path.join(base, os.fsdecode(text))) if text else ""


def _worktree(folder: str) -> bytes | None:
    """Return `core.worktree` of a repository; a value that Git would have to unquote is none."""
    section = b""
    value = None
    for line in _content(f"{folder}/config").splitlines():
        if found := re.match(rb"\s*\[\s*([^\]\s]*)\s*\]", line):
            section = found[1].lower()
        elif section == b"core" and (found := re.match(rb"\s*worktree\s*=\s*([^\"\\;#]+?)\s*$", line, re.I)):
            value = found[1]
    return value


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
