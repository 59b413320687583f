"""`interlock witness`: a run's newest signed head is given to somebody else to keep."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from argparse import Namespace

    from interlock.witness import Submitted

KEPT = "witnessed.notes"
_POLL_S = 1.0


def main(words: list[str]) -> int:
    """Run the verb; see `interlock witness --help`."""
    form = parser(
        "witness",
        "Give a run's newest signed head to a witness: a file out of this machine's reach, or a C2SP witness over HTTP."
        " Whoever has it finds out when the run's evidence is cut, rolled back or told anew.",
        "interlock witness last --to https://witness.example --witness-key witness.example/w1+1f2e3d4c+BAAA…",
        "0; 2 input, or the witness gives no cosignature; 4 the ledger is not the one that was witnessed.",
    )
    form.add_argument("run", metavar="RUN", help="a run's id, the end of one, or `last`")
    form.add_argument(
        "--to", metavar="FILE|FOLDER|URL", help="where to: a file of heads, a folder of them, or a witness"
    )
    form.add_argument(
        "--witness-key", metavar="KEY", help="the witness's verifier key: its cosignature must hold"
    )
    form.add_argument("--follow", action="store_true", help="go on with each new head until the run ends")
    form.add_argument(
        "--show-key", action="store_true", help="print the run's own verifier key, for the witness's operator"
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.runtime import folders

    folder = folders.find(arguments.run)
    ledger = os.path.join(folder, "ledger")
    run_id = os.path.basename(folder)
    if arguments.show_key:
        return _show_key(ledger, as_json=arguments.json)
    if not arguments.to:
        raise InputError(
            "it is not said who the witness is", hint="--to heads/ or --to https://witness.example"
        )
    over_http = "://" in arguments.to
    if arguments.witness_key and not over_http:
        raise InputError("a file does not cosign", hint="leave --witness-key out, or give a URL")
    while True:
        facts = _submit(arguments, folder, run_id) if over_http else _file(arguments.to, ledger, run_id)
        _say(facts, as_json=arguments.json)
        if not arguments.follow or facts["sealed"]:
            return 0
        _wait(ledger, facts["nodes"])


def _file(to: str, ledger: str, run_id: str) -> dict[str, object]:
    from interlock.witness import file_head

    if os.path.isdir(to) or to.endswith(os.sep):
        if not os.path.isdir(to):
            raise InputError(f"there is no folder `{to}`", hint="make it first")
        to = os.path.join(to, f"{run_id}.notes")
    head, new = file_head(ledger, run_id, to)
    return {
        "run": run_id,
        "nodes": head.count,
        "witness": to,
        "new": new,
        "kept": to,
        "sealed": head.report.verdict == "complete",
    }


def _submit(arguments: Namespace, folder: str, run_id: str) -> dict[str, object]:
    from interlock.oracle.exchanging import address_of
    from interlock.verify import read_witness_key
    from interlock.witness import submit

    address = address_of(arguments.to, what="the witness")
    key = read_witness_key(arguments.witness_key) if arguments.witness_key else None
    kept = os.path.join(folder, KEPT)
    done: Submitted = submit(os.path.join(folder, "ledger"), run_id, address, kept, key)
    return {
        "run": run_id,
        "nodes": done.head.count,
        "witness": key.name if key else arguments.to,
        "new": done.new,
        "kept": kept,
        "checked": key is not None,
        "time_s": done.time_s,
        "sealed": done.head.report.verdict == "complete",
    }


def _say(facts: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    verb = "has" if facts["new"] else "had already"
    end = "the whole run" if facts["sealed"] else "the run so far"
    print(f"{safe(str(facts['witness']))} {verb} {facts['nodes']} nodes, {end}")
    if facts.get("checked") is False:
        print("  its cosignature was kept and not checked: give --witness-key", file=sys.stderr)
    key = " --witness-key KEY" if facts.get("checked") else ""
    print(f"  check: interlock verify {facts['run']} --witness {safe(str(facts['kept']))}{key}")


def _wait(ledger: str, nodes: object) -> None:
    """Return once the ledger has a newer head."""
    from interlock.verify import read_witness

    while True:
        time.sleep(_POLL_S)
        head = read_witness(os.path.join(ledger, "heads.note"))
        if (head and head[-1].count != nodes) or os.path.exists(os.path.join(ledger, "seal.dsse.json")):
            return


def _show_key(ledger: str, *, as_json: bool) -> int:
    from interlock.verify import log_key

    key = log_key(ledger)
    if as_json:
        print_json({"key": key})
    else:
        print(key)
    return 0
