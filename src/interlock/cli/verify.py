"""`interlock verify`: check a run's evidence, offline."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.verify.report import CheckResult, Report, WitnessedHead


def main(words: list[str]) -> int:
    """Run the verb; see `interlock verify --help`."""
    form = parser(
        "verify",
        "Check a run's evidence, offline: complete, unfinished or tampered, and where it broke.",
        "interlock verify last --replay",
        "0 complete; 1 unfinished (a checked prefix); 4 tampered; 2 input.",
    )
    form.add_argument(
        "run", metavar="RUN|FILE", help="a run's id, `last`, a ledger's folder, or a bundle (.tar)"
    )
    form.add_argument(
        "--replay", action="store_true", help="recompute every verdict from the recorded events"
    )
    form.add_argument("--nonce", default="", help="the nonce that the run must carry")
    form.add_argument("--key", default="", metavar="HEX", help="the key that must have signed it")
    form.add_argument("--plan-key", default="", metavar="KEY", help="the key that must have signed its plan")
    form.add_argument(
        "--witness",
        metavar="FILE",
        help="signed heads kept apart: older copies of heads.note, cosigned or not",
    )
    form.add_argument(
        "--witness-key",
        metavar="KEY",
        action="append",
        default=[],
        help="a witness that must have cosigned a head in --witness: NAME+HASH+BASE64; may be repeated",
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    arguments = form.parse_args(words)
    from interlock.verify import read_witness_key, verify_path

    keys = tuple(map(read_witness_key, arguments.witness_key))
    ledger = ledger_of(arguments.run)
    kept = arguments.witness or (_kept_by(ledger) if keys else None)
    if keys and kept is None:
        raise InputError("a witness's key is given, and nothing that it signed", hint="add --witness FILE")
    report = verify_path(
        ledger,
        expected_nonce=arguments.nonce,
        expected_key=arguments.key,
        witness=_witness(kept),
        replay=arguments.replay,
        plan_key=arguments.plan_key,
        witness_keys=keys,
    )
    if arguments.json:
        from interlock.monitor.codec import plain

        print_json(plain(report))
    else:
        _print(report)
    return {"complete": 0, "unfinished": 1}.get(report.verdict, 4)


def _witness(path: str | None) -> tuple[WitnessedHead, ...]:
    from interlock.verify import read_witness

    return read_witness(path) if path is not None else ()


def _kept_by(ledger: str) -> str | None:
    """Return the file of the heads that witnesses cosigned of a run, as `interlock witness` leaves it."""
    path = os.path.join(os.path.dirname(ledger), "witnessed.notes")
    return path if os.path.isfile(path) else None


def ledger_of(given: str) -> str:
    """Return where the evidence is that a user names. Raises: InputError, if there is none."""
    if os.path.isdir(given):
        nested = os.path.join(given, "ledger")
        return nested if os.path.isdir(nested) else given
    if os.path.isfile(given):
        return given
    from interlock.runtime import folders

    if os.sep in given:
        raise InputError(f"`{given}` is no ledger and no bundle", hint="list runs: interlock runs")
    return os.path.join(folders.find(given), "ledger")


def _said(report: Report, check: CheckResult) -> str:
    if check.name == "manifest" and report.signers:
        return f"signed by {', '.join(report.signers)}; {report.kernel}"
    return check.reason


def _utc(time_s: int) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _print(report: Report) -> None:
    ink = Ink(sys.stdout)
    colour = {"complete": ink.good, "unfinished": ink.warn}.get(report.verdict, ink.bad)
    where = f" at node {report.node}" if report.node is not None else ""
    print(f"{colour(report.verdict)}{where}: {safe(report.detail or report.reason)}")
    for check in report.checks:
        mark = {"pass": ink.good("pass"), "fail": ink.bad("FAIL")}.get(check.status, ink.faint(check.status))
        print(f"  {check.name:<22} {mark}  {safe(_said(report, check))}")
    for one in report.witnessed:
        print(f"  witnessed by {safe(one.witness)}: {one.count} nodes, {_utc(one.time_s)}")
    print(ink.faint(f"  run {report.run_id}, {report.nodes} nodes, key {report.public_key[:16]}"))
