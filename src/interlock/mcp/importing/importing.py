"""An import from a file of settings, and the way back."""

from __future__ import annotations

import os

from interlock.mcp.importing import store
from interlock.mcp.importing.editing import Change, unwrap, wrap_all
from interlock.mcp.importing.entries import Wrapping
from interlock.model.errors import InputError
from interlock.model.records import dataclass

_HERE = (
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
)
_MARK = "\ufeff"
"""Some editors put it at the start of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a file.

    Takes: `wrapped`, servers that are behind Interlock now; `known`, those that were before; `restored`, those that are
    no more; `left`, those that stay as they are, and why; `changed`, whether the file is another now.
    """

    place: str
    changed: bool
    wrapped: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()


def found_here(folder: str) -> list[str]:
    """Return the files of settings that clients look for in a project's folder."""
    return [path for name in _HERE if os.path.isfile(path := os.path.join(folder, name))]


def wrap(place: str, wrapping: Wrapping, *, dry_run: bool = False) -> Report:
    """Put the servers of a file behind Interlock. A second time changes nothing.

    Raises: InputError, where the file cannot be read, names no servers, or cannot be written.
    """
    told, place = place, os.path.realpath(place)
    now = store.read(place)
    kept = store.find(place)
    before = now
    stay: tuple[Change, ...] = ()
    if kept is not None and store.digest(now) == kept.after:
        before = kept.before
    elif kept is not None and now != kept.before:
        # The user edited it since: what is taken back later is the user's own text.
        text, stay = unwrap(_text(now, told), told, kept.changes)
        before = _bytes(text, now)
    result = wrap_all(_text(before, told), told, wrapping)
    after = _bytes(result.text, before)
    made = {one.path for one in result.changes}
    record = store.Imported(
        place=place,
        before=before,
        after=store.digest(after),
        changes=(*result.changes, *(one for one in stay if one.path not in made)),
    )
    if not dry_run:
        if record != kept and (kept is not None or after != now):
            store.keep(record)
        if after != now:
            store.replace(place, after, expected=now)
    again = {one.path[-1] for one in kept.changes} if kept is not None else set()
    return Report(
        place=place,
        changed=after != now,
        wrapped=tuple(name for one in result.changes if (name := one.path[-1]) not in again or after != now),
        known=(
            *(name for one in result.changes if (name := one.path[-1]) in again and after == now),
            *result.known,
        ),
        left=result.left,
    )


def take_back(place: str, *, dry_run: bool = False, keep_edits: bool = False) -> Report:
    """Restore a file as it was before the import, byte for byte.

    Takes: `keep_edits`, whether a file that was edited since keeps the edits and only its servers are restored.
    Raises: InputError, where it was edited since, or the import is not known.
    """
    told, place = place, os.path.realpath(place)
    now = store.read(place)
    kept = store.find(place)
    if kept is None:
        return _unknown(told, now)
    stay: tuple[Change, ...] = ()
    if now == kept.before:
        after = now  # cut off between the record and the file, or taken back by hand
    elif store.digest(now) == kept.after:
        after = kept.before
    elif keep_edits:
        text, stay = unwrap(_text(now, told), told, kept.changes)
        after = _bytes(text, now)
    else:
        raise InputError(
            f"`{place}` was edited since the import, so it was left as it is",
            hint=f"take the edit back, or keep it and restore only the servers: "
            f"interlock mcp import {place} --undo --keep-edits",
        )
    if not dry_run:
        if after != now:
            store.replace(place, after, expected=now)
        store.forget(place)
    staying = {one.path for one in stay}
    return Report(
        place=place,
        changed=after != now,
        restored=tuple(one.path[-1] for one in kept.changes if one.path not in staying and after != now),
        left=tuple((one.path[-1], "it was edited since the import") for one in stay),
    )


def _unknown(place: str, now: bytes) -> Report:
    known = wrap_all(_text(now, place), place, Wrapping(program="interlock")).known
    if known:
        raise InputError(
            f"`{place}` was imported elsewhere, and how it was before is not known here",
            hint="take the words from `interlock` to `--` out of each server by hand",
        )
    return Report(place=place, changed=False)


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode("utf-8").removeprefix(_MARK)
    except UnicodeDecodeError as error:
        raise InputError(f"`{place}` is no UTF-8", hint="mend the file, then try again") from error


def _bytes(text: str, like: bytes) -> bytes:
    mark = _MARK.encode()
    return (mark if like.startswith(mark) else b"") + text.encode("utf-8")
