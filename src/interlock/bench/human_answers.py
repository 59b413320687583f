"""The oracle `human` of the bench: whoever sits at the terminal answers, through the same review as in a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from interlock.bench.dojo_gate import Asked
from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.verdicts import Decision
from interlock.oracle import Human, Question, ask


def human_answers(human: Human | None = None) -> Callable[[Asked], bool]:
    """Return an oracle that asks a person about each effect by itself; who says nothing of it refuses.

    Takes: `human`, on other descriptors than the controlling terminal.
    """
    person = human or Human()

    def answered(asked: Asked) -> bool:
        print(f"\n{asked.case}", file=sys.stderr, flush=True)
        question = Question(task=asked.task, deferred=((asked.effect, asked.verdict),), diff=_arguments)
        said = ask(person, question)
        if said.leave_open:
            raise InputError(
                "nobody answered at the terminal",
                hint="run it at one; with --out DIR the same command goes on where it was left",
            )
        return any(one.decision is Decision.RELEASE for one in said.answers)

    return answered


def _arguments(effect: Effect) -> str:
    assert effect.tool is not None
    text = json.dumps(json.loads(effect.tool.arguments), indent=2, ensure_ascii=False)
    return f"{effect.tool.name}\n{text}\n"
