"""`interlock recover`: finish or roll back what a crash cut off in a commit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from interlock.runtime import recovering

FOLD = 20
"""So many places in doubt are listed; the rest is counted."""


def main(words: list[str]) -> int:
    """Run the verb; see `interlock recover --help`."""
    arguments = _arguments(words)
    from interlock.model.events import StuckChoice
    from interlock.runtime import folders, recovering

    def note(line: str) -> None:
        print(f"interlock: {safe(line)}", file=sys.stderr)

    if arguments.give_up:
        return _give_up(folders.find(arguments.run), arguments, note)
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
    stuck.add_argument(
        "--give-up",
        action="store_true",
        help="leave a merge of RUN that cannot be ended as it is, and close the run; what it released is unknown then",
    )
    form.add_argument("--yes", action="store_true", help="give up without asking")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    if arguments.run is None and (arguments.retry or arguments.skip or arguments.drop or arguments.give_up):
        form.error("--retry, --skip, --drop and --give-up need a RUN")
    if arguments.yes and not arguments.give_up:
        form.error("--yes goes with --give-up")
    return arguments


def _give_up(path: str, arguments: argparse.Namespace, note: Callable[[str], None]) -> int:
    """Say what is in doubt, ask, and close the run."""
    from interlock.runtime import giving_up

    doubt = giving_up.look(path, note)
    if not arguments.json:
        print(f"{doubt.run_id}  cannot be ended: {safe(doubt.reason)}")
        print(f"in doubt, as before or as after: {len(doubt.places)} places of {safe(doubt.workspace)}")
        for place in doubt.places[:FOLD]:
            print(f"  {safe(place)}")
        if len(doubt.places) > FOLD:
            print(f"  … {len(doubt.places) - FOLD} more: interlock show {doubt.run_id}")
    if not arguments.yes:
        if arguments.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise InputError(
                "giving a merge up wants your word, and nobody can be asked here",
                hint=f"interlock recover {doubt.run_id} --give-up --yes",
            )
        print("close the run and leave all that as it is? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("nothing was given up", file=sys.stderr)
            return 5
    giving_up.give_up(doubt, note)
    if arguments.json:
        print_json(
            {
                "run": doubt.run_id,
                "workspace": doubt.workspace,
                "given_up": doubt.reason,
                "unknown": list(doubt.places),
                "kept": list(doubt.kept),
            }
        )
        return 0
    print(f"given up: the run {doubt.run_id} is closed, what it released is unknown; nothing was touched")
    for folder in doubt.kept:
        print(f"  kept: {safe(folder)}")
    return 0


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
