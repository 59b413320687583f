"""`python -m benchmarks`: run the benchmarks, print the table, write the rows."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys

from benchmarks.commit import commit
from benchmarks.deriving import deriving
from benchmarks.files import files
from benchmarks.gateway import gateway
from benchmarks.ground import REPOSITORY, default_parent, file_system
from benchmarks.guarded import guarded
from benchmarks.installing import installing
from benchmarks.ledger import ledger
from benchmarks.lens import lens
from benchmarks.mcp import mcp
from benchmarks.mcp_crowd import mcp_crowd
from benchmarks.pause import pause
from benchmarks.plan import Benchmark, Plan
from benchmarks.policy_step import policy_step
from benchmarks.project import project
from benchmarks.proxy import proxy
from benchmarks.rounds import load_now
from benchmarks.rows import Row, not_run, table
from benchmarks.start import start
from benchmarks.tying import tying
from interlock.model.errors import InterlockError

BENCHMARKS: dict[str, Benchmark] = {
    "start": start,
    "files": files,
    "project": project,
    "commit": commit,
    "pause": pause,
    "ledger": ledger,
    "proxy": proxy,
    "lens": lens,
    "policy": policy_step,
    "tying": tying,
    "guarded": guarded,
    "gateway": gateway,
    "mcp": mcp,
    "mcp-crowd": mcp_crowd,
    "plan": deriving,
    "install": installing,
}


def main() -> int:
    """Run what was asked for. Returns: 0, goals met or not; 2 for a mistake in the arguments."""
    form = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    form.add_argument(
        "--only", choices=sorted(BENCHMARKS), action="append", help="this one (may be repeated)"
    )
    form.add_argument("--quick", action="store_true", help="few rounds: to see that it works, not to quote")
    form.add_argument("--full", action="store_true", help="the long ones too: a ledger of 1,000,000 nodes")
    form.add_argument(
        "--in", dest="parent", metavar="DIR", default=default_parent(), help="measure below DIR"
    )
    form.add_argument(
        "--out",
        metavar="FILE",
        default=os.path.join(REPOSITORY, "build", "bench.json"),
        help="write the rows here",
    )
    arguments = form.parse_args()
    plan = Plan(quick=arguments.quick, full=arguments.full, parent=os.path.abspath(arguments.parent))
    load_before = load_now()
    rows: list[Row] = []
    for name, benchmark in BENCHMARKS.items():
        if not arguments.only or name in arguments.only:
            print(f"bench: {name} …", file=sys.stderr, flush=True)
            try:
                rows.extend(benchmark(plan))
            except InterlockError as error:
                # One benchmark that cannot be had must not cost the figures of the others.
                rows.append(not_run(name, "", f"{error.code}: {error.message}"))
    os.makedirs(os.path.dirname(os.path.abspath(arguments.out)), exist_ok=True)
    with open(arguments.out, "w", encoding="utf-8") as file:
        json.dump([row.record() for row in rows], file, indent=1, ensure_ascii=False)
        file.write("\n")
    print(table(rows))
    print(
        f"\nLinux {platform.release()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{file_system(plan.parent)}; medians; load {load_before:.1f} before, {load_now():.1f} after"
    )
    if load_before > 1:
        print("the machine was busy when this began: do not quote these figures")
    missed = [row.name for row in rows if row.met is False]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
