"""The stop guard, plainly: from all that happened, which call comes after a stop, and which stops were reached.

Nothing is kept between events: each question is answered from the whole story before it.
Source: docs/stop.md.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

Story = Sequence[Mapping[str, Any]]
"""What happened: `{"turn": branch, "prompt": n, "completion": n, "model": name}`, `{"failed": branch}`,
`{"stop": branch}` (from outside, `""` for all)."""


def reached(story: Story, limits: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the stops that were reached: condition, and the branch that it ends, `*` for the whole run."""
    found: set[tuple[str, str]] = set()
    for end in range(1, len(story) + 1):
        now = [one for one in _newly(story[:end], limits) if not _held(found, one)]
        found |= set(now)
    return found


def is_stopped(story: Story, limits: Mapping[str, Any], branch: str) -> bool:
    """Return whether a call of a branch comes after a stop."""
    return any(where in ("*", branch) for _condition, where in reached(story, limits))


def _held(found: set[tuple[str, str]], one: tuple[str, str]) -> bool:
    return one in found or (one[0], "*") in found


def _newly(story: Story, limits: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is reached by the last thing that happened."""
    last = story[-1]
    if "stop" in last:
        return [("external", last["stop"] or "*")]
    if "failed" in last:
        count = sum(1 for one in story if one.get("failed") == last["failed"])
        most = limits.get("failures")
        return [("failures", last["failed"])] if most and count >= most else []
    found = []
    turns = sum(1 for one in story if one.get("turn") == last["turn"])
    if limits.get("turns") and turns > limits["turns"]:
        found.append(("turns", last["turn"]))
    silent = last["prompt"] + last["completion"] == 0
    spent = [one for one in story if "turn" in one]
    if limits.get("tokens") and (
        silent or sum(one["prompt"] + one["completion"] for one in spent) >= limits["tokens"]
    ):
        found.append(("tokens", "*"))
    if limits.get("money"):
        price = _price(last["model"], limits["prices"])
        total = sum(
            (
                Fraction(one["prompt"] * paid[0] + one["completion"] * paid[1], 1_000_000)
                for one in spent
                if (paid := _price(one["model"], limits["prices"])) is not None
            ),
            Fraction(0),
        )
        if silent or price is None or total >= limits["money"]:
            found.append(("money", "*"))
    return found


def _price(model: str, prices: Sequence[tuple[str, int, int]]) -> tuple[int, int] | None:
    return next(((p, c) for name, p, c in prices if fnmatch.fnmatchcase(model, name)), None)
