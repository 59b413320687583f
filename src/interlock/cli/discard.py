"""`interlock discard`: drop what an open run has staged."""

from __future__ import annotations

import sys

from interlock.cli.output import parser, print_json


def main(words: list[str]) -> int:
    """Run the verb; see `interlock discard --help`."""
    form = parser(
        "discard",
        "Drop everything that an open run has staged and close it; the workspace stays as it is.",
        "interlock discard last",
        "0 dropped; 2 input, 4 integrity, 5 stuck.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock import oracle
    from interlock.runtime import folders, history

    path = folders.find(arguments.run)
    folder = folders.load(path)
    lock = folders.RunLock(path)
    lock.acquire(folder.run_id)
    performer = history.reopen(
        path, oracle.Strict(), lambda line: print(f"interlock: {line}", file=sys.stderr)
    )
    history.discard(performer)
    closed = performer.folder.sealed
    if arguments.json:
        print_json({"run": folder.run_id, "discarded": closed, "fault": performer.resolution.fault})
    elif closed:
        print(f"discarded {folder.run_id}; the workspace is as it was")
    else:
        print(f"interlock: failed: {performer.resolution.fault}", file=sys.stderr)
    return 0 if closed else 5
