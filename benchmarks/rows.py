"""The rows of the table and of build/bench.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a row should reach.

    Takes: `of`, `value` or `ratio`; `at_most`, else at least; `bound`, in the row's unit.
    """

    bound: float
    of: str = "value"
    at_most: bool = True

    def met(self, measured: float) -> bool:
        """Say whether a figure reaches the goal."""
        return measured <= self.bound if self.at_most else measured >= self.bound

    def text(self, unit: str) -> str:
        """Return the goal as the table shows it."""
        sign = "<=" if self.at_most else ">="
        return f"{sign} x{self.bound:g}" if self.of == "ratio" else f"{sign} {self.bound:,g} {unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure.

    Takes: `name`, group, measure and who ran it, parted by `/`; `value`, None if it could not be measured
    (the note says why); `baseline`, the same work done bare in the same run, None where there is no such
    thing; `note`, rounds, spread and where the time goes.
    """

    name: str
    value: float | None
    unit: str
    baseline: float | None = None
    goal: Goal | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Return how many times the baseline the value is."""
        if self.value is None or not self.baseline:
            return None
        return self.value / self.baseline

    @property
    def met(self) -> bool | None:
        """Say whether the goal is met; None without a goal or a figure."""
        measured = self.ratio if self.goal is not None and self.goal.of == "ratio" else self.value
        return None if self.goal is None or measured is None else self.goal.met(measured)

    def record(self) -> dict[str, object]:
        """Return the row as build/bench.json holds it."""
        return {
            "name": self.name,
            "value": _round(self.value),
            "unit": self.unit,
            "baseline": _round(self.baseline),
            "ratio": _round(self.ratio),
            "goal": self.goal.text(self.unit) if self.goal is not None else None,
            "met": self.met,
            "note": self.note,
        }


class NotRun(Exception):
    """A figure cannot be had on this machine. Takes: the reason, and what would mend it."""


def not_run(name: str, unit: str, reason: object) -> Row:
    """Return the row of a figure that could not be had."""
    return Row(name=name, value=None, unit=unit, note=f"not run: {reason}")


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _short(value: float | None) -> str:
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text, each note on a line of its own below its row."""
    heading = ("name", "value", "unit", "bare", "ratio", "goal", "met")
    cells = [
        (
            row.name,
            _short(row.value),
            row.unit,
            _short(row.baseline),
            f"x{row.ratio:.2f}" if row.ratio is not None else "-",
            row.goal.text(row.unit) if row.goal is not None else "-",
            {True: "yes", False: "NO", None: "-"}[row.met],
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(heading, *cells, strict=True)]
    lines = [_line(heading, widths), "  ".join("-" * width for width in widths)]
    for row, cell in zip(rows, cells, strict=True):
        lines.append(_line(cell, widths))
        lines.extend(f"    {part}" for part in row.note.split("\n") if part)
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    right = {1, 3, 4}
    parts = [
        cell.rjust(width) if index in right else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(parts).rstrip()
