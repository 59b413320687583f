"""The list of a review on the screen: one effect a row, or one folder of them."""

from collections.abc import Sequence

from interlock.oracle.describe import action, reasons
from interlock.oracle.listing import Item, Row, kinds, kinds_of
from interlock.oracle.marks import Marks
from interlock.oracle.shown import clip, columns, shown, wrap

_FULL_ROWS = 8
"""Up to so many rows, each says its reasons; more are one line each."""


def single_rows(items: Sequence[Item]) -> list[Row]:
    """Return one row for each item."""
    return [Row(start=item.number - 1, end=item.number) for item in items]


def row_lines(
    items: Sequence[Item], rows: Sequence[Row], marks: Marks, width: int, *, room: int = 0
) -> list[str]:
    """Return the lines of the rows, safe to show.

    Takes: `items`, all of the review; `width`, the screen's columns; `room`, how many lines there are for rows that
    say their reasons, 0 for any number.
    """
    if len(rows) <= _FULL_ROWS:
        full = _lines(items, rows, marks, width, full=True)
        if not room or len(full) <= room or len(rows) == 1:
            return full
    return _lines(items, rows, marks, width, full=False)


def _lines(items: Sequence[Item], rows: Sequence[Row], marks: Marks, width: int, *, full: bool) -> list[str]:
    names = [_name(row) for row in rows]
    name_width = max(map(len, names), default=1)
    verb_width = max((len(_verb(items, row)) for row in rows), default=0)
    out: list[str] = []
    for row, name in zip(rows, names, strict=True):
        lead = f"{name:>{name_width}} {_box(marks, row)} {_verb(items, row):<{verb_width}} "
        single = row.end - row.start == 1
        room = width - len(lead)
        item = items[row.start]
        why = ", ".join(kinds_of(item)) if single else kinds(items[row.start : row.end])
        place = shown(item.effect.object if single else row.label)
        if not single:
            place = ("in " if row.direct else "below ") + place
        if full:
            pad = " " * len(lead)
            # Bounded, so that a long name cannot push the other rows off the screen.
            out.extend(wrap(lead + clip(place, 3 * room), width, indent=pad))
            for detail in reasons(item) if single else [why]:
                out.extend(wrap(pad + clip(detail, 3 * room), width, indent=pad + "  "))
        else:
            why = clip(shown(why), room // 2)
            place = clip(place, room - columns(why) - 2)
            gap = " " * max(room - columns(place) - columns(why), 2)
            out.append((lead + place + gap + why).rstrip())
    return out


def _name(row: Row) -> str:
    return str(row.end) if row.end - row.start == 1 else f"{row.start + 1}-{row.end}"


def _verb(items: Sequence[Item], row: Row) -> str:
    if row.end - row.start == 1:
        return action(items[row.start].effect)
    return f"{row.end - row.start:,} effects"


def _box(marks: Marks, row: Row) -> str:
    numbers = range(row.start + 1, row.end + 1)
    marked = sum(number in marks.marked for number in numbers)
    if not marked:
        return "[ ]"
    return "[x]" if sum(number in marks.whole for number in numbers) == row.end - row.start else "[-]"
