"""`interlock labels`: show what earlier runs left in places, or forget it."""

from __future__ import annotations

import os
import sys

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import IntegrityError


def main(words: list[str]) -> int:
    """Run the verb; see `interlock labels --help`."""
    form = parser(
        "labels",
        "Show the labels of what earlier runs wrote: it vouches for nothing, and what it holds of sensitive values "
        "does not leave. Your own edit of a file ends its label; --forget is your word for it as it is.",
        "interlock labels docs/ --json",
        "0; 2 input, 4 the store is damaged, 5 it cannot be written.",
    )
    form.add_argument(
        "path", metavar="PATH", nargs="?", default="", help="a file or a folder (default: here)"
    )
    form.add_argument("--forget", metavar="PATH", help="drop the labels of a file, or of all below a folder")
    form.add_argument("--reset", action="store_true", help="put the store aside and begin a new one")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    if sum(map(bool, (arguments.path, arguments.forget, arguments.reset))) > 1:
        form.error("PATH, --forget and --reset exclude each other")
    from interlock.runtime import label_rows, label_store

    file = label_store.store_file()
    if arguments.reset:
        aside = label_rows.put_aside(file)
        if arguments.json:
            print_json({"aside": aside})
        else:
            print(f"the labels lie in {safe(aside)} now" if aside else "there are no labels")
        return 0
    if arguments.forget is not None:
        count = label_rows.forget(file, _written(arguments.forget)) if label_store.is_there() else 0
        if arguments.json:
            print_json({"forgotten": count})
        else:
            print(f"forgot {count} labels")
        return 0
    return _show(_written(arguments.path or "."), as_json=arguments.json)


def _written(path: str) -> str:
    """Return a path as the store writes it; its last part may be a link, which has no label."""
    from interlock.model.places import path_text

    folder, name = os.path.split(os.path.abspath(path))
    return path_text(os.fsencode(os.path.join(os.path.realpath(folder), name)))


def _show(path: str, *, as_json: bool) -> int:
    from interlock.runtime import label_store

    lost, rows = label_store.fitting_rows(path)
    if lost:
        raise IntegrityError(lost, hint=label_store.NEXT)
    if as_json:
        print_json(
            {
                "labels": [
                    {
                        "path": row.path,
                        "integrity": row.integrity.name.lower(),
                        "level": row.level.name.lower(),
                        "fields": list(row.fields),
                        "may_hold": row.may_hold.name.lower(),
                        "held": list(row.held),
                        "run": row.run_id,
                    }
                    for row in rows
                ]
            }
        )
        return 0
    ink = Ink(sys.stdout)
    for row in rows:
        words = [row.integrity.name.lower(), f"holds {row.level.name.lower()}"]
        if row.fields:
            words[-1] += f" in {', '.join(map(safe, row.fields))}"
        if row.may_hold > row.level:
            words.append(f"might hold {row.may_hold.name.lower()}")
        print(f"{safe(row.path)}  {', '.join(words)}  {ink.faint(row.run_id)}")
        for one in row.held:
            print(f"  after {safe(one)} was read")
    if not rows:
        print(f"no labels at or below {safe(path)}", file=sys.stderr)
    return 0
