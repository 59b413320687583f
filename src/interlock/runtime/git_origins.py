"""Which commit tracks the bytes that were read, and who wrote them: for sources that the policy declares by git.

The host's repository is read without its configuration, hooks and attributes (`git_reading`): of it count its
references, as plain files, and its objects. Where anything cannot be told, no file of it vouches.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress

from interlock.model.events import FileRead
from interlock.model.places import path_bytes, path_text
from interlock.model.records import changed, dataclass
from interlock.policy.declaration import GitSource
from interlock.runtime.folders import StagedFolder
from interlock.runtime.git_reading import GitObjects, UnreadableError

DEADLINE_S = 5.0
AUTHORS_S = 10.0
"""How long a run asks for authors in all; later reads have none."""
_MOST_REF_BYTES = 4096
_MOST_PACKED_BYTES = 32 << 20
_ID = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")
_SYMBOLIC = re.compile(r"ref: (refs/[^\s]+)\n?")
_REF = re.compile(r"refs/(?!.*\.\.)[A-Za-z0-9][\w./+@=-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tree:
    """A commit's files: path -> blob id."""

    blobs: dict[bytes, str]


class GitOrigins:
    """Looks up what the policy's git sources want to know of reads. One run uses one of these.

    Takes: `sources`, of the policy.
    """

    def __init__(self, folders: tuple[StagedFolder, ...], sources: tuple[GitSource, ...]) -> None:
        self._lowers = {item.name: item.lower for item in folders}
        self._sources = sources
        self._trees: dict[tuple[str, str], _Tree | None] = {}
        self._authors: dict[tuple[str, str, bytes], str] = {}
        self._author_s = AUTHORS_S

    def with_origin(self, read: FileRead, content: bytes) -> FileRead:
        """Return a read with the references at which these very bytes are tracked, and their authors; total."""
        wanted = [source for source in self._sources if source.covers(read.place)]
        if not wanted or read.staged:
            return read
        lower = self._lowers.get(read.place.root, "")
        path = path_bytes(read.place.path)
        tracked: dict[str, str] = {}
        found = ""
        for ref in dict.fromkeys(source.ref for source in wanted):
            try:
                commit = _commit_of(lower, ref)
                tree = self._tree(lower, commit) if commit else None
            except (UnreadableError, OSError, ValueError):
                continue
            if tree is None or tree.blobs.get(path) != _blob_id(content, len(commit)):
                continue
            asked = any(source.author for source in wanted if source.ref == ref)
            tracked[ref] = self._author(lower, commit, path) if asked else ""
            found = found or commit
        if not tracked:
            return read
        author = tracked.get("", "")
        authors = tuple(tracked.values()) if any(who for ref, who in tracked.items() if ref) else ()
        return changed(read, tracked=tuple(tracked), commit=found, author=author, authors=authors)

    def _tree(self, lower: str, commit: str) -> _Tree | None:
        key = (lower, commit)
        if key not in self._trees:
            self._trees[key] = None
            with self._objects(lower, commit) as objects:
                self._trees[key] = _Tree(blobs=objects.files_of(commit))
        return self._trees[key]

    def _author(self, lower: str, commit: str, path: bytes) -> str:
        key = (lower, commit, path)
        if key not in self._authors:
            self._authors[key] = ""
            begun = time.monotonic()
            if self._author_s > 0:
                with suppress(UnreadableError, OSError, ValueError), self._objects(lower, commit) as objects:
                    self._authors[key] = objects.author_of(commit, path)
            self._author_s -= time.monotonic() - begun
        return self._authors[key]

    def _objects(self, lower: str, commit: str) -> GitObjects:
        folder = os.path.join(lower, ".git", "objects")
        return GitObjects([folder], sha256=len(commit) == 64, deadline_s=DEADLINE_S)


def _blob_id(content: bytes, length: int) -> str:
    made = hashlib.new("sha256" if length == 64 else "sha1", usedforsecurity=False)
    made.update(b"blob %d\0" % len(content))
    made.update(content)
    return made.hexdigest()


def _commit_of(lower: str, ref: str) -> str:
    """Return the commit that a reference of the host's names, `""` where there is none that the user made.

    Takes: `ref`, `""` for HEAD, else a branch's or a tag's name, or a whole one (`refs/…`).
    Raises: UnreadableError, OSError.
    """
    folder = os.path.join(lower, ".git")
    if not os.path.isdir(folder) or os.path.islink(folder):
        return ""
    if not ref:
        text = _small(os.path.join(folder, "HEAD"))
        if _agents(os.path.join(folder, "HEAD")):
            return ""
        symbolic = _SYMBOLIC.fullmatch(text)
        return _named(folder, symbolic[1]) if symbolic else _id(text)
    for name in (
        (ref,)
        if ref.startswith("refs/")
        else (f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/remotes/{ref}")
    ):
        if commit := _named(folder, name):
            return commit
    return ""


def _named(folder: str, name: str) -> str:
    if not _REF.fullmatch(name):
        return ""
    path = os.path.join(folder, name)
    try:
        text = _small(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        packed = os.path.join(folder, "packed-refs")
        if _agents(packed):
            return ""
        with suppress(FileNotFoundError), open(packed, encoding="utf-8") as file:
            for line in file.read(_MOST_PACKED_BYTES).splitlines():
                commit, _, packed_name = line.partition(" ")
                if packed_name == name:
                    return _id(commit)
        return ""
    # a branch that an agent moved is an agent's word
    return "" if _agents(path) else _id(text)


def _agents(path: str) -> bool:
    """Say whether an earlier run wrote a file of the repository, or whether nobody knows."""
    from interlock.runtime.label_store import fitting_rows

    lost, rows = fitting_rows(path_text(os.fsencode(path)))
    return bool(lost or rows)


def _small(path: str) -> str:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(file, _MOST_REF_BYTES).decode("utf-8")
    finally:
        os.close(file)


def _id(text: str) -> str:
    commit = text.strip()
    return commit if _ID.fullmatch(commit) else ""
