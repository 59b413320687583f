"""An oracle of a run answers in the bench: `--oracle` says the same words, and it is shown the same."""

from __future__ import annotations

import json
import sys
from functools import cache

from interlock.bench.dojo_gate import Answers, Asked
from interlock.model.effects import Effect
from interlock.model.errors import InputError
from interlock.model.events import OracleAnswered
from interlock.model.verdicts import Decision
from interlock.oracle import Oracle, Question, ask

KINDS = ("seeing", "visor", "engine", "cedar", "webhook")


def is_configured(word: str) -> bool:
    """Say whether a word names an oracle that is somebody else: a model, a decision engine, a desk, or a panel."""
    return "(" in word or word.partition(":")[0] in KINDS


@cache
def configured_answers(word: str) -> Answers:
    """Open the oracle that a word names, as `interlock run --oracle` does. Raises: InputError."""
    from interlock.oracle import choose

    return oracle_answers(choose(word, terminal=False))


def oracle_answers(oracle: Oracle) -> Answers:
    """Return an oracle that is asked about each effect by itself; what it does not release is refused.

    Holds: a fault refuses, and is told: a result is then none of this oracle's.
    """
    told: set[str] = set()

    def answered(asked: Asked) -> bool:
        said = put(oracle, asked)
        if said.leave_open:
            raise InputError(
                f"`{oracle.name}` leaves a question open", hint="the bench needs an answer to each at once"
            )
        if said.fault and said.fault not in told:
            told.add(said.fault)
            print(f"`{oracle.name}` refused for a fault: {said.fault}", file=sys.stderr, flush=True)
        return released(said)

    return answered


def put(oracle: Oracle, asked: Asked) -> OracleAnswered:
    """Ask about one effect."""
    return ask(
        oracle,
        Question(
            task=asked.task,
            deferred=((asked.effect, asked.verdict),),
            diff=_arguments,
            context=asked.context,
        ),
    )


def released(said: OracleAnswered) -> bool:
    """Say whether an answer on one effect releases it."""
    return any(one.decision is Decision.RELEASE for one in said.answers)


def _arguments(effect: Effect) -> str:
    assert effect.tool is not None
    text = json.dumps(json.loads(effect.tool.arguments), indent=2, ensure_ascii=False)
    return f"{effect.tool.name}\n{text}\n"
