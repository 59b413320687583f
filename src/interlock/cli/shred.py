"""`interlock shred`: take payloads out of a run's evidence for good."""

from __future__ import annotations

import os
import sys

from interlock.cli.nodes_named import nodes_named
from interlock.cli.output import parser, print_json
from interlock.model.errors import InputError, IntegrityError


def main(words: list[str]) -> int:
    """Run the verb; see `interlock shred --help`."""
    form = parser(
        "shred",
        "Take the payloads of chosen nodes out of a closed run's evidence, for good: the rest verifies, and says how"
        " many are gone. What needs them (show, why, verify --replay) does not work for that run any more.",
        "interlock shred last --nodes prompt,inference --yes",
        "0; 2 input, or the run is open; 4 the evidence is not whole.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument(
        "--nodes", metavar="LIST", required=True, help="numbers, ranges and kinds, with commas; `all`"
    )
    form.add_argument("--yes", action="store_true", help="do it without being asked")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.evidence import redact
    from interlock.runtime import folders
    from interlock.verify import read_nodes, verify_path

    path = folders.find(arguments.run)
    ledger = os.path.join(path, "ledger")
    lock = folders.RunLock(path)
    lock.acquire(folders.load(path).run_id)
    try:
        report = verify_path(ledger)
        if report.verdict == "tampered":
            raise IntegrityError(
                f"the evidence does not hold: {report.detail}", hint=f"interlock verify {arguments.run}"
            )
        if report.verdict == "unfinished":
            raise InputError(
                "the run is open, and what is still to be decided needs its payloads",
                hint=f"end it first: interlock apply {arguments.run}, or: interlock discard {arguments.run}",
            )
        seqs = nodes_named(arguments.nodes, read_nodes(ledger))
        if not arguments.yes and not _agreed(len(seqs)):
            print("nothing was changed")
            return 0
        redact(ledger, sorted(seqs))
    finally:
        lock.release()
    after = verify_path(ledger)
    if arguments.json:
        print_json({"verdict": after.verdict, "nodes": after.nodes, "removed": after.removed})
    else:
        print(f"{after.verdict}: {after.nodes} nodes, {after.removed} without their payload")
    return 0


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise InputError("nobody can be asked", hint="give --yes, if the payloads shall be gone")
    return input(f"take out {count} payloads for good? [y/N] ").strip().lower() in ("y", "yes")
