"""`interlock doctor`: what this machine can enforce."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json

if TYPE_CHECKING:
    from interlock.boundary import Feature


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

    features = (*boundary.probe(state_folder()), *_hooks())
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


def _hooks() -> list[Feature]:
    """Say of each agent that has our hook in its settings whether it would skip it."""
    from interlock.boundary import Feature
    from interlock.hooks import AGENTS
    from interlock.hooks.settings import state_of

    found = []
    for agent in AGENTS:
        state = state_of(agent, os.path.expanduser("~"), os.getcwd())
        if state.installed:
            why = "; ".join(state.skipped)
            found.append(
                Feature(
                    name=f"hook of {agent}",
                    available=not why,
                    detail=f"skipped: {why}" if why else "asked before each tool",
                    fix="mend its settings; the boundary holds what its tools do all the same",
                    needed=False,
                )
            )
    return found
