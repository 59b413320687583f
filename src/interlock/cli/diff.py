"""`interlock diff`: show what an open run has staged."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from interlock.cli.output import Ink, parser, print_json, safe

if TYPE_CHECKING:
    from interlock.model.effects import Effect, FileChange
    from interlock.model.moves import Moved
    from interlock.runtime.folders import RunFolder
    from interlock.staging import StagedRoot


def main(words: list[str]) -> int:
    """Run the verb; see `interlock diff --help`."""
    form = parser(
        "diff",
        "Show what an open run has staged, as a patch.",
        "interlock diff last",
        "0 nothing staged; 1 something staged; 2 input, 4 integrity.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument("paths", metavar="PATH", nargs="*", help="only these files or folders")
    form.add_argument("--stat", action="store_true", help="names alone")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock import staging
    from interlock.runtime import folders
    from interlock.runtime.touches import Touches

    folder = folders.load(folders.find(arguments.run))
    selection = select(folder, arguments.paths)
    staged = [] if folder.sealed else _staged(folder, selection)
    found: list[dict[str, object]] = [_plain(one) for one in staged]
    ink = Ink(sys.stdout)
    conflicts = sum(one.change.host_edit is not None for one in staged)
    if conflicts and not arguments.json:
        places = "1 place was" if conflicts == 1 else f"{conflicts:,} places were"
        print(ink.bad(f"conflicts: {places} changed by the host too, since the agent began there"))
    touches = Touches.load(folder) if conflicts else None
    for one in () if arguments.json else staged:
        root, change = one.root, one.change
        mark = "" if change.host_edit is None else f"  (conflict: {change.host_edit.value})"
        said = "" if one.moved is None else f"  {safe(one.moved.words)}"
        print(ink.strong(f"{change.kind.value:<10} {change.place}") + said + ink.bad(mark))
        if arguments.stat:
            continue
        if change.host_edit is None or touches is None:
            text = staging.unified_diff(root, change, moved=one.moved)
        else:
            text = staging.three_sides(root, change, touches.base_of(change.place))
        for line in text.splitlines():
            print(_coloured(ink, line))
    for effect in () if folder.sealed else _parked(folder):
        if selection and not {effect.id, effect.object} & set(selection):
            continue
        found.append({"operation": effect.operation, "place": effect.object, "effect": effect.id})
        if arguments.json:
            continue
        print(ink.strong(f"{effect.id:<10} {effect.operation} {safe(effect.object)}"))
        if not arguments.stat and effect.request is not None and effect.request.body_text:
            for line in effect.request.body_text.splitlines():
                print(ink.good("+" + safe(line)))
    if arguments.json:
        print_json(found)
    if not found:
        print(
            "nothing is staged" + (" any more: the run is closed" if folder.sealed else ""), file=sys.stderr
        )
    return 1 if found else 0


class _Staged(NamedTuple):
    """One staged change, and where it is one end of a file's move."""

    root: StagedRoot
    change: FileChange
    moved: Moved | None


def _staged(folder: RunFolder, selection: tuple[str, ...]) -> list[_Staged]:
    """Return what is staged, with the conflicts that it has with the host's edits."""
    from interlock import staging
    from interlock.model.moves import moved_files
    from interlock.runtime.touches import Touches

    baseline = Touches.load(folder).baseline()
    found = []
    for item in folder.folders:
        root = folder.staged_root(item)
        changes = list(staging.list_changes(root, judges_content=lambda _path: False, baseline=baseline))
        moves = moved_files(changes)
        for index, change in enumerate(changes):
            place = str(change.place)
            if not selection or any(place == one or place.startswith(one + "/") for one in selection):
                found.append(_Staged(root, change, moves.get(index)))
    return found


def _plain(one: _Staged) -> dict[str, object]:
    from interlock.cli.show import moved_document, outside_document

    change = one.change
    told: dict[str, object] = {"operation": change.kind.value, "place": str(change.place)}
    told |= moved_document(one.moved) | outside_document(change)
    if change.host_edit is not None:
        from interlock.monitor.codec import plain

        told["host_edit"] = change.host_edit.value
        told |= {"base": plain(change.base), "host": plain(change.before), "staged": plain(change.after)}
    return told


def _parked(folder: RunFolder) -> tuple[Effect, ...]:
    """Return the requests that wait for the scope's end."""
    from interlock.runtime import history, sending
    from interlock.runtime.folders import NET_FOLDER

    if not os.path.isdir(folder.at(NET_FOLDER, sending.PARKED)):
        return ()
    return tuple(item.effect for item in history.read(folder.path).state.parked)


def _coloured(ink: Ink, line: str) -> str:
    shown = safe(line)
    if line.startswith("+"):
        return ink.good(shown)
    if line.startswith("-"):
        return ink.bad(shown)
    return ink.faint(shown) if line.startswith("@@") else shown


def select(folder: RunFolder, paths: list[str]) -> tuple[str, ...]:
    """Return what the words name: paths relative to the workspace or absolute, `root:path`, effect ids, URLs.

    Raises: InputError for a path outside every staged folder.
    """
    from interlock.model.errors import InputError
    from interlock.model.places import path_text

    prefixes = tuple(f"{item.name}:" for item in folder.folders)
    places = []
    for path in paths:
        if "://" in path or (path[:1] == "e" and path[1:].isdecimal() and not os.path.lexists(path)):
            places.append(path)
            continue
        if path.startswith(prefixes):
            places.append(path.rstrip("/"))
            continue
        absolute = os.path.normpath(os.path.join(folder.workspace(), path))
        for item in folder.folders:
            if absolute == item.lower or absolute.startswith(item.lower + "/"):
                relative = os.path.relpath(absolute, item.lower)
                places.append(f"{item.name}:{path_text(os.fsencode('' if relative == '.' else relative))}")
                break
        else:
            raise InputError(
                f"`{path}` lies in no staged folder of this run",
                hint="staged are: " + ", ".join(item.lower for item in folder.folders),
            )
    return tuple(places)
