"""What one call of the benchmarks was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Takes: `quick`, few rounds, to see that it works; `full`, the long ones too; `parent`, where to lie."""

    quick: bool
    full: bool
    parent: str

    def rounds(self, usual: int, quick: int = 1) -> int:
        """Return how many rounds to run."""
        return quick if self.quick else usual


Benchmark = Callable[[Plan], list[Row]]
