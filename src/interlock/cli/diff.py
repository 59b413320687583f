"""`interlock diff`: show what an open run has staged."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe

if TYPE_CHECKING:
    from interlock.model.effects import Effect
    from interlock.runtime.folders import RunFolder


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

    folder = folders.load(folders.find(arguments.run))
    selection = select(folder, arguments.paths)
    found = []
    ink = Ink(sys.stdout)
    for item in () if folder.sealed else folder.folders:
        root = staging.StagedRoot(
            name=item.name,
            lower=item.lower,
            upper=item.upper,
            mode=folder.staging,
            xattr_prefix=folder.xattr_prefix,
        )
        for change in staging.list_changes(root, judges_content=lambda _path: False):
            place = str(change.place)
            if selection and not any(place == one or place.startswith(one + "/") for one in selection):
                continue
            found.append({"operation": change.kind.value, "place": place})
            if arguments.json:
                continue
            print(ink.strong(f"{change.kind.value:<10} {place}"))
            if not arguments.stat:
                for line in staging.unified_diff(root, change).splitlines():
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
