"""A destination that the task names for something else: what asks for the effect names one of its own.

`Sum up what is in "blue" and post it to "green"` names two rooms, and one of them to post to. A word behind which the
task asks for the effect binds what stands from there to the end of its sentence; where that names a value which no
argument of the call takes, a value outside of it is not what the task means.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from interlock.policy.declaration import Policy
from interlock.policy.derivations.dates import DATED
from interlock.policy.derivations.typed import find_typed
from interlock.policy.provenance import Knowledge
from interlock.policy.tools.asking import asked_parts
from interlock.policy.tools.days import RELATIVE, day_of, names_day
from interlock.policy.tools.knowing import ANY_CALL
from interlock.policy.tools.leaves import leaves_of
from interlock.policy.tools.named import task_text
from interlock.policy.tools.roles import EGRESS, READ, ToolRole
from interlock.policy.tools.values import held, same_form

NAME = "name"
DATE = "date"
SHAPED = ("email", "url", "iban")
_QUOTED = re.compile(r"(?<!\w)([\"'`])([^\"'`\n]{1,80})\1(?!\w)")
# `post 'hello' there`: what stands in quotes is no room, and the room is one that was named before.
_POINTS_BACK = re.compile(r"\s+(?:there|(?:in|into|to|on)\s+(?:it|that|this))(?![\w-])", re.IGNORECASE)
Steering = tuple[tuple[str, str, str], ...]


def meant_elsewhere(
    policy: Policy, knowledge: Knowledge, tool: ToolRole, steering: Steering, one: tuple[str, str, str]
) -> bool:
    """Say whether a value that the task names is not what it asks this tool's effect for.

    Takes: `steering`, all that steers the call: role, type and text; `one`, one of them.
    Holds: of addresses and days each part that asks has to name another; of a name, which has no shape, one part in
    quotes, and the name has to be what a reading call was given.
    """
    _, kind, value = one
    text = task_text(knowledge)
    parts = tuple(text[start:end] for start, end in asked_parts(text, tool.asks)) if tool.asks else ()
    if not _may_name_another(parts, kind) or any(
        _names(policy, knowledge, kind, value, part) for part in parts
    ):
        return False
    kinds = kind.split("|")
    taken = {same_form(one, other) for _, given, other in steering for one in given.split("|")}
    taken |= {day.isoformat() for _, _, other in steering if (day := day_of(other)) is not None}
    if all(any(True for _ in _others(policy, knowledge, kinds, part, taken)) for part in parts):
        return True
    return (
        NAME in kinds
        and _was_read(policy, knowledge, value)
        and any(
            same_form(NAME, quoted[2]) not in taken and not _POINTS_BACK.match(part, quoted.end())
            for part in parts
            for quoted in _QUOTED.finditer(part)
        )
    )


@lru_cache(maxsize=64)
def _may_name_another(parts: tuple[str, ...], kind: str) -> bool:
    """Say whether what asks holds values of a type at all: of most tasks it holds none, which is all that is asked."""
    kinds = kind.split("|")
    shaped = [one for one in SHAPED if one in kinds]
    if NAME in kinds and any(_QUOTED.search(part) for part in parts):
        return True
    return bool(parts) and all(
        any(True for one in shaped for _ in held(one, part))
        or (DATE in kinds and bool(DATED.search(part) or RELATIVE.search(part)))
        for part in parts
    )


def _names(policy: Policy, knowledge: Knowledge, kind: str, value: str, part: str) -> bool:
    if find_typed(kind, value, part) is not None:
        return True
    day = day_of(value) if DATE in kind.split("|") else None
    return day is not None and names_day(policy, knowledge, part, day)


def _others(
    policy: Policy, knowledge: Knowledge, kinds: list[str], part: str, taken: set[str]
) -> Iterator[str]:
    """Yield what a part names of some types that no argument takes."""
    for kind in SHAPED:
        if kind in kinds:
            yield from (form for form, _, _ in held(kind, part) if form not in taken)
    if DATE in kinds:
        days = [day for day in map(day_of, taken) if day is not None]
        for found in (*DATED.finditer(part), *RELATIVE.finditer(part)):
            if not any(names_day(policy, knowledge, found.group(), day) for day in days):
                yield found.group()


def _was_read(policy: Policy, knowledge: Knowledge, value: str) -> bool:
    """Say whether a reading call was given a name: then that is where the task reads."""
    wanted = same_form(NAME, value)
    for returned in knowledge.returned:
        tool = policy.tools.find(returned.tool)
        if tool is None or tool.effect not in (READ, EGRESS):
            continue
        if returned.is_of(ANY_CALL) or any(
            same_form(NAME, leaf.text) == wanted for leaf in leaves_of(returned.arguments, whole=True) or ()
        ):
            return True
    return False
