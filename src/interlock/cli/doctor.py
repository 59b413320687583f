"""`interlock doctor`: what this machine can enforce."""

from __future__ import annotations

import sys

from interlock.cli.output import Ink, parser, print_json


def main(words: list[str]) -> int:
    """Run the verb; see `interlock doctor --help`."""
    form = parser(
        "doctor",
        "Say what this machine can enforce, and how to get what is missing.",
        "interlock doctor",
        "0 every promise can be kept; 3 some cannot.",
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock import boundary
    from interlock.runtime.folders import state_folder

    features = boundary.probe(state_folder())
    if arguments.json:
        print_json(
            [
                {
                    "name": item.name,
                    "available": item.available,
                    "needed": item.needed,
                    "detail": item.detail,
                    "fix": item.fix,
                }
                for item in features
            ]
        )
    else:
        ink = Ink(sys.stdout)
        for item in features:
            mark = ink.good("yes") if item.available else ink.bad("no ") if item.needed else ink.warn("no ")
            print(f"{mark}  {item.name:<24} {item.detail}")
            if not item.available and item.fix:
                print(f"     fix: {item.fix}")
    return 0 if all(item.available for item in features if item.needed) else 3
