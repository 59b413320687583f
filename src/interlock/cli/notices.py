"""`interlock notices`: say what was refused and why, inside a run or of one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.runtime.notices import Notice


def main(words: list[str]) -> int:
    """Run the verb; see `interlock notices --help`."""
    form = parser(
        "notices",
        "Say what was refused and why: inside a run of that run so far, outside of the run named.",
        "interlock notices last --since 3",
        "0; 2 input; 4 the ledger is damaged; 5 the run's monitor does not answer.",
    )
    form.add_argument(
        "run", metavar="RUN", nargs="?", help="a run's id, the end of one, or `last`; not needed inside a run"
    )
    form.add_argument("--since", type=int, default=0, metavar="N", help="only those after the Nth")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    if arguments.since < 0:
        raise InputError("`--since` counts refusals from 0", hint="leave it out to see all of them")
    found = _found(arguments.run)
    shown = list(enumerate(found, start=1))[arguments.since :]
    if arguments.json:
        print_json({"notices": [{"number": number, **notice.plain()} for number, notice in shown]})
        return 0
    for number, notice in shown:
        _print(number, notice)
    if not shown:
        print("nothing was refused" + (" since then" if found else ""), file=sys.stderr)
    return 0


def _found(run: str | None) -> tuple[Notice, ...]:
    from interlock.runtime import notices
    from interlock.runtime.environment import NOTICES_VARIABLE

    if run is not None:
        from interlock.runtime import folders

        return notices.of_run(folders.find(run))
    if NOTICES_VARIABLE in os.environ:
        return notices.of_inside()
    raise InputError("a run is needed: this is not inside one", hint="name it: interlock notices last")


def _print(number: int, notice: Notice) -> None:
    ink, exception = Ink(sys.stdout), notice.exception
    print(f"{number}  {ink.decision('refuse')} {notice.effect or '-'} {_line(notice.subject)}")
    print(f"   type               {exception.type.value}")
    print(f"   violated rule      {_line(exception.violated_rule)}")
    print(f"   rationale          {_line(exception.rationale)}")
    for at, constraint in enumerate(exception.constraints or ("none",)):
        print(f"   {'constraints' if at == 0 else '':<18} {_line(constraint)}")
    print(f"   allowed objective  {_line(exception.allowed_objective)}")


def _line(text: str) -> str:
    """Return text on one line: a newline could forge a field of the next one."""
    return safe(text).replace("\n", "\\u000a")
