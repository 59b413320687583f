"""`interlock bench knox`: each guard of a plan on KNOX's pool of flows, over its thirteen workloads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Sequence

    from interlock.bench.knox.flows import Kind
    from interlock.bench.knox.playing import Run
    from interlock.bench.knox.workloads import Workload

_SHOWN = 8


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench knox --help`."""
    from interlock.bench.knox.flows import Kind
    from interlock.bench.knox.workloads import WORKLOADS

    form = parser(
        "bench knox",
        "Play flows over InjecAgent's toolkits, half of which a guard must block, as runs with a signed plan: 400 a"
        " guard (150 for regulation), in bundles of one to six tasks over one to six agents. The flows' labels stand in"
        " for a judge of regulation.",
        "interlock bench knox --guards --seed 1",
        "0 each flow was decided as it must be; 1 one was not; 2 input.",
    )
    form.add_argument(
        "--guards", action="store_true", help="measure whether flows are blocked and allowed (the default)"
    )
    form.add_argument(
        "--guard",
        action="append",
        choices=[one.value for one in Kind],
        help="this guard alone; may be repeated (default: all)",
    )
    form.add_argument(
        "--workload",
        action="append",
        metavar="NAME",
        help=f"this workload alone, as in {WORKLOADS[1].name!r}; may be repeated (default: all)",
    )
    form.add_argument("--seed", type=int, default=0, metavar="N", help="draw other flows (default: 0)")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    named = {one.name: one for one in WORKLOADS}
    unknown = [one for one in arguments.workload or () if one not in named]
    if unknown:
        raise InputError(f"`{unknown[0]}` is no workload", hint=f"they are {', '.join(named)}")
    kinds = [Kind(one) for one in arguments.guard or [one.value for one in Kind]]
    workloads = [named[one] for one in arguments.workload or named]
    rows, wrong = _measured(kinds, workloads, arguments.seed)
    if arguments.json:
        print_json(
            {
                "seed": arguments.seed,
                "cells": [
                    {"guard": kind.value, "workload": workload.name, **counts}
                    for kind, workload, counts in rows
                ],
                "wrong": wrong,
            }
        )
    else:
        _print(rows, wrong, arguments.seed)
    return 1 if wrong else 0


def _measured(
    kinds: Sequence[Kind], workloads: Sequence[Workload], seed: int
) -> tuple[list[tuple[Kind, Workload, Counter[str]]], list[str]]:
    from interlock.bench.knox.flows import Kind, pool
    from interlock.bench.knox.playing import cell, play
    from interlock.bench.knox.regulated import regulated_pool
    from interlock.bench.knox.workloads import bundles

    rows = []
    wrong: list[str] = []
    for kind in kinds:
        flows, terms = regulated_pool(seed) if kind is Kind.REGULATION else (pool(kind, seed), {})
        for workload in workloads:
            made = bundles(flows, workload)
            runs = []
            for number, bundle in enumerate(made, 1):
                runs.append(play(bundle, kind, seed, terms))
                if sys.stderr.isatty():
                    line = f"\r{kind.value}, {workload.name}: {number} of {len(made)} runs   "
                    print(line, end="", file=sys.stderr, flush=True)
            rows.append((kind, workload, cell(runs)))
            wrong += _wrong(kind, workload, runs)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return rows, wrong


def _wrong(kind: Kind, workload: Workload, runs: Iterable[Run]) -> list[str]:
    found = []
    for run in runs:
        where = f"{kind.value}, {workload.name}"
        if run.evidence != "complete":
            found.append(f"{where}: a run's evidence is {run.evidence}")
        for one in run.flows:
            why = one.wrong or ("another tuple was derived" if one.told is False else "")
            if why:
                found.append(f"{where}, flow {one.flow.number}: {why}")
    return found


def _print(rows: Sequence[tuple[Kind, Workload, Counter[str]]], wrong: Sequence[str], seed: int) -> None:
    print(
        f"{'guard':<11} {'workload':<11} {'runs':>5} {'flows':>6} {'blocked':>9} {'allowed':>9} {'tuples':>9}"
    )
    for kind, workload, counts in rows:
        parts = [
            f"{counts[f'{key} right']}/{counts[key]}" if counts[key] else "-"
            for key in ("blocked", "allowed", "tuples")
        ]
        flows = counts["blocked"] + counts["allowed"]
        print(
            f"{kind.value:<11} {workload.name:<11} {counts['runs']:>5} {flows:>6} "
            f"{parts[0]:>9} {parts[1]:>9} {parts[2]:>9}"
        )
    total = sum(counts["blocked"] + counts["allowed"] for _kind, _workload, counts in rows)
    right = sum(counts["blocked right"] + counts["allowed right"] for _kind, _workload, counts in rows)
    sealed = sum(counts["evidence"] for _kind, _workload, counts in rows)
    runs = sum(counts["runs"] for _kind, _workload, counts in rows)
    print(
        f"\n{right} of {total} flows as they must be ({100 * right / total:.1f} %), seed {seed}; the evidence of "
        f"{sealed} of {runs} runs is complete, each verdict recomputed"
    )
    for line in wrong[:_SHOWN]:
        print(f"  {safe(line)}")
    if len(wrong) > _SHOWN:
        print(f"  … {len(wrong) - _SHOWN} more")
