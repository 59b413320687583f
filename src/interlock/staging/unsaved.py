"""Which changes would take away work that nothing else holds: no commit, no index of the host's repository.

A file that Git tracks and that is as its index has it can be had back; so can what the repository ignores, which tools
make again. What else was there before the run, and is deleted, replaced, emptied or put back to Git's version, is
gone with the merge.

Source: aws/aws-toolkit-vscode#7834 (a week of uncommitted work lost to `git checkout -- .`).
"""

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from interlock.model.effects import ChangeKind, FileChange, FileType
from interlock.model.events import Staging
from interlock.model.places import path_bytes
from interlock.staging.git_index import IndexEntry, read_index
from interlock.staging.roots import StagedRoot

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MOST_ENTRIES = 20_000
"""How much of a deleted folder is looked at; a larger one counts as unsaved."""
_FEWEST = 3
_GONE = (ChangeKind.DELETE, ChangeKind.REPLACE)


class Unsaved:
    """What of one root's host files no repository holds. Files are read when first asked about."""

    def __init__(self, root: StagedRoot) -> None:
        self._lower = os.fsencode(root.lower)
        self._upper = os.fsencode(root.upper)
        self._copied = root.mode is Staging.COPY
        self._repositories: dict[bytes, _Repository | None] = {}
        self._all_gone: bool | None = None

    def is_lost_by(self, change: FileChange) -> bool:
        """Say whether the change takes away what was there before the run and is held nowhere else.

        Holds: where the root is no part of a repository nothing is known of a file; then only that everything goes
        (`rm -rf *`) is a loss.
        """
        before, after = change.before, change.after
        if before is None or change.host_edit is not None:
            return False
        path = path_bytes(change.place.path)
        if b".git" in path.split(b"/"):
            return False
        emptied = after is not None and after.size_bytes == 0 < before.size_bytes
        if change.kind not in _GONE and not (
            change.kind is ChangeKind.MODIFY and before.type is FileType.FILE
        ):
            return False
        repository = self._repository(os.path.dirname(os.path.join(self._lower, path)))
        if repository is None:
            return change.kind is ChangeKind.DELETE and b"/" not in path and self._is_all_gone()
        host = os.path.join(self._lower, path)
        if change.kind in _GONE and before.type is FileType.DIRECTORY:
            return change.kind is ChangeKind.DELETE and repository.holds_less_than(host)
        if change.kind in _GONE or emptied:
            return before.size_bytes > 0 and not repository.holds(host)
        return repository.is_put_back(host, os.path.join(self._upper, path))

    def _is_all_gone(self) -> bool:
        """Say whether all that the host's folder shows at its top was removed, where that is more than two."""
        if self._all_gone is None:
            names = [name for name in os.listdir(self._lower) if not name.startswith(b".")]
            self._all_gone = len(names) >= _FEWEST and all(map(self._is_gone, names))
        return self._all_gone

    def _is_gone(self, name: bytes) -> bool:
        try:
            status = os.lstat(os.path.join(self._upper, name))
        except FileNotFoundError:
            return self._copied
        # a whiteout; source: the kernel's overlayfs documentation, "whiteouts and opaque directories"
        return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0

    def _repository(self, folder: bytes) -> "_Repository | None":
        if folder not in self._repositories:
            found: _Repository | None = None
            if os.path.lexists(os.path.join(folder, b".git")):
                found = _Repository(folder)
            elif folder not in (b"/", b""):
                found = self._repository(os.path.dirname(folder))
            self._repositories[folder] = found
        return self._repositories[folder]


class _Repository:
    def __init__(self, top: bytes) -> None:
        self._top = top
        self._folder = _git_folder(top)
        self._index: dict[bytes, IndexEntry] | None = None
        self._index_time = 0
        self._ignores: dict[bytes, GitIgnoreSpec | None] = {}

    def holds(self, path: bytes) -> bool:
        """Say whether a host file can be had back: tracked and unchanged, or ignored."""
        entry = self._entries().get(self._name(path))
        if entry is not None:
            return self._is_clean(path, entry)
        return self._is_ignored(path, folder=False)

    def holds_less_than(self, folder: bytes) -> bool:
        """Say whether something below a host folder cannot be had back."""
        if self._is_ignored(folder, folder=True):
            return False
        seen = 0
        for here, folders, files in os.walk(folder):
            if b".git" in folders or b".git" in files:
                return True  # a repository of its own goes with it
            folders[:] = [
                one for one in folders if not self._is_ignored(os.path.join(here, one), folder=True)
            ]
            for one in files:
                seen += 1
                path = os.path.join(here, one)
                if seen > _MOST_ENTRIES or (_size(path) > 0 and not self.holds(path)):
                    return True
        return False

    def is_put_back(self, host: bytes, staged: bytes) -> bool:
        """Say whether a tracked file that was changed on the host is staged as the index has it."""
        entry = self._entries().get(self._name(host))
        if entry is None or self._is_clean(host, entry):
            return False
        return _is_blob(staged, entry)

    def _is_clean(self, path: bytes, entry: IndexEntry) -> bool:
        try:
            status = os.lstat(path)
        except OSError:
            return True  # nothing there to lose
        seconds, rest = divmod(status.st_mtime_ns, 10**9)
        same = (seconds, rest, status.st_size & 0xFFFFFFFF) == (
            entry.mtime_s,
            entry.mtime_ns,
            entry.size_bytes,
        )
        # one written in the moment in which the index was made may have changed since (racy-git)
        if same and status.st_mtime_ns < self._index_time:
            return True
        if stat.S_ISLNK(status.st_mode):
            return True  # a link's few bytes are no work
        return _is_blob(path, entry)

    def _entries(self) -> dict[bytes, IndexEntry]:
        if self._index is None:
            self._index = {}
            with suppress(OSError), open(os.path.join(self._folder, b"index"), "rb") as file:
                self._index_time = os.fstat(file.fileno()).st_mtime_ns
                # one that cannot be read says of no file that it is held
                self._index = read_index(file.read()) or {}
        return self._index

    def _name(self, path: bytes) -> bytes:
        return os.path.relpath(path, self._top)

    def _is_ignored(self, path: bytes, *, folder: bool) -> bool:
        """Say whether the repository ignores it. Source: gitignore(5); a folder that is ignored takes all with it."""
        parts = os.fsdecode(self._name(path)).split("/")
        for depth in range(1, len(parts) + 1):
            is_folder = folder or depth < len(parts)
            for level in range(depth - 1, -1, -1):
                spec = self._spec(os.path.join(self._top, *(os.fsencode(part) for part in parts[:level])))
                if spec is None:
                    continue
                name = "/".join(parts[level:depth]) + ("/" if is_folder else "")
                decided = spec.check_file(name).include
                if decided is not None:
                    if decided:
                        return True
                    break
        return False

    def _spec(self, folder: bytes) -> "GitIgnoreSpec | None":
        if folder not in self._ignores:
            lines = _lines(os.path.join(folder, b".gitignore"))
            if folder == self._top:
                lines = [
                    *_lines(os.fsencode(os.path.expanduser("~/.config/git/ignore"))),
                    *_lines(os.path.join(self._folder, b"info", b"exclude")),
                    *lines,
                ]
            spec = None
            if lines:
                from pathspec import GitIgnoreSpec

                # a line that is no pattern ignores nothing
                with suppress(ValueError):
                    spec = GitIgnoreSpec.from_lines(lines)
            self._ignores[folder] = spec
        return self._ignores[folder]


def _git_folder(top: bytes) -> bytes:
    """Return where the index of a working tree lies. Source: gitrepository-layout(5), a `.git` that is a file."""
    path = os.path.join(top, b".git")
    with suppress(OSError), open(path, "rb") as file:
        line = file.read(4096).rstrip(b"\n")
        if line.startswith(b"gitdir: "):
            return os.path.join(top, line.removeprefix(b"gitdir: "))
    return path


def _lines(path: bytes) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(1 << 20).splitlines()
    except OSError:
        return []


def _size(path: bytes) -> int:
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _is_blob(path: bytes, entry: IndexEntry) -> bool:
    """Say whether a plain file is the blob; one that cannot be read is not."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            return stat.S_ISREG(status.st_mode) and entry.is_blob(file, status.st_size)
    except OSError:
        return False
