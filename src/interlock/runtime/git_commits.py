"""What a branch brings that may run: the paths which its new commits change, though no file of a worktree shows them.

A commit is plain data until somebody checks it out, clones or pushes it. So a branch that gets one counts as the paths
in it do. Branches are what a checkout, a build server and a colleague take: `refs/heads`, a HEAD that names a commit
itself, and `refs/replace`, which puts one object in the place of another. What was fetched (`refs/remotes`), tags and
the stash stand in no branch yet.

Source: gitrepository-layout(5); git-replace(1).
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from interlock.model.effects import Brought, ChangeKind, FileChange, FileType
from interlock.model.places import path_bytes, path_text
from interlock.policy.executable import change_of, facets_of, judges_content, may_run
from interlock.runtime.git_reading import Entry, GitObjects, UnreadableError
from interlock.staging.roots import StagedRoot
from interlock.staging.syscalls import open_beneath

MOST_BROUGHT = 64
DEADLINE_S = 10.0
_HELD_DEADLINE_S = 2.0
_MOST_CANDIDATES = 2000
_MOST_TEXT_BYTES = 1 << 16
_MOST_TEXTS_BYTES = 1 << 20
_MOST_REF_BYTES = 4096
_MOST_PACKED_BYTES = 32 << 20
_MOST_REFS = 20_000
_SUBMODULE = 0o160000

_ID = re.compile(rb"([0-9a-f]{64}|[0-9a-f]{40})(?=\s|\Z)", re.IGNORECASE)
_ONLY_ID = re.compile(rb"\s*(?:[0-9a-f]{64}|[0-9a-f]{40})\s*", re.IGNORECASE)
_TO_BRANCH = re.compile(rb"ref:\s*refs/heads/(?!.*\.\.)[^\s]+\s*")
_PACKED = re.compile(rb"([0-9a-f]{64}|[0-9a-f]{40}) (\S.*)", re.IGNORECASE)
_BRANCHES = (b"refs/heads/", b"refs/replace/")
_LOCAL = ("heads", "replace")


class Branches:
    """What the branches of some staged roots get. One listing uses one of these."""

    def __init__(self) -> None:
        self._ends = 0.0
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def marked(self, root: StagedRoot, change: FileChange) -> FileChange:
        """Return the change with what it brings, where it is one of a branch; total."""
        if change.kind in (ChangeKind.DELETE, ChangeKind.ATTRIBUTES) or change.after is None:
            return change
        found: dict[Brought, None] = {}
        unknown = False
        try:
            for repository in _repositories(root, change):
                tips = repository.tips(change)
                found.update(dict.fromkeys(self._brought(repository, tips, change)))
        except (UnreadableError, OSError, ValueError):
            # fail closed: whatever cannot be told counts as the worst
            unknown = True
        brings = tuple(found)
        return replace(
            change, brings=brings[:MOST_BROUGHT], brings_unknown=unknown or len(brings) > MOST_BROUGHT
        )

    def _brought(
        self, repository: _Repository, tips: frozenset[str], change: FileChange
    ) -> Iterator[Brought]:
        if not tips:
            return
        key = (repository.root.name, repository.common)
        if key not in self._known:
            self._known[key] = repository.known()
        known = self._known[key]
        if tips <= known:
            return
        if not self._ends:
            self._ends = time.monotonic() + DEADLINE_S
        sha256 = len(next(iter(tips))) == 64
        if any((len(one) == 64) != sha256 for one in (*tips, *known)):
            raise UnreadableError("its ids are of two kinds")
        folders = repository.objects()
        left = max(0.1, self._ends - time.monotonic())
        repository.check(sha256=sha256, deadline_s=left)
        with GitObjects(folders, sha256=sha256, shallow=repository.shallow(), deadline_s=left) as objects:
            entries = [one for one in objects.entries(tips - known, known) if _counts(repository, one)]
            if not entries:
                return
            held: set[tuple[bytes, str]] = set()
            # a commit that was amended or rebased holds what the host's own branch held before
            with suppress(UnreadableError):
                objects.deadline_s = min(left, _HELD_DEADLINE_S)
                held = {(one.path, one.ids[1]) for one in objects.entries(known, tips)} if known else set()
            objects.deadline_s = left
            entries = [one for one in dict.fromkeys(entries) if (one.path, one.ids[1]) not in held]
            if len(entries) > _MOST_CANDIDATES:
                raise UnreadableError("the commits change too much")
            for one in _with_content(repository, objects, entries):
                if facets_of(change_of(change, one)):
                    yield one


class _Repository:
    """Git's own folder in a root. Takes: `folder` and `common`, relative, of a linked worktree two."""

    def __init__(self, root: StagedRoot, folder: str, common: str, what: str) -> None:
        self.root = root
        self.folder = folder
        self.common = common
        self._what = what
        above, _, last = folder.rpartition("/")
        self.worktree = above if last == ".git" else ""
        self.is_there = bool(self.objects())

    def tips(self, change: FileChange) -> frozenset[str]:
        """Return the commits that a staged file names. Raises: UnreadableError, where it names them in another way."""
        assert change.after is not None
        if change.after.type is FileType.DIRECTORY:
            if change.kind is ChangeKind.RENAME and self.is_there:
                raise UnreadableError("a folder of references was moved")
            return frozenset()
        if self._what == "reftable":
            if self.is_there or self.folder.rpartition("/")[2] == ".git":
                raise UnreadableError("its references are kept in tables")
            return frozenset()
        if change.after.type is not FileType.FILE:
            if self.is_there:
                raise UnreadableError("a reference is no plain file")
            return frozenset()
        packed = self._what == "packed-refs"
        path = path_bytes(change.place.path)
        content = _read(self.root.upper, path, _MOST_PACKED_BYTES if packed else _MOST_REF_BYTES)
        if content is None:
            raise UnreadableError("a reference cannot be read")
        if packed:
            tips = _packed(content)
        elif not self.is_there and not _ONLY_ID.fullmatch(content):
            return frozenset()
        elif _TO_BRANCH.fullmatch(content):
            # that branch is judged where it changes
            return frozenset()
        elif (found := _ID.match(content)) is not None:
            tips = frozenset((found[1].decode("ascii").lower(),))
        else:
            raise UnreadableError("a reference names no commit")
        if tips and not self.is_there:
            raise UnreadableError("its objects are missing")
        return tips

    def known(self) -> frozenset[str]:
        """Return the commits that the host's own branches name."""
        found: set[str] = set()
        common = path_bytes(self.common)
        for name in _heads(self.root.lower, common):
            content = _read(self.root.lower, name, _MOST_REF_BYTES)
            if content is not None and (match := _ID.match(content)) is not None:
                found.add(match[1].decode("ascii").lower())
        content = _read(self.root.lower, os.path.join(common, b"packed-refs"), _MOST_PACKED_BYTES)
        with suppress(UnreadableError):
            found |= _packed(content or b"")
        return frozenset(found)

    def objects(self) -> list[str]:
        """Return the folders of objects, the staged one first. None of them is reached over a link."""
        below = f"{self.common}/objects" if self.common else "objects"
        found = []
        for side in (self.root.upper, self.root.lower):
            with suppress(OSError):
                name = os.fsdecode(path_bytes(below))
                os.close(_open(side, name, os.O_PATH | os.O_DIRECTORY))
                found.append(os.path.join(side, name))
        return found

    def check(self, *, sha256: bool, deadline_s: float) -> None:
        """Check that what is staged of the objects hides nothing. Raises: UnreadableError, OSError."""
        from interlock.runtime.git_stores import check_staged

        below = os.fsdecode(path_bytes(self.common))
        staged, host = (os.path.join(side, below, "objects") for side in (self.root.upper, self.root.lower))
        found = self.objects()
        if staged in found:
            check_staged(staged, host if host in found else None, sha256=sha256, deadline_s=deadline_s)

    def shallow(self) -> list[str]:
        """Return the commits whose parents the host never fetched; of a repository that is new, nobody has."""
        common = path_bytes(self.common)
        is_hosts = os.path.isdir(os.path.join(os.fsencode(self.root.lower), common, b"objects"))
        side = self.root.lower if is_hosts else self.root.upper
        content = _read(side, os.path.join(common, b"shallow"), _MOST_PACKED_BYTES) or b""
        return [one.decode("ascii").lower() for one in content.split() if _ONLY_ID.fullmatch(one)]


def _repositories(root: StagedRoot, change: FileChange) -> Iterator[_Repository]:
    """Return every repository that the place may be a reference of; a made-up one adds doubt and takes none away."""
    parts = change.place.path.split("/")
    if parts[-1] in ("HEAD", "packed-refs"):
        folder = parts[:-1]
        is_linked = parts[-1] == "HEAD" and len(folder) >= 2 and folder[-2] == "worktrees"
        yield _Repository(root, "/".join(folder), "/".join(folder[:-2] if is_linked else folder), parts[-1])
    for at, part in enumerate(parts):
        folder_text = "/".join(parts[:at])
        is_branch = part == "refs" and (at + 1 == len(parts) or parts[at + 1] in _LOCAL)
        if part == "reftable" or is_branch:
            yield _Repository(root, folder_text, folder_text, part)


def _packed(content: bytes) -> frozenset[str]:
    """Return the commits that a file `packed-refs` gives to branches."""
    found = set()
    for line in content.split(b"\n"):
        if not line.strip() or line.startswith((b"#", b"^")):
            continue
        match = _PACKED.fullmatch(line)
        if match is None:
            raise UnreadableError("the packed references cannot be read")
        if match[2].startswith(_BRANCHES):
            found.add(match[1].decode("ascii").lower())
    return frozenset(found)


def _heads(lower: str, common: bytes) -> Iterator[bytes]:
    """Return the host's files that name a commit of a branch, relative to the root."""
    top = os.path.join(os.fsencode(lower), common)
    yield os.path.join(common, b"HEAD")
    with suppress(OSError):
        for name in os.listdir(os.path.join(top, b"worktrees")):
            yield os.path.join(common, b"worktrees", name, b"HEAD")
    seen = 0
    for here, _folders, files in os.walk(os.path.join(top, b"refs", b"heads")):
        for name in files:
            seen += 1
            if seen > _MOST_REFS:
                return
            yield os.path.relpath(os.path.join(here, name), os.fsencode(lower))


def _counts(repository: _Repository, entry: Entry) -> bool:
    mode = entry.modes[1]
    # of a submodule only `.gitmodules` says where it comes from, and that has an entry of its own
    return stat.S_IFMT(mode) != _SUBMODULE and may_run(_path(repository, entry), _type(mode))


def _path(repository: _Repository, entry: Entry) -> str:
    below = path_text(entry.path)
    return f"{repository.worktree}/{below}" if repository.worktree else below


def _type(mode: int) -> FileType:
    return FileType.SYMLINK if stat.S_ISLNK(mode) else FileType.FILE


def _with_content(
    repository: _Repository, objects: GitObjects, entries: Iterable[Entry]
) -> Iterator[Brought]:
    """Return the entries as the model has them, with the texts on which their facets depend."""
    made = [(one, _kind(one), _path(repository, one), _type(one.modes[1])) for one in entries]
    wanted: dict[str, None] = {}
    for entry, kind, path, type_ in made:
        if kind is not ChangeKind.DELETE and (type_ is FileType.SYMLINK or judges_content(path)):
            wanted[entry.ids[1]] = None
            if kind is ChangeKind.MODIFY:
                wanted[entry.ids[0]] = None
    blobs = objects.blobs([one for one in wanted if one])
    left = _MOST_TEXTS_BYTES
    for entry, kind, path, type_ in made:
        before, after = (_text(blobs.get(one)) for one in entry.ids)
        left -= sum(len(text) for text in (before, after) if text)
        if left < 0:
            before = after = None
        if type_ is FileType.SYMLINK and kind is not ChangeKind.DELETE:
            target = path_text(blobs.get(entry.ids[1], b""))
            yield Brought(kind=kind, path=path, type=type_, link_target=target)
        elif judges_content(path):
            before = before if kind is ChangeKind.MODIFY else None
            yield Brought(kind=kind, path=path, before_text=before, after_text=after)
        else:
            yield Brought(kind=kind, path=path)


def _kind(entry: Entry) -> ChangeKind:
    old, new = entry.modes
    if not new:
        return ChangeKind.DELETE
    if not old:
        return ChangeKind.CREATE
    if stat.S_IFMT(old) != stat.S_IFMT(new):
        return ChangeKind.REPLACE
    return ChangeKind.ATTRIBUTES if entry.ids[0] == entry.ids[1] else ChangeKind.MODIFY


def _text(content: bytes | None) -> str | None:
    if content is None or len(content) > _MOST_TEXT_BYTES:
        return None
    with suppress(UnicodeDecodeError):
        return content.decode("utf-8")
    return None


def _read(side: str, path: bytes, most_bytes: int) -> bytes | None:
    """Return a plain file's content, None where there is none, or more; no link is followed."""
    try:
        descriptor = _open(side, os.fsdecode(path), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = file.read(most_bytes + 1)
    return content if len(content) <= most_bytes else None


def _open(side: str, path: str, flags: int) -> int:
    top = os.open(side, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return open_beneath(top, path, flags)
    finally:
        os.close(top)
