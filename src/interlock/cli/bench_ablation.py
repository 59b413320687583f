"""`interlock bench ablation`: what each check, each correction and each member of a panel is worth, simulated."""

from __future__ import annotations

from pathlib import Path

from interlock.cli.output import parser, print_json


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench ablation --help`."""
    form = parser(
        "bench ablation",
        "Measure simulated oracles on AgentDojo's tasks and attacks: a blind visor without each of its checks, "
        "corrections, panels.",
        "interlock bench ablation --summary benchmarks/results/oracles.json",
        "0; 2 a wrong setting, or AgentDojo is not installed.",
    )
    form.add_argument("--suite", action="append", choices=("banking", "slack", "travel", "workspace"))
    form.add_argument("--seed", type=int, default=7, metavar="N", help="of the errors (default: 7)")
    form.add_argument("--jobs", type=int, default=1, metavar="N", help="how many processes")
    form.add_argument("--ray", metavar="ADDRESS", help="a Ray cluster in place of processes")
    form.add_argument("--summary", type=Path, metavar="FILE", help="write the figures there")
    form.add_argument("--json", action="store_true", help="print JSON")
    given = form.parse_args(words)
    from interlock.bench import ablation, ablation_page, dojo, dojo_suites
    from interlock.bench.dojo_runs import How
    from interlock.cli.bench_agentdojo import tell_progress, write_summary

    chosen = sorted(set(given.suite or dojo_suites.SUITES))
    how = How(jobs=given.jobs, ray=given.ray, told=tell_progress)
    found = ablation.measure(dojo.cases(chosen), given.seed, how)
    if given.summary is not None:
        write_summary(given.summary, found)
    if given.json:
        print_json(found)
    elif given.summary is None:
        print(ablation_page.page_of(found), end="")
    return 0
