"""Reads of declared places get their content: trusted values and sensitive tokens come from nowhere else."""

from __future__ import annotations

import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256

from interlock.model.events import ActivityObserved, FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import Place, path_bytes, path_text
from interlock.runtime.folders import StagedFolder, state_folder

READ_LIMIT_BYTES = 1 << 20
"""A longer file vouches for nothing: its digest and text stay empty, its place's level still counts."""

LISTED_AT_MOST = 300_000
LISTING_SECONDS = 5.0
"""Bounds of a listing of sensitive places; beyond them it is not whole, and says so."""


def sensitive_places(
    folders: tuple[StagedFolder, ...],
    level_of: Callable[[Place], Confidentiality],
    exposed: tuple[str, ...] = (),
) -> tuple[FileRead, ...] | None:
    """Return a read, with its content, for every sensitive file of the host below the staged folders.

    For runs without file events: any of them may have been read, and what they hold must be known before something
    leaves. Of HOME only what its globs name counts, without what is hidden and not in `exposed`.
    Returns: None, if there are too many files to look at in time.
    """
    deadline = time.monotonic() + LISTING_SECONDS
    seen = 0
    found: list[FileRead] = []
    lowers = {item.name: item.lower for item in folders}
    for folder in folders:
        for path in _files_of(folder, folders, exposed):
            seen += 1
            if seen > LISTED_AT_MOST or (seen % 1000 == 0 and time.monotonic() > deadline):
                return None
            place = Place(root=folder.name, path=path_text(path))
            if level_of(place) > Confidentiality.PUBLIC:
                found.append(_read(FileRead(place=place, opened=0, closed=0, staged=False), lowers))
    return tuple(found)


def _files_of(
    folder: StagedFolder, folders: tuple[StagedFolder, ...], exposed: tuple[str, ...]
) -> Iterator[bytes]:
    if not folder.globs:
        return _files(os.fsencode(folder.lower))
    from interlock.runtime.home_files import named_files

    apart = [one.lower for one in folders if one is not folder]
    return named_files(folder.lower, folder.globs, exposed=exposed, apart=(*apart, state_folder()))


def _files(root: bytes) -> Iterator[bytes]:
    """Walk a folder without following links; what this user cannot list, the command cannot read either."""
    waiting = [b""]
    while waiting:
        below = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(root, below)))
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(below, entry.name)
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path
            except OSError:
                continue


def with_content(
    observed: ActivityObserved,
    folders: tuple[StagedFolder, ...],
    declares: Callable[[Place], bool],
    with_origin: Callable[[FileRead, bytes], FileRead] | None = None,
    detected: Callable[[FileRead, bytes], FileRead] | None = None,
) -> ActivityObserved:
    """Return the batch with digest and text for reads of declared places.

    The host's file is read, never the staged one: what the agent wrote itself vouches for nothing.
    Takes: `with_origin`, which adds where the bytes of a text come from, None where no policy asks for it;
    `detected`, which adds what a text, or the file at a path, was found to hold: then the texts of such files are given
    too.
    """
    lowers = {item.name: item.lower for item in folders}
    reads: list[FileRead] = []
    for item in observed.reads:
        if item.staged:
            reads.append(item)
        elif declares(item.place):
            seen = _read(item, lowers)
            if with_origin is not None and seen.text is not None:
                seen = with_origin(seen, seen.text.encode())
            reads.append(seen if detected is None else detected(seen, _path_of(item, lowers)))
        else:
            found = item if detected is None else detected(_read(item, lowers), _path_of(item, lowers))
            reads.append(found if found.detected else item)
            reads += [_read(one, lowers) for one in _moved(item, lowers) if declares(one.place)]
    return replace(observed, reads=tuple(reads))


def _moved(item: FileRead, lowers: dict[str, str]) -> list[FileRead]:
    """Return reads of all files below a folder: the kernel's events name a folder where it was renamed alone.

    What is declared there is moved unread, and its new places are not declared: it counts as read at its old one.
    """
    path = _path_of(item, lowers)
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return []
    except OSError:
        return []
    above = item.place.path
    return [
        replace(item, place=Place(root=item.place.root, path=f"{above}/{path_text(below)}"))
        for below in itertools.islice(_files(path), LISTED_AT_MOST)
    ]


def _path_of(item: FileRead, lowers: dict[str, str]) -> bytes:
    return os.path.join(os.fsencode(lowers[item.place.root]), path_bytes(item.place.path))


def _read(item: FileRead, lowers: dict[str, str]) -> FileRead:
    try:
        descriptor = os.open(
            _path_of(item, lowers), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
    except OSError:
        return item
    with os.fdopen(descriptor, "rb") as file:
        try:
            content = file.read(READ_LIMIT_BYTES + 1)
        except OSError:
            return item
    if len(content) > READ_LIMIT_BYTES:
        return item
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return replace(item, digest=sha256(content).hexdigest())
    return replace(item, digest=sha256(content).hexdigest(), text=text)
