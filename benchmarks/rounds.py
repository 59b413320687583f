"""Rounds: two sides measured in turn, medians, and how far the rounds lie apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import TypeVar

T = TypeVar("T")

NOISY = 0.25
"""A spread above this share of the median is said to be noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What rounds came to. Takes: `spread`, the middle half's width as a share of the median."""

    median: float
    spread: float
    rounds: int


def figure(values: Sequence[float]) -> Figure:
    """Sum rounds up."""
    middle = median(values)
    spread = 0.0
    if len(values) > 1 and middle:
        first, _, third = quantiles(values, n=4, method="inclusive")
        spread = (third - first) / middle
    return Figure(median=middle, spread=spread, rounds=len(values))


def said(*figures: Figure) -> str:
    """Return the note on rounds and spread, and whether the machine was too busy to trust them."""
    if figures[0].rounds == 1:
        return "1 round"
    spread = max(one.spread for one in figures)
    text = f"{figures[0].rounds} rounds, spread {spread:.0%}"
    return f"{text}: noisy" if spread > NOISY else text


def interleaved(*sides: Callable[[], T], rounds: int, warm: int = 1) -> list[list[T]]:
    """Run the sides in turn, A B A B; the first `warm` rounds are not counted."""
    for _ in range(warm):
        for side in sides:
            side()
    results: list[list[T]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, result in zip(sides, results, strict=True):
            result.append(side())
    return results


def load_now() -> float:
    """Return the machine's load average of the last minute."""
    return os.getloadavg()[0]
