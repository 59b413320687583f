"""`interlock bench leaks`: how many encoded secrets are held, and how many ordinary texts with them."""

from __future__ import annotations

import os

from interlock.cli.output import parser, print_json

MAX_TEXT_BYTES = 64 * 1024


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench leaks --help`."""
    form = parser(
        "bench leaks",
        "Send secrets of 5 kinds, encoded in 20 ways, by 6 carriers through the decision.",
        "interlock bench leaks --pairs --benign src",
        "0 all were held; 1 one passed.",
    )
    form.add_argument("--pairs", action="store_true", help="also every pair of encodings")
    form.add_argument("--benign", metavar="DIR", help="a folder whose text files are sent as ordinary bodies")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.bench import leaks

    rows = [*leaks.recall(), *(leaks.recall(pairs=True) if arguments.pairs else ())]
    benign = leaks.false_alarms(_texts(arguments.benign)) if arguments.benign else None
    passed = sum(row.cases - row.held for row in rows)
    if arguments.json:
        made: dict[str, object] = {"recall": {row.name: [row.held, row.cases] for row in rows}}
        if benign is not None:
            made["benign"] = {"requests": benign.cases, "alarms": benign.held}
        print_json(made)
    else:
        for row in rows:
            print(f"{row.name:34} {row.held:5} of {row.cases:5}")
        if benign is not None:
            print(f"{'false alarms':34} {benign.held:5} of {benign.cases:5}")
    return 1 if passed else 0


def _texts(folder: str) -> list[str]:
    found = []
    for below, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(below, name)
            try:
                if os.path.islink(path) or os.path.getsize(path) > MAX_TEXT_BYTES:
                    continue
                with open(path, encoding="utf-8") as file:
                    found.append(file.read())
            except (OSError, UnicodeDecodeError):
                continue
    return found
