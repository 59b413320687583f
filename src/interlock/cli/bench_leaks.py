"""`interlock bench leaks`: how many encoded secrets are held, and how many ordinary requests with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from interlock.bench.benign import Alarms
    from interlock.bench.leaks import Recall


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench leaks --help`."""
    form = parser(
        "bench leaks",
        "Send secrets of 5 kinds, encoded in 20 ways, by 6 carriers through the decision; a memo and a table as well.",
        "interlock bench leaks --pairs --seed 7 --benign src --benign tests",
        "0 all were held; 1 one passed, or more than 0.1 % of the ordinary requests were held.",
    )
    form.add_argument("--pairs", action="store_true", help="also every pair of encodings")
    form.add_argument("--seed", type=int, default=0, metavar="N", help="draw other secrets and other details")
    form.add_argument(
        "--benign",
        metavar="DIR",
        action="append",
        default=[],
        help="send every file of a folder as an ordinary upload, and its Git history (may be repeated)",
    )
    form.add_argument(
        "--most", type=int, default=0, metavar="N", help="so many requests for each DIR at most"
    )
    form.add_argument(
        "--every", type=int, default=1, metavar="N", help="take one of N files, and one of N commits"
    )
    form.add_argument("--summary", type=Path, metavar="FILE", help="write the figures there")
    form.add_argument("--json", action="store_true", help="print JSON")
    given = form.parse_args(words)
    from interlock.bench import leaks, leaks_page
    from interlock.bench.benign import alarms_in

    rows: dict[str, Sequence[Recall]] = {
        "alone": leaks.recall(seed=given.seed),
        "pieces": (leaks.in_pieces(given.seed),),
        "documents": leaks.of_documents(given.seed),
        "pairs": leaks.recall(pairs=True, seed=given.seed) if given.pairs else (),
    }
    benign = alarms_in(given.benign, seed=given.seed, at_most=given.most, every=max(given.every, 1))
    if given.json or given.summary is not None:
        made = leaks_page.document(rows, benign, given.seed, _command(given))
        if given.summary is not None:
            from interlock.cli.bench_agentdojo import write_summary

            write_summary(given.summary, made)
        if given.json:
            print_json(made)
    if not given.json:
        _print_table(rows, benign)
    passed = any(row.held < row.cases for of in rows.values() for row in of)
    many = sum(each.alarms for each in benign) > leaks_page.MOST_ALARMS * sum(
        each.requests for each in benign
    )
    return 1 if passed or many else 0


def _command(given: argparse.Namespace) -> str:
    words = ["interlock bench leaks"]
    words += ["--pairs"] if given.pairs else []
    words += [f"--{name} {value}" for name in ("seed", "most") if (value := getattr(given, name))]
    words += [f"--every {given.every}"] if given.every > 1 else []
    return " ".join([*words, *(f"--benign {place}" for place in given.benign)])


def _print_table(rows: Mapping[str, Sequence[Recall]], benign: Sequence[Alarms]) -> None:
    for of in rows.values():
        for row in of:
            print(f"{row.name:34} {row.held:6} of {row.cases:6}")
    for each in benign:
        print(f"{each.place}: {each.size_bytes / 1e6:.1f} MB")
        print(f"{'  false alarms':34} {each.alarms:6} of {each.requests:6}")
        print(f"{'  cannot be read through':34} {each.unread:6} of {each.requests:6}")
        for name in each.named:
            print(f"    {name}")
