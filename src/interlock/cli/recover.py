"""`interlock recover`: finish or roll back what a crash cut off in a commit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    import argparse

    from interlock.runtime import recovering


def main(words: list[str]) -> int:
    """Run the verb; see `interlock recover --help`."""
    arguments = _arguments(words)
    from interlock.model.events import StuckChoice
    from interlock.runtime import folders, recovering

    def note(line: str) -> None:
        print(f"interlock: {safe(line)}", file=sys.stderr)

    if arguments.run is None:
        ended = recovering.recover_all(note)
    else:
        chosen = [(choice, getattr(arguments, choice.value)) for choice in StuckChoice]
        settling = next(((effect_id, choice) for choice, effect_id in chosen if effect_id), None)
        path = folders.find(arguments.run)
        one = recovering.recover_run(path, note, settling)
        if one is not None and one.ending is recovering.Ending.BUSY:
            raise InputError(one.message, hint="wait until it ends, then try again")
        ended = () if one is None else (one,)
    if arguments.json:
        print_json(
            [
                {
                    "run": one.run_id,
                    "workspace": one.workspace,
                    "ending": one.ending.value,
                    "message": one.message,
                    "choices": list(one.choices),
                }
                for one in ended
            ]
        )
    else:
        _tell(ended)
    return _exit_status(ended)


def _arguments(words: list[str]) -> argparse.Namespace:
    form = parser(
        "recover",
        "Finish or roll back what a crash cut off in a commit; staged work is named, never touched.",
        "interlock recover",
        "0 nothing is left half done; 4 a run's record or log is damaged; 5 something is stuck; 2 input.",
    )
    which = form.add_mutually_exclusive_group()
    which.add_argument("run", metavar="RUN", nargs="?", help="a run's id, the end of one, or `last`")
    which.add_argument("--all", action="store_true", help="every run (the default)")
    stuck = form.add_mutually_exclusive_group()
    stuck.add_argument("--retry", metavar="ID", help="send this parked request of RUN once more")
    stuck.add_argument("--skip", metavar="ID", help="leave this parked request, and go on with the next")
    stuck.add_argument("--drop", metavar="ID", help="leave this parked request, and refuse what follows it")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    if arguments.run is None and (arguments.retry or arguments.skip or arguments.drop):
        form.error("--retry, --skip and --drop need a RUN")
    return arguments


def _tell(ended: tuple[recovering.Recovered, ...]) -> None:
    from interlock.runtime.recovering import Ending

    if not ended:
        print("nothing to recover")
        return
    ink = Ink(sys.stdout)
    colours = {
        Ending.FINISHED: ink.good,
        Ending.ROLLED_BACK: ink.good,
        Ending.HELD_WORK: ink.warn,
        Ending.BUSY: ink.faint,
    }
    for one in ended:
        word = colours.get(one.ending, ink.bad)(f"{one.ending.value:<11}")
        print(f"{one.run_id}  {word}  {safe(one.workspace)}  {safe(one.message)}")
        for choice in one.choices:
            print(f"  next: {safe(choice)}")


def _exit_status(ended: tuple[recovering.Recovered, ...]) -> int:
    from interlock.runtime.recovering import Ending

    endings = {one.ending for one in ended}
    if Ending.DAMAGED in endings:
        return 4
    return 5 if Ending.STUCK in endings else 0
