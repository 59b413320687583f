"""Reads of declared places get their content: trusted values and sensitive tokens come from nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

from interlock.model.events import ActivityObserved, FileRead
from interlock.model.places import Place, path_bytes
from interlock.runtime.folders import StagedFolder

READ_LIMIT_BYTES = 1 << 20
"""A longer file vouches for nothing: its digest and text stay empty, its place's level still counts."""


def with_content(
    observed: ActivityObserved, folders: tuple[StagedFolder, ...], declares: Callable[[Place], bool]
) -> ActivityObserved:
    """Return the batch with digest and text for reads of declared places.

    The host's file is read, never the staged one: what the agent wrote itself vouches for nothing.
    """
    lowers = {item.name: item.lower for item in folders}
    reads = tuple(
        _read(item, lowers) if not item.staged and declares(item.place) else item for item in observed.reads
    )
    return replace(observed, reads=reads)


def _read(item: FileRead, lowers: dict[str, str]) -> FileRead:
    path = os.path.join(os.fsencode(lowers[item.place.root]), path_bytes(item.place.path))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
