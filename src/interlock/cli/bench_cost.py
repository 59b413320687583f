"""`interlock bench cost`: what a seeing oracle costs beside the agent, in calls and tokens."""

from __future__ import annotations

from pathlib import Path

from interlock.cli.output import parser, print_json


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench cost --help`."""
    form = parser(
        "bench cost",
        "Count what a seeing oracle would be sent on AgentDojo and on recorded runs, beside what the agent is sent.",
        "interlock bench cost --runs benchmarks/agentdyn/runs --catalogue benchmarks/agentdyn/catalogue.json",
        "0; 2 a wrong setting, no such runs, or AgentDojo is not installed.",
    )
    form.add_argument(
        "--runs", required=True, type=Path, metavar="FILE", help="recorded runs, or their folder"
    )
    form.add_argument(
        "--catalogue", required=True, type=Path, metavar="FILE", help="the suite's catalogue.json"
    )
    form.add_argument("--suite", action="append", choices=("banking", "slack", "travel", "workspace"))
    form.add_argument(
        "--evidence", type=int, metavar="BYTES", help="how much a prompt may quote (default: the product's)"
    )
    form.add_argument("--jobs", type=int, default=1, metavar="N", help="how many processes")
    form.add_argument("--ray", metavar="ADDRESS", help="a Ray cluster in place of processes")
    form.add_argument("--summary", type=Path, metavar="FILE", help="write the figures there")
    form.add_argument("--json", action="store_true", help="print JSON")
    given = form.parse_args(words)
    from interlock.bench import oracle_cost, oracle_cost_page
    from interlock.bench.dojo_runs import How
    from interlock.bench.dojo_suites import SUITES
    from interlock.cli.bench_agentdojo import tell_progress, write_summary
    from interlock.oracle.seeing.seeing import EVIDENCE_BYTES

    how = How(jobs=given.jobs, ray=given.ray, told=tell_progress)
    found = oracle_cost.measure(
        how,
        given.runs,
        given.catalogue,
        chosen=sorted(set(given.suite or SUITES)),
        evidence_bytes=given.evidence if given.evidence is not None else EVIDENCE_BYTES,
    )
    if given.summary is not None:
        write_summary(given.summary, found)
    if given.json:
        print_json(found)
    elif given.summary is None:
        print(oracle_cost_page.page_of(found), end="")
    return 0
