"""The files of HOME that globs name, found without a walk over HOME, and without what a command is never shown."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from interlock.boundary import hidden
from interlock.model.places import path_text
from interlock.policy.globs import matcher

_WILD = "*?["


def hidden_globs(globs: Sequence[str], *, exposed: Sequence[str]) -> list[str]:
    """Return what to tell the principal of the globs of `home` that name hidden places, where no change can be kept.

    Takes: `globs`, relative to HOME; `exposed`, as in `named_files`.
    """
    shown = [place.rstrip("/") for place in exposed]
    told: list[str] = []
    for glob in globs:
        parts = f"~/{glob}".rstrip("/").split("/")
        for entry in hidden.DEFAULT:
            folder = "/".join(parts[: entry.path.count("/") + 1])
            if not fnmatchcase(folder, entry.path) or any(_within(folder, one) for one in shown):
                continue
            told.append(
                f"`home` names `~/{glob}`, but `{folder}` is hidden ({entry.reason}), so no change there is kept: "
                f"`sandbox: {{expose: [{folder}]}}` shows it, `hide:` keeps parts of it hidden"
            )
    return told


def named_files(
    home: str, globs: Sequence[str], *, exposed: Sequence[str], apart: Sequence[str]
) -> Iterator[bytes]:
    """Return the paths, relative to HOME, of the plain files there that the globs name; no link is followed.

    Takes: `exposed`, places that are shown though they are hidden by default, absolute or below `~/`; `apart`, host
    folders that are no part of this one: other staged folders, the state folder.
    """
    out = [os.path.realpath(place) for place in apart]
    shown = [os.path.realpath(_absolute(place, home)) for place in exposed]
    for place in hidden.expand(tuple(entry.path for entry in hidden.DEFAULT), home):
        real = os.path.realpath(place)
        if not _within(home, real) and not any(_within(real, one) for one in shown):
            out.append(real)
    keeps = matcher(tuple(globs), wide=False).fullmatch
    seen: set[str] = set()
    for glob in globs:
        for path in _found(home, "", glob.rstrip("/").split("/"), deep=glob.endswith("/")):
            full = f"{home}/{path}"
            if path in seen or not keeps(path_text(os.fsencode(path))):
                continue
            seen.add(path)
            if any(_within(full, one) for one in out) and not any(_within(full, one) for one in shown):
                continue
            yield os.fsencode(path)


def _found(home: str, below: str, parts: list[str], *, deep: bool) -> Iterator[str]:
    if not parts or parts[0] == "**":
        yield from _all_files(home, below, deep=deep or bool(parts))
        return
    part, rest = parts[0], parts[1:]
    if not any(sign in part for sign in _WILD):
        yield from _found(home, _joined(below, part), rest, deep=deep)
        return
    fits = matcher((part,), wide=False).fullmatch
    with suppress(OSError), os.scandir(os.path.join(home, below)) as entries:
        names = sorted(entry.name for entry in entries if fits(path_text(os.fsencode(entry.name))))
        for name in names:
            yield from _found(home, _joined(below, name), rest, deep=deep)


def _all_files(home: str, below: str, *, deep: bool) -> Iterator[str]:
    full = os.path.join(home, below)
    if os.path.islink(full):
        return
    if os.path.isfile(full):
        yield below
    elif deep:
        with suppress(OSError), os.scandir(full) as entries:
            for name in sorted(entry.name for entry in entries):
                yield from _all_files(home, _joined(below, name), deep=True)


def _joined(below: str, name: str) -> str:
    return f"{below}/{name}" if below else name


def _absolute(place: str, home: str) -> str:
    return home + place[1:] if place.startswith("~/") else place


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
