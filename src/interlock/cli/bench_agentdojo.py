"""`interlock bench agentdojo`: measure a policy on AgentDojo's tasks and attacks, with a played agent."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from functools import partial

from interlock.cli.output import parser, print_json


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench agentdojo --help`."""
    form = parser(
        "bench agentdojo",
        "Measure a policy on AgentDojo's tasks and attacks, with an agent that is played without a model.",
        "interlock bench agentdojo --agent obedient --oracle strict --json",
        "0; 2 a wrong setting, or AgentDojo is not installed.",
    )
    form.add_argument("--suite", action="append", choices=("banking", "slack", "travel", "workspace"))
    form.add_argument("--agent", default="obedient", choices=("faithful", "obedient", "hijack", "stubborn"))
    form.add_argument("--timing", default="first", choices=("first", "late"))
    form.add_argument("--oracle", default="strict", help="strict, ideal, none or noisy:E1,E2,SEED")
    form.add_argument("--policy", default="full", choices=("none", "task", "system", "directory", "full"))
    form.add_argument("--only", metavar="CASE", help="one case, as --list names it")
    form.add_argument("--list", action="store_true", help="name the cases and stop")
    form.add_argument("--jobs", type=int, default=1, help="how many processes")
    form.add_argument("--json", action="store_true", help="print JSON")
    given = form.parse_args(words)
    from interlock.bench import dojo, dojo_suites, metrics
    from interlock.bench.agents import Agent, Timing
    from interlock.bench.dojo_roles import Level
    from interlock.bench.spread import spread
    from interlock.model.errors import InputError

    cases = dojo.cases(given.suite or dojo_suites.SUITES, attacked=given.agent != "faithful")
    cases = tuple(each for each in cases if given.only in (None, each.id))
    if not cases:
        raise InputError(f"no case `{given.only}`", hint="see interlock bench agentdojo --list")
    if given.list:
        print("\n".join(each.id for each in cases))
        return 0
    settings = dojo.Settings(
        agent=Agent(given.agent),
        timing=Timing(given.timing),
        oracle=given.oracle,
        level=Level(given.policy),
    )
    dojo.answers(given.oracle)
    results = spread(partial(dojo.run_case, settings=settings), cases, jobs=given.jobs, told=tell_progress)
    figures = {name: asdict(found) for name, found in metrics.per_suite(results).items()}
    if given.json:
        print_json(
            {
                "schema": "interlock-bench/1",
                "bench": "agentdojo",
                "settings": {key: getattr(given, key) for key in ("agent", "timing", "oracle", "policy")},
                "cases": [dojo.as_json(each) for each in results],
                "totals": figures,
                "slips": metrics.slips(results),
                "false_deferrals": metrics.false_deferrals(results),
            }
        )
    else:
        print(json.dumps(figures, indent=2))
    return 0


def tell_progress(done: int, of: int) -> None:
    """Tell how far a bench is, on stderr."""
    if sys.stderr.isatty() or done == of:
        print(f"\r{done}/{of} cases", end="\n" if done == of else "", file=sys.stderr)
