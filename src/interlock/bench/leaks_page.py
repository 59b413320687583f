"""The page `docs/results/leaks.md`, and the result file that it is made from. Pure but for reading it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlock.bench.compare import SCHEMA, Document
from interlock.bench.single_page import single_page
from interlock.bench.tables import markdown

if TYPE_CHECKING:
    from interlock.bench.benign import Alarms
    from interlock.bench.leaks import Recall

RESULT = "leaks.json"
PAGE = "leaks.md"
MOST_ALARMS = 0.001
"""Of ordinary requests."""


def document(
    rows: Mapping[str, Sequence[Recall]], benign: Sequence[Alarms], seed: int, command: str
) -> dict[str, Any]:
    """Return the result document.

    Takes: `rows` by what they are of: `alone`, `pieces`, `documents`, `pairs`.
    """
    return {
        "schema": SCHEMA,
        "command": command,
        "seed": seed,
        "recall": {kind: {row.name: [row.held, row.cases] for row in of} for kind, of in rows.items()},
        "benign": [
            {
                "place": os.path.basename(each.place.rstrip("/")),
                "requests": each.requests,
                "bytes": each.size_bytes,
                "alarms": each.alarms,
                "unread": each.unread,
                "unread_kinds": [list(kind) for kind in each.unread_kinds],
                "named": [os.path.relpath(name, each.place) for name in each.named],
            }
            for each in benign
        ],
    }


def leaks_page(folder: Path) -> dict[str, str]:
    """Return the page by its file name. Raises: InputError where the result file is missing or is none."""
    return {PAGE: single_page(folder / RESULT, _page, written_by="`scripts/measure_leaks`")}


def _page(found: Document) -> Iterator[str]:
    recall, benign = found["recall"], found["benign"]
    yield "# Sensitive data that leaves, and ordinary data that is taken for it\n"
    yield (
        "Made by `make results` from `benchmarks/results/leaks.json`; do not edit. `scripts/measure_leaks` measures it "
        "anew (`make results MEASURE=1` does not: the ordinary requests are fetched first, and all is looked "
        f"through): `{found['command']}`. What is counted: [bench.md](../bench.md#leaks).\n"
    )
    yield "## Ordinary requests\n"
    requests, alarms = sum(each["requests"] for each in benign), sum(each["alarms"] for each in benign)
    yield (
        "Five secrets, a memo and a table of numbers were read before; none of them is in these requests. Held though "
        f"all of them was read: {alarms} of {requests:,} ({_percent(alarms, requests)} %; wanted: at most "
        f"{100 * MOST_ALARMS} %).\n"
    )
    yield _ordinary(benign)
    yield (
        "What cannot be read through (a file of a format that is not known, more text than is recorded of one request) "
        "counts as whatever was read, so it is asked about: that is no mistake, and it is counted apart.\n"
    )
    yield "## Secrets\n"
    yield "Of 5 kinds, in the body, the query, a header, the path, the host's name and a pushed file.\n"
    yield markdown(
        ["transform", "held", "of"],
        [[name, str(row[0]), str(row[1])] for name, row in recall["alone"].items()],
    )
    yield "In pieces, and parts of the memo and the table through each of the transforms:\n"
    others = {**recall["pieces"], **recall["documents"]}
    yield markdown(["what", "held", "of"], [[name, str(row[0]), str(row[1])] for name, row in others.items()])
    yield "## Pairs of transforms\n"
    yield (
        "Each row: the transform that comes first, then each of the others, but for those that lose what came first.\n"
    )
    yield _pairs(recall["pairs"])


def _ordinary(benign: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            each["place"],
            str(each["requests"]),
            f"{each['bytes'] / 1e6:.1f}",
            str(each["alarms"]),
            str(each["unread"]),
            ", ".join(f"{name} {count}" for name, count in each["unread_kinds"][:6]),
        ]
        for each in benign
    ]
    return markdown(["corpus", "requests", "MB", "false alarms", "not readable", "of these"], rows)


def _pairs(pairs: Mapping[str, Sequence[int]]) -> str:
    rows: dict[str, list[int]] = {}
    missed: dict[str, list[str]] = {}
    for name, (held, cases) in pairs.items():
        first, _, then = name.partition(" + ")
        row = rows.setdefault(first, [0, 0, 0])
        rows[first] = [row[0] + 1, row[1] + held, row[2] + cases]
        if held < cases:
            missed.setdefault(first, []).append(then)
    return markdown(
        ["first", "pairs", "held", "of", "missed with"],
        [[name, *map(str, row), ", ".join(missed.get(name, ["none"]))] for name, row in rows.items()],
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3f}" if whole else "-"
