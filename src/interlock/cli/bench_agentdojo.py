"""`interlock bench agentdojo`: measure a policy on AgentDojo's tasks and attacks, with a played agent."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlock.cli.output import parser, print_json

if TYPE_CHECKING:
    from interlock.bench.cases import Case
    from interlock.bench.dojo import Settings
    from interlock.bench.dojo_runs import How

POLICIES = ("none", "deny", "task", "system", "directory", "strings", "full")
AGENTS = ("faithful", "obedient", "hijack", "stubborn", "model")


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench agentdojo --help`."""
    given = _form().parse_args(words)
    from interlock.bench import dojo, dojo_plans, dojo_runs, dojo_suites
    from interlock.bench.agents import Agent
    from interlock.bench.dojo_roles import Level
    from interlock.model.errors import InputError

    chosen = sorted(set(given.suite or dojo_suites.SUITES))
    cases = dojo.cases(chosen, attacked=given.agent != "faithful", timings=dojo.TIMINGS[_timing(given)])
    cases = tuple(each for each in cases if given.only in (None, each.id))
    if not cases:
        raise InputError(f"no case `{given.only}`", hint="see interlock bench agentdojo --list")
    if given.list:
        print("\n".join(each.id for each in cases))
        return 0
    dojo.answers(given.oracle)
    if given.oracle == dojo.HUMAN and (given.jobs > 1 or given.ray or given.grid or given.sweep is not None):
        raise InputError(
            "one person answers one question at a time", hint="leave --jobs, --ray, --grid and --sweep out"
        )
    brought = {}
    if given.injections is not None:
        from interlock.bench.given_injections import read_injections

        places = {name: dojo_suites.suites()[name].get_injection_vector_defaults() for name in chosen}
        brought = read_injections(given.injections, places)
        cases = tuple(each for each in cases if not each.injection or each.key in brought)
    if given.plan and (given.grid or given.sweep is not None or given.agent == "model"):
        raise InputError(
            "plans are of played agents under one policy", hint="leave --grid, --sweep and --agent model out"
        )
    dojo_plans.read_planner(given.plan)
    settings = dojo_runs.with_roles(
        dojo.Settings(
            agent=Agent(given.agent),
            oracle=given.oracle,
            level=Level(given.policy),
            injections=brought,
            plan=given.plan,
        ),
        chosen,
        given.roles,
    )
    how = dojo_runs.How(jobs=given.jobs, ray=given.ray, out=given.out, told=tell_progress)
    found = _measured(given, cases, settings, how)
    if given.summary is not None:
        write_summary(given.summary, found)
    if given.json:
        print_json(found)
    elif given.summary is None:
        _print_tables(found)
    return 0


def _measured(
    given: argparse.Namespace, cases: Sequence[Case], settings: Settings, how: How
) -> dict[str, Any]:
    """Run what was asked for. Returns: its result document."""
    from interlock.bench import dojo_runs, grid, sweeping
    from interlock.model.errors import InputError

    if (given.grid or given.sweep is not None) and given.agent == "model":
        raise InputError("a model is not played", hint="leave --grid and --sweep out")
    if given.grid and given.injections is not None:
        raise InputError("the grid is of the suite's own attack", hint="leave --grid or --injections out")
    if given.grid:
        return grid.run_grid(cases, settings, how)
    head = dojo_runs.header(settings, _timing(given), sorted({case.suite for case in cases}))
    if given.injections is not None:
        head["command"] += f" --injections {given.injections}"
    if given.sweep is not None:
        points = sweeping.sweep_played(cases, settings, how, seed=given.sweep)
        return sweeping.document(head, points, given.sweep)
    work = None
    if given.agent == "model":
        from interlock.bench.dojo_model import Asking, Configured, model_work

        asking: Asking | Configured = Configured(model=given.model)
        if given.model_url or given.model_key:
            asking = Asking(url=given.model_url, model=given.model, key_variable=given.model_key)
        work = model_work(settings, asking)
        cases = [replace(case, timing="") for case in cases]
        head["settings"] |= {"timing": "", "model": asking.model}
        head["command"] = head["command"].replace("--timing first", f"--model {asking.model}")
    return dojo_runs.document(dojo_runs.run(cases, settings, head, how, work), head)


def _timing(given: argparse.Namespace) -> str:
    """Return when the agent obeys; the grid adds both itself, and a model says for itself when."""
    return "first" if given.grid or given.agent == "model" else str(given.timing)


def _form() -> argparse.ArgumentParser:
    form = parser(
        "bench agentdojo",
        "Measure a policy on AgentDojo's tasks and attacks, with an agent that is played without a model.",
        "interlock bench agentdojo --agent obedient --oracle strict --out results",
        "0; 2 a wrong setting, or AgentDojo is not installed; nobody at the terminal.",
    )
    form.add_argument("--suite", action="append", choices=("banking", "slack", "travel", "workspace"))
    form.add_argument("--agent", default="obedient", choices=AGENTS)
    form.add_argument("--timing", default="first", choices=("first", "end", "both"), help="when it obeys")
    form.add_argument(
        "--oracle",
        default="strict",
        help="strict, ideal, none, human, noisy:E1,E2,SEED, or whom a run may ask (answers:FILE, seeing:MODEL …)",
    )
    form.add_argument("--policy", default="full", choices=POLICIES, help="how much of the role files counts")
    form.add_argument(
        "--roles", type=Path, metavar="DIR", help="role files SUITE.yaml (default: the shipped)"
    )
    form.add_argument(
        "--injections",
        type=Path,
        metavar="FILE",
        help="texts in place of the suite's own attack, by user task and injection task",
    )
    form.add_argument(
        "--plan",
        default="",
        metavar="PLAN",
        help="a plan from the clean prompt vouches (mode `vouch`): truth, or faulty:RATE,SEED for one with faults",
    )
    form.add_argument("--grid", action="store_true", help="5 policies x 3 agents x 2 timings")
    form.add_argument(
        "--sweep", type=int, metavar="SEED", help="what an oracle that errs makes of it, by its two rates"
    )
    form.add_argument(
        "--model-url", default="", metavar="URL", help="of --agent model: a server, up to `/v1`"
    )
    form.add_argument(
        "--model", default="", metavar="NAME", help="of --agent model: one of models.yaml, or the server's"
    )
    form.add_argument("--model-key", default="", metavar="VARIABLE", help="the variable that holds its key")
    form.add_argument("--only", metavar="CASE", help="one case, as --list names it")
    form.add_argument("--list", action="store_true", help="name the cases and stop")
    form.add_argument("--jobs", type=int, default=1, help="how many processes")
    form.add_argument(
        "--ray", metavar="ADDRESS", help="a Ray cluster in place of processes: auto, HOST:PORT, local"
    )
    form.add_argument(
        "--out", type=Path, metavar="DIR", help="keep the results there, and go on with those that are there"
    )
    form.add_argument(
        "--summary", type=Path, metavar="FILE", help="write the figures there, without the cases"
    )
    form.add_argument("--json", action="store_true", help="print JSON, with every case")
    return form


def _print_tables(found: dict[str, Any]) -> None:
    from interlock.bench import noisy, tables

    if "sweep" in found:
        print(noisy.table([noisy.Point(**each) for each in found["sweep"]]), end="")
        return
    if isinstance(found["slips"], dict):
        cells = {name: found["totals"][name] for name in found["slips"]}
        print(tables.figures(cells), end="")
        return
    print(tables.figures(found["totals"]))
    print(tables.kinds("Attacker's effects that were done", found["slips"]))
    print(tables.kinds("Effects of benign runs that nothing vouched for", found["false_deferrals"]), end="")


def write_summary(place: Path, found: dict[str, Any]) -> None:
    """Write a result document without its cases. Raises: InputError."""
    from interlock.bench.result_folder import written
    from interlock.model.errors import InputError

    try:
        place.write_text(
            written({key: value for key, value in found.items() if key != "cases"}), encoding="utf-8"
        )
    except OSError as failure:
        raise InputError(
            f"`{place}` cannot be written ({type(failure).__name__})", hint="give another file"
        ) from None


def tell_progress(done: int, of: int) -> None:
    """Tell how far a bench is, on stderr: always on a terminal, elsewhere at each tenth."""
    if sys.stderr.isatty():
        print(f"\r{done}/{of} cases", end="\n" if done == of else "", file=sys.stderr, flush=True)
    elif done and of and (10 * done // of != 10 * (done - 1) // of):
        print(f"{done}/{of} cases", file=sys.stderr, flush=True)
