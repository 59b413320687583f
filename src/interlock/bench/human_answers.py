"""The oracle `human` of the bench: whoever sits at the terminal answers, through the same review as in a run."""

from __future__ import annotations

import sys
from collections.abc import Callable

from interlock.bench.dojo_gate import Asked
from interlock.bench.oracle_answers import put, released
from interlock.model.errors import InputError
from interlock.oracle import Human


def human_answers(human: Human | None = None) -> Callable[[Asked], bool]:
    """Return an oracle that asks a person about each effect by itself; who says nothing of it refuses.

    Takes: `human`, on other descriptors than the controlling terminal.
    """
    person = human or Human()

    def answered(asked: Asked) -> bool:
        print(f"\n{asked.case}", file=sys.stderr, flush=True)
        said = put(person, asked)
        if said.leave_open:
            raise InputError(
                "nobody answered at the terminal",
                hint="run it at one; with --out DIR the same command goes on where it was left",
            )
        return released(said)

    return answered
