"""Results as Markdown tables, for people. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_COLUMNS = (
    ("cases", "cases", False),
    ("BU", "benign_utility", True),
    ("BU, recipient checked", "benign_utility_checked", True),
    ("UA", "utility_under_attack", True),
    ("ASR", "attack_success", True),
    ("of attacks", "attacks", False),
    ("text only", "text_only_success", True),
    ("NRP", "nrp", True),
    ("effects vouched", "effects_vouched", True),
    ("calls vouched", "calls_vouched", True),
    ("questions a task", "questions_per_task", None),
)
MAX_KINDS = 20
_NUMBER = re.compile(r"-|\d+(\.\d+)?")


def figures(totals: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of some totals by group. Shares are in per cent."""
    rows = [
        [name, *(shown(group.get(key), kind) for _, key, kind in _COLUMNS)] for name, group in totals.items()
    ]
    return markdown(["", *(title for title, _, _ in _COLUMNS)], rows)


def kinds(title: str, found: Sequence[Mapping[str, Any]], limit: int = MAX_KINDS) -> str:
    """Return what remains by kind, the most frequent first, each with an example."""
    if not found:
        return f"{title}: none\n"
    rows = [[str(each["count"]), str(each["kind"]), str(each["examples"][0])] for each in found[:limit]]
    more = f"and {len(found) - limit} kinds more\n" if len(found) > limit else ""
    return f"{title}: {sum(each['count'] for each in found)}\n\n" + markdown(["", "kind", "as"], rows) + more


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all but the first column stand to the right where they are numbers."""
    right = [bool(rows) and all(_NUMBER.fullmatch(row[at]) for row in rows) for at in range(len(head))]
    lines = [
        "| " + " | ".join(head) + " |",
        "| " + " | ".join("---:" if each else "---" for each in right) + " |",
    ]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def shown(value: float | int | None, share: bool | None) -> str:
    """Return a figure as a table shows it. Takes: `share`, whether it is one; None for a mean."""
    if value is None:
        return "-"
    if share is None:
        return f"{value:.2f}"
    return f"{100 * value:.1f}" if share else str(value)
