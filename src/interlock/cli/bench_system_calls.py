"""`interlock bench system-calls`: what a tool may try of the kernel, by the monitor alone and with the kernel bound."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.bench.system_calls.running import Result


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench system-calls --help`."""
    form = parser(
        "bench system-calls",
        "Make fifty attempts twice, as a tool call and from inside of a tool: how many are prevented by the monitor"
        " alone, and how many where the kernel is bound to the plan too. Attempts are made as an ordinary user.",
        "interlock bench system-calls --each",
        "0 with the kernel bound none came about; 1 one did; 3 this kernel cannot be bound.",
    )
    form.add_argument("--each", action="store_true", help="print each attempt")
    form.add_argument("--json", action="store_true", help="print JSON, with each attempt")
    arguments = form.parse_args(words)
    from interlock.bench.system_calls.cases import ATTEMPTS
    from interlock.bench.system_calls.running import measure

    results: list[Result] = []
    for one in measure(ATTEMPTS):
        results.append(one)
        if sys.stderr.isatty():
            print(f"\r{len(results)} of {len(ATTEMPTS)} attempts", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if arguments.json:
        print_json({"attempts": [_row(one) for one in results], "prevented": _prevented(results)})
    else:
        _print(results, each=arguments.each)
    return 0 if _prevented(results)["with_kernel"] == 2 * len(results) else 1


def _row(one: Result) -> dict[str, object]:
    return {
        "name": one.attempt.name,
        "family": one.attempt.family,
        "calls": list(one.attempt.calls),
        "tool_call_refused_by": one.guard,
        "came_about_alone": one.alone,
        "came_about_planned": one.planned,
        "denied": list(one.denied),
    }


def _prevented(results: Sequence[Result]) -> dict[str, int]:
    mediated = sum(bool(one.guard) for one in results)
    alone = sum(not one.alone for one in results)
    planned = sum(not one.planned for one in results)
    return {
        "mediated": mediated,
        "unmediated_alone": alone,
        "unmediated_with_kernel": planned,
        "monitor_alone": mediated + alone,
        "with_kernel": mediated + planned,
    }


def _print(results: Sequence[Result], *, each: bool) -> None:
    if each:
        for one in results:
            came = "came about" if one.alone else "did not come about"
            then = (
                "came about"
                if one.planned
                else "prevented" + (f" ({', '.join(one.denied)})" * bool(one.denied))
            )
            print(
                f"{one.attempt.family:<11} {one.attempt.says}: tool call refused by {one.guard or 'nobody'}; "
                f"inside, alone: {came}; planned: {then}"
            )
        print()
    print(f"{'prevented':<11} {'attempts':>8} {'tool call':>10} {'inside, alone':>14} {'inside, kernel':>15}")
    for family in dict.fromkeys(one.attempt.family for one in results):
        rows = [one for one in results if one.attempt.family == family]
        found = _prevented(rows)
        print(
            f"{family:<11} {len(rows):>8} {found['mediated']:>10} {found['unmediated_alone']:>14} "
            f"{found['unmediated_with_kernel']:>15}"
        )
    found, count = _prevented(results), len(results)
    print(
        f"\nof {2 * count} attempts: {found['monitor_alone']} prevented by the monitor alone "
        f"({found['mediated']} of {count} as tool calls, {found['unmediated_alone']} of {count} from inside); "
        f"{found['with_kernel']} with the kernel bound to the plan"
    )
