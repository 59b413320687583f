"""`interlock bench compare`: what changed between two results."""

from __future__ import annotations

from pathlib import Path

from interlock.bench.compare import as_json, compare, read_results, report
from interlock.cli.output import parser, print_json


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench compare --help`."""
    form = parser(
        "bench compare",
        "Say what changed between two results of `interlock bench`, per case and in total.",
        "interlock bench compare before/ after/",
        "0 the same; 1 they differ; 2 not a result.",
    )
    form.add_argument("before", metavar="A", type=Path, help="a result file, or a folder with results.json")
    form.add_argument("after", metavar="B", type=Path, help="the other one")
    form.add_argument("--json", action="store_true", help="print JSON, with every case")
    arguments = form.parse_args(words)
    found = compare(read_results(arguments.before), read_results(arguments.after))
    if arguments.json:
        print_json(as_json(found))
    else:
        print(report(found), end="")
    return 0 if found.same else 1
