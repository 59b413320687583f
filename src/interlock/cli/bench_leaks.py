"""`interlock bench leaks`: how many encoded secrets are held, and how many ordinary requests with them."""

from __future__ import annotations

from interlock.cli.output import parser, print_json

MOST_ALARMS = 0.001
"""Of ordinary requests."""


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench leaks --help`."""
    form = parser(
        "bench leaks",
        "Send secrets of 5 kinds, encoded in 20 ways, by 6 carriers through the decision.",
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
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.bench import leaks

    rows = [*leaks.recall(seed=arguments.seed), leaks.in_pieces(arguments.seed)]
    if arguments.pairs:
        rows += leaks.recall(pairs=True, seed=arguments.seed)
    benign = None
    if arguments.benign:
        from interlock.bench.benign import alarms_in

        benign = alarms_in(arguments.benign, seed=arguments.seed, at_most=arguments.most)
    if arguments.json:
        made: dict[str, object] = {
            "seed": arguments.seed,
            "recall": {row.name: [row.held, row.cases] for row in rows},
        }
        if benign is not None:
            made["benign"] = {
                "requests": benign.requests,
                "bytes": benign.size_bytes,
                "alarms": benign.alarms,
                "unread": benign.unread,
                "named": list(benign.named),
            }
        print_json(made)
    else:
        for row in rows:
            print(f"{row.name:34} {row.held:6} of {row.cases:6}")
        if benign is not None:
            print(f"{'ordinary: false alarms':34} {benign.alarms:6} of {benign.requests:6}")
            print(f"{'ordinary: cannot be read through':34} {benign.unread:6} of {benign.requests:6}")
            for name in benign.named:
                print(f"  {name}")
    passed = any(row.held < row.cases for row in rows)
    many = benign is not None and benign.alarms > MOST_ALARMS * benign.requests
    return 1 if passed or many else 0
