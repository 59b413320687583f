"""`interlock apply`: commit what an open run has staged."""

from __future__ import annotations

import sys

from interlock.cli.output import parser, print_json, safe
from interlock.model.errors import WITHHELD_EXIT_STATUS


def main(words: list[str]) -> int:
    """Run the verb; see `interlock apply --help`."""
    form = parser(
        "apply",
        "Commit what an open run has staged: all of it, or the files and folders named.",
        "interlock apply last src/ README.md",
        "0 committed; 6 something stayed refused; 2 input, 4 integrity, 5 stuck.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument("paths", metavar="PATH", nargs="*", help="only these; the rest stays staged")
    form.add_argument(
        "--review", action="store_true", help="ask for each effect that the policy cannot vouch for"
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock import oracle
    from interlock.cli.diff import select
    from interlock.runtime import folders, history

    path = folders.find(arguments.run)
    folder = folders.load(path)
    selection = select(folder, arguments.paths)
    lock = folders.RunLock(path)
    lock.acquire(folder.run_id)
    who = oracle.choose("human", terminal=True) if arguments.review else oracle.Principal()
    performer = history.reopen(path, who, lambda line: print(f"interlock: {line}", file=sys.stderr))
    history.resume(performer, who.name, selection)
    resolution = performer.resolution
    if arguments.json:
        print_json(
            {
                "run": folder.run_id,
                "committed": resolution.committed,
                "refused": [place for _id, place, _exception in resolution.refusals],
                "sent": [
                    {"effect": effect_id, "url": url, "outcome": response.outcome.value}
                    for effect_id, url, response in resolution.sent
                ],
                "skipped": list(resolution.skipped),
                "held": resolution.held,
                "fault": resolution.fault,
                "stuck": resolution.stuck,
            }
        )
    else:
        print(f"{resolution.committed} committed, {len(resolution.refusals)} refused")
        for _id, place, exception in resolution.refusals:
            print(f"refused {safe(place)}: {safe(exception.rationale)}")
        for effect_id, url, response in resolution.sent:
            print(f"sent {effect_id} {safe(url)}: {response.outcome.value}, status {response.status}")
        for place in resolution.skipped:
            print(f"not merged (no regular file, folder or link): {safe(place)}")
        if resolution.fault:
            print(f"interlock: failed: {safe(resolution.fault)}", file=sys.stderr)
        if resolution.held:
            print(f"the rest stays staged: interlock diff {folder.run_id}", file=sys.stderr)
    if resolution.stuck:
        return 5
    if resolution.fault:
        return resolution.fault_status
    return WITHHELD_EXIT_STATUS if resolution.refusals else 0
