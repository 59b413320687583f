"""What the person has marked so far: effects, hunks of them, and conflicts that are to be merged."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from interlock.model.records import dataclass
from interlock.oracle.listing import Item, ranges, select
from interlock.oracle.question import is_conflict

_PART = re.compile(r"([0-9]{1,7})\.([0-9]{1,7})(?:-([0-9]{1,7}))?")
_HUNKS_SHOWN = 12

Part = tuple[int, int]
"""A hunk: the number of its effect, and its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What is marked, by number.

    Takes: `parts`, the hunks of those that are marked only in part; `merges`, the conflicts among the marked;
    `redacts`, the requests among them that leave redacted.
    Holds: an effect without parts is marked whole; a conflict is marked only to be merged.
    """

    marked: frozenset[int] = frozenset()
    parts: frozenset[Part] = frozenset()
    merges: frozenset[int] = frozenset()
    redacts: frozenset[int] = frozenset()

    @property
    def whole(self) -> frozenset[int]:
        """Return what is marked and not in part."""
        return self.marked - {number for number, _ in self.parts}

    def hunks(self, number: int) -> tuple[int, ...]:
        """Return the marked hunks of an effect that is marked in part."""
        return tuple(sorted(hunk for owner, hunk in self.parts if owner == number))

    def shown(self) -> str:
        """Write the marks as they are typed."""
        out = [ranges(self.whole)] if self.whole else []
        partly = sorted(self.parts)
        out += [f"{number}.{hunk}" for number, hunk in partly[:_HUNKS_SHOWN]]
        return ", ".join(out) + (" …" if len(partly) > _HUNKS_SHOWN else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What a line of the person names: effects, and hunks of effects."""

    numbers: frozenset[int]
    parts: frozenset[Part]


def read_marks(line: str, items: Sequence[Item], count: Callable[[Item], int]) -> Typed | str:
    """Read `1,3-5`, a glob, or hunks as `3.1,3.4` and `3.1-2`; a text instead says what is wrong.

    Takes: `count`, which gives the number of an effect's hunks.
    """
    parts: set[Part] = set()
    rest: list[str] = []
    counts: dict[int, int] = {}
    for raw in line.replace(",", " ").split():
        term = _PART.fullmatch(raw)
        if term is None:
            rest.append(raw)
            continue
        number, first, last = int(term[1]), int(term[2]), int(term[3] or term[2])
        if not 1 <= number <= len(items):
            return f"no such number: {raw} (they go from 1 to {len(items)})"
        if number not in counts:
            counts[number] = count(items[number - 1])
        if not counts[number]:
            return f"{number} has no hunks: accept it whole, or refuse it"
        if not 1 <= first <= last <= counts[number]:
            return f"no such hunk: {raw} (those of {number} go from 1 to {counts[number]})"
        parts.update((number, hunk) for hunk in range(first, last + 1))
    numbers: frozenset[int] = frozenset()
    if rest or not parts:
        chosen = select(" ".join(rest), items)
        if isinstance(chosen, str):
            return chosen
        numbers = chosen
    return Typed(numbers=numbers, parts=frozenset(parts))


def toggled(marks: Marks, typed: Typed, items: Sequence[Item], count: Callable[[Item], int]) -> Marks:
    """Mark what was typed, or unmark it where all of it is marked; conflicts are only ever unmarked here."""
    numbers = typed.numbers - {
        number
        for number in typed.numbers
        if is_conflict(items[number - 1].effect) and number not in marks.merges
    }
    parts = frozenset(part for part in typed.parts if part[0] not in numbers)
    whole = marks.whole
    if numbers <= whole and all(part in marks.parts or part[0] in whole for part in parts):
        return _without(marks, numbers, parts, items, count)
    marked = marks.marked | numbers | {number for number, _ in parts}
    kept = {part for part in marks.parts | parts if part[0] not in numbers and part[0] not in whole}
    touched = {number for number, _ in parts} - numbers - whole
    full = {number for number in touched if len(_hunks(kept, number)) == count(items[number - 1])}
    return Marks(
        marked=marked,
        parts=frozenset(part for part in kept if part[0] not in full),
        merges=marks.merges,
        redacts=marks.redacts,
    )


def merging(marks: Marks, number: int) -> Marks:
    """Mark a conflict to be merged."""
    return replace(marks, marked=marks.marked | {number}, merges=marks.merges | {number})


def redacting(marks: Marks, number: int) -> Marks:
    """Mark a request to leave redacted."""
    return replace(marks, marked=marks.marked | {number}, redacts=marks.redacts | {number})


def _without(
    marks: Marks,
    numbers: frozenset[int],
    parts: frozenset[Part],
    items: Sequence[Item],
    count: Callable[[Item], int],
) -> Marks:
    left = {part for part in marks.parts if part[0] not in numbers}
    for number in {number for number, _ in parts} & marks.whole:
        left.update((number, hunk) for hunk in range(1, count(items[number - 1]) + 1))
    left -= parts
    emptied = {number for number, _ in parts if not _hunks(left, number)}
    gone = numbers | emptied
    return Marks(
        marked=marks.marked - gone,
        parts=frozenset(left),
        merges=marks.merges - gone,
        redacts=marks.redacts - gone,
    )


def _hunks(parts: set[Part], number: int) -> set[int]:
    return {hunk for owner, hunk in parts if owner == number}
