"""`interlock discard`: drop what an open run has staged, also while its command lives."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json, safe

if TYPE_CHECKING:
    from interlock.runtime.folders import RunFolder


def main(words: list[str]) -> int:
    """Run the verb; see `interlock discard --help`."""
    form = parser(
        "discard",
        "Drop everything that an open run has staged and close it; the workspace stays as it is. A command that "
        "still runs goes on, and sees the workspace as it is.",
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
    if folders.is_locked(path):
        return _living(folder, as_json=arguments.json)
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


def _living(folder: RunFolder, *, as_json: bool) -> int:
    """Ask the monitor of the run, whose command lives."""
    from interlock.runtime import control
    from interlock.runtime.control_protocol import DiscardNow, write_request

    told = control.ask(
        folder, write_request(DiscardNow()), lambda line: print(f"interlock: {line}", file=sys.stderr)
    )
    held = bool(told.get("held"))
    if as_json:
        print_json({"run": folder.run_id, "discarded": not held, "fault": told.get("why", "")})
    elif held:
        why = safe(str(told.get("why", "")))
        print(f"interlock: not all of it could be dropped, the rest stays staged: {why}", file=sys.stderr)
    else:
        print("dropped what was staged and parked; the command goes on, and sees the workspace as it is")
    return 5 if held else 0
