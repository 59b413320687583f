"""`interlock report`: what runs did and were kept from, and what their evidence proves, for people."""

from __future__ import annotations

import os
import sys
from fractions import Fraction
from typing import TYPE_CHECKING

from interlock.cli.output import parser
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.report.account import Account
    from interlock.report.rates import Rate

_FORMS = ("html", "md", "json")


def main(words: list[str]) -> int:
    """Run the verb; see `interlock report --help`."""
    form = parser(
        "report",
        "Verify runs and write a report of them: what was asked, what was blocked or held and why, disclosures, models,"
        " what the kernel enforced, what the seal proves, and how often each guard blocked.",
        "interlock report last for-the-auditor.tar --out report.html --threshold 5%",
        "0; 1 a guard blocked more often than the threshold, or a run is unfinished; 2 input; 4 a run was tampered with"
        " (the report is written all the same).",
    )
    form.add_argument(
        "runs", metavar="RUN|FILE", nargs="+", help="runs' ids, `last`, ledgers' folders, or bundles (.tar)"
    )
    form.add_argument(
        "--out",
        metavar="FILE",
        help="report.html, .md or .json; it must not exist (default: Markdown to stdout)",
    )
    form.add_argument(
        "--threshold", metavar="SHARE", default="", help="as in 5%% or 0.05: more blocked is told"
    )
    form.add_argument("--no-replay", action="store_true", help="do not recompute the verdicts")
    form.add_argument("--key", default="", metavar="HEX", help="the key that must have signed")
    arguments = form.parse_args(words)
    threshold = _share(arguments.threshold) if arguments.threshold else None
    kind = _form_of(arguments.out)
    from interlock.cli.verify import ledger_of
    from interlock.report import account_of
    from interlock.report.rates import rates_of

    accounts = []
    for number, given in enumerate(arguments.runs, 1):
        if len(arguments.runs) > 1 and sys.stderr.isatty():
            print(f"\rreading {number} of {len(arguments.runs)}", end="", file=sys.stderr)
        path = ledger_of(given)
        accounts.append(account_of(path, given, replay=not arguments.no_replay, key=arguments.key))
    rates = rates_of(accounts)
    above = [one.guard for one in rates if threshold is not None and one.share > threshold]
    text = _written(kind, accounts, rates, arguments.threshold, above)
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        with open(arguments.out, "x", encoding="utf-8") as file:
            file.write(text)
        print(f"wrote {arguments.out}: {len(accounts)} run{'s' if len(accounts) > 1 else ''}")
    verdicts = {one.verified.verdict for one in accounts}
    if "tampered" in verdicts:
        return 4
    return 1 if above or "unfinished" in verdicts else 0


def _written(
    kind: str, accounts: list[Account], rates: tuple[Rate, ...], threshold: str, above: list[str]
) -> str:
    if kind == "html":
        from interlock.report.page import page

        return page(accounts, rates, threshold, above)
    if kind == "md":
        from interlock.report.markdown import markdown

        return markdown(accounts, rates, threshold, above)
    import json

    from interlock.report.plain import plain
    from interlock.report.rates import percent

    return (
        json.dumps(
            {
                "runs": [plain(one) for one in accounts],
                "rates": [
                    {
                        "guard": one.guard,
                        "actions": one.looked,
                        "blocked": one.blocked,
                        "undecided": one.undecided,
                        "share": percent(one.share),
                    }
                    for one in rates
                ],
                "threshold": threshold,
                "above": above,
            },
            ensure_ascii=False,
            indent=2,
        )
        + "\n"
    )


def _form_of(out: str | None) -> str:
    if out is None:
        return "md"
    kind = out.rpartition(".")[2].lower()
    if kind not in _FORMS:
        raise InputError(
            f"`{out}` ends in no form of a report", hint="name a file that ends in .html, .md or .json"
        )
    if os.path.lexists(out):
        raise InputError(f"`{out}` is there already", hint="name a file that does not exist yet")
    return kind


def _share(text: str) -> Fraction:
    number, sign = (text[:-1], 100) if text.endswith("%") else (text, 1)
    try:
        share = Fraction(number) / sign
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 <= share <= 1:
        raise InputError(f"`{text}` is no share", hint="give a share as in 5% or 0.05")
    return share
