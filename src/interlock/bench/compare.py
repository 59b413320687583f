"""Two results against each other: what changed, in total and per case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interlock.model.errors import InputError
from interlock.model.records import dataclass

RESULTS = "results.json"
SCHEMA = "interlock-bench/1"
MAX_BYTES = 200_000_000
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A value that differs. Takes: `where`, the case or the group of totals; `before` and `after`, None where there is
    none on that side."""

    where: str
    name: str
    before: object
    after: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What two results differ in.

    Takes: `settings`, `totals` and `cases`, what changed; `only_before` and `only_after`, cases on one side alone.
    """

    settings: tuple[Change, ...]
    totals: tuple[Change, ...]
    cases: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Say whether every case and total is the same."""
        return not (self.totals or self.cases or self.only_before or self.only_after)


def read_results(path: Path) -> Document:
    """Read a result file, or that of a result folder. Raises: InputError."""
    place = path / RESULTS if path.is_dir() else path
    try:
        if place.stat().st_size > MAX_BYTES:
            raise InputError(f"`{place}` is too large for a result", hint=f"give a folder with {RESULTS}")
        found = json.loads(place.read_text(encoding="utf-8"))
    except OSError as failure:
        raise InputError(
            f"`{place}` cannot be read ({type(failure).__name__})",
            hint=f"give a result file, or a folder with {RESULTS}",
        ) from None
    except (ValueError, RecursionError):
        raise InputError(f"`{place}` is no JSON", hint="give a result of `interlock bench`") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"`{place}` is no result of this version", hint=f"its `schema` must be {SCHEMA}")
    cases, totals = found.get("cases", []), found.get("totals", {})
    if (
        not isinstance(cases, list)
        or not all(isinstance(case, dict) and isinstance(case.get("id"), str) for case in cases)
        or not isinstance(totals, dict)
        or not all(isinstance(group, dict) for group in totals.values())
    ):
        raise InputError(f"`{place}` is no result of `interlock bench`", hint="write it anew")
    return found


def compare(before: Document, after: Document) -> Comparison:
    """Return what changed between two results."""
    old = {case["id"]: case for case in before.get("cases", [])}
    new = {case["id"]: case for case in after.get("cases", [])}
    return Comparison(
        settings=_changes("settings", before.get("settings", {}), after.get("settings", {})),
        totals=_nested(before.get("totals", {}), after.get("totals", {})),
        cases=_nested(
            {name: old[name] for name in old if name in new}, {name: new[name] for name in new if name in old}
        ),
        only_before=tuple(sorted(old.keys() - new.keys())),
        only_after=tuple(sorted(new.keys() - old.keys())),
    )


def _nested(before: Mapping[str, Document], after: Mapping[str, Document]) -> tuple[Change, ...]:
    return tuple(
        change
        for name in sorted(before.keys() | after.keys())
        for change in _changes(name, before.get(name, {}), after.get(name, {}))
    )


def _changes(where: str, before: Document, after: Document) -> tuple[Change, ...]:
    return tuple(
        Change(where=where, name=name, before=before.get(name), after=after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def report(found: Comparison, *, limit: int = 50) -> str:
    """Return the comparison as text for people; at most `limit` cases are listed."""
    if found.same and not found.settings:
        return "the two results are the same\n"
    lines: list[str] = []
    for title, changes in (("settings", found.settings), ("totals", found.totals)):
        if changes:
            lines.append(f"{title}:")
            lines += [f"  {_line(change)}" for change in changes]
    if found.cases:
        count = len({change.where for change in found.cases})
        lines.append(f"{count} {'case' if count == 1 else 'cases'} changed:")
        lines += [f"  {_line(change)}" for change in found.cases[:limit]]
        if len(found.cases) > limit:
            lines.append(f"  … and {len(found.cases) - limit} more values (--json for all)")
    for title, names in (("only before", found.only_before), ("only after", found.only_after)):
        if names:
            lines.append(f"{title}: {len(names)}, as {names[0]}")
    return "\n".join(lines) + "\n"


def _line(change: Change) -> str:
    before, after = change.before, change.after
    moved = ""
    if _is_number(before) and _is_number(after):
        moved = f" ({float(after) - float(before):+.4g})"  # type: ignore[arg-type]
    return f"{change.where} {change.name}: {_shown(before)} -> {_shown(after)}{moved}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=True)


def as_json(found: Comparison) -> dict[str, object]:
    """Return the comparison as JSON values."""

    def plain(changes: tuple[Change, ...]) -> list[dict[str, object]]:
        return [
            {"where": each.where, "name": each.name, "before": each.before, "after": each.after}
            for each in changes
        ]

    return {
        "same": found.same,
        "settings": plain(found.settings),
        "totals": plain(found.totals),
        "cases": plain(found.cases),
        "only_before": list(found.only_before),
        "only_after": list(found.only_after),
    }
