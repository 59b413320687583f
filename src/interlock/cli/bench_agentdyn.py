"""`interlock bench agentdyn`: recorded runs of real models, replayed through the monitor."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from interlock.cli.bench_agentdojo import tell_progress, write_summary
from interlock.cli.output import parser, print_json


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench agentdyn --help`."""
    form = parser(
        "bench agentdyn",
        "Replay recorded runs: how many effects the policy vouches for, how many recorded attacks it stops.",
        "interlock bench agentdyn --runs benchmarks/agentdyn/runs --catalogue benchmarks/agentdyn/catalogue.json",
        "0; 2 no such runs.",
    )
    form.add_argument(
        "--runs", required=True, type=Path, metavar="FILE", help="recorded runs, or their folder"
    )
    form.add_argument(
        "--catalogue", required=True, type=Path, metavar="FILE", help="the suite's catalogue.json"
    )
    form.add_argument(
        "--roles", type=Path, metavar="DIR", help="role files SUITE.yaml (default: the shipped)"
    )
    form.add_argument("--suite", action="append", choices=("dailylife", "github", "shopping"))
    form.add_argument("--jobs", type=int, default=1, help="how many processes")
    form.add_argument(
        "--sweep",
        type=int,
        metavar="SEED",
        help="print what an oracle that errs makes of them, by its two rates",
    )
    form.add_argument(
        "--frontier",
        action="store_true",
        help="replay them once more for each part of the role files, as these are switched on one by one",
    )
    form.add_argument(
        "--played",
        action="store_true",
        help="propose what each recorded attack did after every run without an attack, too",
    )
    form.add_argument(
        "--summary", type=Path, metavar="FILE", help="write the figures there, without the cases"
    )
    form.add_argument("--json", action="store_true", help="print JSON, with every case")
    given = form.parse_args(words)
    from interlock.bench import noisy
    from interlock.bench.agentdyn import document, made_with, replayed

    measure = partial(
        replayed,
        given.runs,
        given.catalogue,
        roles=given.roles,
        suites=given.suite or (),
        jobs=given.jobs,
        told=tell_progress,
    )
    seen = measure()
    if given.sweep is not None:
        print(noisy.table(noisy.sweep(noisy.recorded(seen), seed=given.sweep)), end="")
        return 0
    found = {
        **document(seen),
        "command": " ".join(
            [
                f"interlock bench agentdyn --runs {given.runs} --catalogue {given.catalogue}",
                *(f"--suite {each}" for each in given.suite or ()),
                *(["--frontier"] if given.frontier else []),
                *(["--played"] if given.played else []),
            ]
        ),
        "made_with": made_with(seen, given.roles),
    }
    if given.frontier:
        from interlock.bench.recorded_frontier import frontier

        found["frontier"] = frontier(lambda changed: measure(changed=changed))
    if given.played:
        from interlock.bench import agentdyn, recorded_attacks

        texts = agentdyn.role_texts(seen, given.roles)
        found["played"] = recorded_attacks.document(recorded_attacks.play(seen, texts))
    if given.summary is not None:
        write_summary(given.summary, found)
        return 0
    shown = ("totals", "frontier", "played", "slips", "false_deferrals")
    print_json(found if given.json else {key: found[key] for key in shown if key in found})
    return 0
