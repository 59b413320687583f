"""What the judge's answer is worth: a label with a provision that was shown, read strictly; all else is no answer."""

import json
from collections.abc import Sequence
from typing import NoReturn

from interlock.model.records import dataclass
from interlock.oracle.judge.template import LABELS, NONE, NOT_APPLICABLE, THOUGHT_LENGTH

_ANSWER_LENGTH = 1 << 16
_KEYS = frozenset(("thought", "label", "provision"))
_FORM = "its answer was not one JSON object of the form that was asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """An answer. Takes: `nonsense`, why it is none, `""` where it is one; then label and provision are empty."""

    label: str = ""
    provision: str = ""
    thought: str = ""
    nonsense: str = ""


def read_answer(text: str, shown: Sequence[str]) -> Judged:
    """Read an answer about provisions that were shown.

    Holds: total; a label other than not-applicable counts only with exactly one of the provisions that were shown.
    """
    if len(text) > _ANSWER_LENGTH:
        return Judged(nonsense="its answer was far too long")
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return Judged(nonsense=_FORM)
    if not isinstance(value, dict) or value.keys() != _KEYS:
        return Judged(nonsense=_FORM)
    thought, label, provision = value["thought"], value["label"], value["provision"]
    if not isinstance(thought, str) or len(thought) > THOUGHT_LENGTH:
        return Judged(nonsense="its thought is no text of the length that was asked for")
    if not isinstance(label, str) or label not in LABELS:
        return Judged(thought=thought, nonsense="its label is none of the three")
    if label == NOT_APPLICABLE and provision == NONE:
        return Judged(label=label, thought=thought)
    if not isinstance(provision, str) or provision not in shown:
        return Judged(thought=thought, nonsense="it names a provision that it was not shown")
    return Judged(label=label, provision=provision, thought=thought)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
