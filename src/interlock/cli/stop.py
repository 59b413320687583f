"""`interlock stop`: end a run's command and leave what it did for later."""

from __future__ import annotations

import sys
import time

from interlock.cli.output import parser, print_json

_LOOK_S = 0.05


def main(words: list[str]) -> int:
    """Run the verb; see `interlock stop --help`."""
    form = parser(
        "stop",
        "End a run's command, by force after five seconds; nothing is committed, all that it did stays staged.",
        "interlock stop last",
        "0 it ended; 2 input, no such run is under way; 4 integrity, 5 stuck.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.cli.runs import status_of
    from interlock.runtime import control, folders
    from interlock.runtime.control_protocol import StopNow, write_request

    path = folders.find(arguments.run)
    folder = folders.load(path)
    control.ask(folder, write_request(StopNow()), lambda line: print(f"interlock: {line}", file=sys.stderr))
    while folders.is_locked(path):
        time.sleep(_LOOK_S)
    status = status_of(path)
    if arguments.json:
        print_json({"run": folder.run_id, "status": status})
    elif status == "held":
        print(
            f"stopped {folder.run_id}; what it did is held: interlock diff {folder.run_id}, "
            f"then: interlock apply {folder.run_id}, or: interlock discard {folder.run_id}"
        )
    else:
        print(f"{folder.run_id} has ended: {status}")
    return 0
