"""`interlock disclose`: a run's evidence as one file, with the payloads of chosen nodes alone."""

from __future__ import annotations

import os

from interlock.cli.nodes_named import nodes_named
from interlock.cli.output import parser, print_json
from interlock.model.errors import InputError, IntegrityError


def main(words: list[str]) -> int:
    """Run the verb; see `interlock disclose --help`."""
    form = parser(
        "disclose",
        "Write a run's evidence as one file for somebody else: whole, or with the payloads of chosen nodes alone."
        " What is left out cannot be guessed from its hash, and all the rest verifies.",
        "interlock disclose last --nodes check,blocked,12-17 --out for-the-auditor.tar",
        "0; 2 input, or the file is there; 4 the evidence is not whole.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument(
        "--nodes",
        metavar="LIST",
        help="numbers, ranges and kinds, with commas; `none` for no payload (default: all of them)",
    )
    form.add_argument("--out", metavar="FILE", required=True, help="the bundle to write; it must not exist")
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.evidence import pack
    from interlock.runtime import folders
    from interlock.verify import read_nodes, verify_path

    ledger = os.path.join(folders.find(arguments.run), "ledger")
    if os.path.lexists(arguments.out):
        raise InputError(f"`{arguments.out}` is there already", hint="name a file that does not exist yet")
    report = verify_path(ledger)
    if report.verdict == "tampered":
        raise IntegrityError(
            f"the evidence does not hold: {report.detail}", hint=f"interlock verify {arguments.run}"
        )
    keeps = None if arguments.nodes is None else nodes_named(arguments.nodes, read_nodes(ledger))
    left_out = pack(ledger, arguments.out, keeps)
    after = verify_path(arguments.out)
    if after.verdict != report.verdict:
        os.unlink(arguments.out)
        raise IntegrityError(f"what was written does not verify: {after.detail}", hint="try again")
    if arguments.json:
        print_json(
            {
                "file": arguments.out,
                "verdict": after.verdict,
                "nodes": after.nodes,
                "disclosed": after.nodes - after.removed,
                "left_out": left_out,
            }
        )
    else:
        print(
            f"wrote {arguments.out}: {after.verdict}, {after.nodes} nodes, {after.nodes - after.removed} with their"
            f" payload; check it: interlock verify {arguments.out}"
        )
    return 0
