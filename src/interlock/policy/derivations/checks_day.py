"""The checker of a day: the task writes it, with or without its year, or says today or tomorrow."""

from interlock.model.tools import ToolCall
from interlock.model.verdicts import Derivation
from interlock.policy.derivations import names
from interlock.policy.derivations.facts import Facts, Fault
from interlock.policy.derivations.leaves_read import READS, field_type
from interlock.policy.derivations.numbers_read import day_of
from interlock.policy.derivations.reading import part_of_name, unseen
from interlock.policy.derivations.task_words import task_text

Day = tuple[int, int, int]
_AHEAD = {"today": 0, "tonight": 0, "tomorrow": 1}


def day_named(facts: Facts, derivation: Derivation, kind: str) -> Fault | None:
    """The task's words are the day on which the date lies; what it leaves open, the year and the hour, is free."""
    if not isinstance(facts.proposal, ToolCall) or kind != "date" or derivation.form or derivation.pointer:
        return Fault.RULE
    if derivation.node != facts.task_node:
        return Fault.NODE
    text = task_text(facts)
    start, end = derivation.start, derivation.end
    if not text or not 0 <= start < end <= len(text) or not _alone(text, start, end):
        return Fault.SPAN
    day = day_of(derivation.value.strip()[:10])
    if day is None:
        return Fault.VALUE
    said = text[start:end]
    if said.lower() in _AHEAD:
        today = _today(facts, derivation)
        if today is None:
            return Fault.PREMISE
        return None if _after(today, _AHEAD[said.lower()]) == day else Fault.SPAN
    if derivation.premises:
        return Fault.PREMISE
    # A day without its year may be of the year that the value says.
    return None if day in (day_of(said), day_of(f"{said}, {day[0]}")) else Fault.SPAN


def _alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 2]
    if before and (part_of_name(before) or before in "./-'" or unseen(before)):
        return False
    if after and (part_of_name(after[0]) or unseen(after[0]) or after[0] == "-"):
        return False
    return not (after[:1] in tuple("./'\u2019") and after[1:].isalnum())


def _today(facts: Facts, derivation: Derivation) -> Day | None:
    """Return the day that the user's own calendar gave, asked for nothing."""
    if len(derivation.premises) != 1:
        return None
    (premise,) = derivation.premises
    answer = facts.answer(premise.node)
    tool = facts.policy.tools.find(answer.tool) if answer is not None else None
    leaves = facts.leaves(premise.node)
    if answer is None or tool is None or len(leaves) != 1 or answer.arguments != "{}":
        return None
    whole = (premise.rule, premise.start, premise.end) == (names.STRUCTURED_LEAF, 0, len(premise.value))
    if not whole or premise.premises or premise.form:
        return None
    own = tool.effect in READS and tool.output.trust == "own" and not tool.output.echo
    typed = field_type(facts, answer, premise.pointer) in ("", "date")
    if not own or not typed or leaves[0] != (premise.pointer, premise.value):
        return None
    return day_of(premise.value.strip()[:10])


def _after(day: Day, ahead: int) -> Day:
    from datetime import date, timedelta

    try:
        then = date(*day) + timedelta(days=ahead)
    except (ValueError, OverflowError):
        return day
    return then.year, then.month, then.day
