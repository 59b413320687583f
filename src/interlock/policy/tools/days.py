"""The task names the day of an effect: with or without its year, or as today or tomorrow of the user's own calendar.

The time of day is data. A year that the task leaves open is the agent's to choose; the day is not.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from interlock.model.effects import Value
from interlock.model.verdicts import Derivation
from interlock.policy.declaration import Policy
from interlock.policy.derivations.dates import DATED, date_form
from interlock.policy.derivations.typed import alone
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.leaves import declared_type
from interlock.policy.tools.named import task_text, word_in_task
from interlock.policy.tools.roles import EGRESS, OWN, READ
from interlock.policy.tools.selecting import at_leaf

DAY = "day-named"
TODAY_ROLE = "today"
_VALUE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?)?")
_YEAR = re.compile(r"\d{4}")
RELATIVE = re.compile(r"(?<![\w'-])(today|tonight|tomorrow)(?![\w-]|['’]\w)", re.IGNORECASE)
_AHEAD = {"today": 0, "tonight": 0, "tomorrow": 1}


def name_day(policy: Policy, knowledge: Knowledge, value: Value, kind: str) -> Derivation | None:
    """Return where the task names the day on which a date or a time lies."""
    text = task_text(knowledge)
    day = day_of(value.text) if "date" in kind.split("|") else None
    if not text or day is None:
        return None
    for span, premises in _namings(policy, knowledge, text, day):
        word = word_in_task(knowledge, value.role, span)
        if word is not None:
            return Derivation(
                role=value.role,
                value=value.text,
                rule=DAY,
                node=word.node,
                start=word.start,
                end=word.end,
                premises=premises,
            )
    return None


def names_day(policy: Policy, knowledge: Knowledge, text: str, day: date) -> bool:
    """Say whether a part of the task names a day."""
    return any(True for _ in _namings(policy, knowledge, text, day))


def day_of(text: str) -> date | None:
    """Return the day of `2024-05-19`, or of that with a time behind it; None for anything else."""
    found = _VALUE.fullmatch(text.strip())
    try:
        return date.fromisoformat(found.group(1)) if found is not None else None
    except ValueError:
        return None


def _namings(
    policy: Policy, knowledge: Knowledge, text: str, day: date
) -> Iterator[tuple[tuple[int, int], tuple[Derivation, ...]]]:
    for each in DATED.finditer(text):
        said = each.group()
        whole = said if _YEAR.search(said) else f"{said}, {day.year}"
        if date_form(whole) == day.isoformat() and alone(text, *each.span()):
            yield each.span(), ()
    for each in RELATIVE.finditer(text):
        if not alone(text, *each.span()):
            continue
        ahead = timedelta(days=_AHEAD[each.group().lower()])
        for own in _todays(policy, knowledge):
            today = day_of(own.value)
            if today is not None and today + ahead == day:
                yield each.span(), (own,)


def _todays(policy: Policy, knowledge: Knowledge) -> Iterator[Derivation]:
    """Yield what the user's own calendar gave as the current day: an answer to no argument that is a date alone."""
    for returned in knowledge.returned:
        tool = policy.tools.find(returned.tool)
        if tool is None or tool.effect not in (READ, EGRESS) or tool.output.trust != OWN or tool.output.echo:
            continue
        if len(returned.leaves) != 1 or returned.arguments != "{}":
            continue
        (leaf,) = returned.leaves
        if declared_type(tool.output.fields, leaf) in ("", "date"):
            yield at_leaf(Value(role=TODAY_ROLE, text=leaf.text), "structured-leaf", returned, leaf)
