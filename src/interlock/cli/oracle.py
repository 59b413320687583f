"""`interlock oracle`: see how an oracle judges cases of which the right answer is known."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.cli.output import Ink, parser, print_json, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.oracle import Oracle
    from interlock.oracle.cases import Case, Confusion, Judged, Score
    from interlock.oracle.cases.trying import Said

MISSED_EXIT_STATUS = 1
_SHOWN = 12
_COLUMNS = ("released good", "refused good", "released bad", "refused bad")


def main(words: list[str]) -> int:
    """Run the verb; see `interlock oracle --help`."""
    from interlock.oracle.choose import MODELS_HELP, ORACLE_HELP

    form = parser(
        "oracle",
        "Put cases to an oracle (`test`), and print how it judged them: its confusion matrix, time, tokens, faults.",
        "interlock oracle test --oracle seeing:judge --require 'released-bad<=5%'",
        "0 whatever it judged; 1 a bound of --require is missed; 2 input.",
    )
    form.add_argument("action", choices=("test",))
    form.add_argument(
        "cases", nargs="*", metavar="CASES", help="files of cases (default: those that come along)"
    )
    form.add_argument(
        "--oracle", metavar="WHO", default="strict", help=f"who is tried (default: strict): {ORACLE_HELP}"
    )
    form.add_argument("--models", metavar="FILE", help=MODELS_HELP)
    form.add_argument("--kind", metavar="KIND", help="only the cases of this kind")
    form.add_argument(
        "--require",
        metavar="BOUND",
        action="append",
        default=[],
        help="a bound, as in 'released-bad<=5%%' or 'faults<=0'; may be repeated",
    )
    form.add_argument("--json", action="store_true", help="print JSON, with every case")
    arguments = form.parse_args(words)
    from interlock import oracle
    from interlock.model.errors import InputError
    from interlock.oracle.cases import Required, load_cases, score, shipped_cases

    required = [Required.read(text) for text in arguments.require]
    if arguments.oracle == "review":
        raise InputError(
            "`--oracle review` leaves its questions to another terminal, and no run waits here",
            hint="use `--oracle human` in a terminal",
        )
    who = oracle.choose(
        arguments.oracle, terminal=sys.stdin.isatty() and sys.stderr.isatty(), models=arguments.models
    )
    cases = load_cases(arguments.cases) if arguments.cases else shipped_cases()
    kinds = sorted({case.kind for case in cases})
    if arguments.kind is not None:
        cases = tuple(case for case in cases if case.kind == arguments.kind)
        if not cases:
            raise InputError(
                f"no case is of the kind `{arguments.kind}`", hint=f"the kinds are {', '.join(kinds)}"
            )
    judged = _judged(who, cases)
    found = score(judged)
    missed = [text for one in required if (text := one.missed(found))]
    if arguments.json:
        print_json(_document(who.name, found, judged, missed))
    else:
        print("\n".join(_lines(who.name, found)))
    for text in missed:
        print(f"interlock: {text}", file=sys.stderr)
    return MISSED_EXIT_STATUS if missed else 0


def _judged(who: Oracle, cases: Sequence[Case]) -> list[Judged]:
    from interlock.oracle.cases import try_cases

    progress = sys.stderr.isatty() and who.name != "human"
    judged: list[Judged] = []
    for one in try_cases(who, cases):
        judged.append(one)
        if progress:
            print(f"\r{len(judged)} of {len(cases)} cases", end="", file=sys.stderr, flush=True)
    if progress:
        print(file=sys.stderr)
    return judged


def _lines(name: str, found: Score) -> list[str]:
    ink = Ink(sys.stdout)
    rows = {
        **found.kinds,
        **{f"({name} ones)": counts for name, counts in found.hardness.items() if counts.total},
        "all": found.whole,
    }
    width = max(map(len, rows))
    out = [
        f"{safe(name)} on {found.questions} cases with {found.whole.total} effects",
        "",
        f"{'':<{width}}  {'  '.join(_COLUMNS)}  right",
    ]
    for row, counts in rows.items():
        cells = "  ".join(f"{cell:>{len(head)}}" for cell, head in zip(_cells(counts), _COLUMNS, strict=True))
        line = f"{safe(row):<{width}}  {cells}  {_percent(counts.right, counts.total):>5}"
        out.append(ink.strong(line) if row == "all" else line)
    out += [
        "",
        f"time a case: p50 {found.p50_ms:.1f} ms, p95 {found.p95_ms:.1f} ms",
        f"calls of models: {found.calls}; tokens: {found.prompt_tokens} in, {found.completion_tokens} out",
        f"faults: {found.faults}; cases whose evidence was cut to fit: {found.trimmed}",
    ]
    out += _wrong_lines(found.wrong, ink)
    return out


def _wrong_lines(wrong: Sequence[tuple[Judged, Said]], ink: Ink) -> list[str]:
    out: list[str] = []
    for title, good in (
        ("released, and should not have been:", False),
        ("refused, and belong to their tasks:", True),
    ):
        found = [(one, said) for one, said in wrong if said.good is good]
        if not found:
            continue
        out += ["", ink.bad(title) if not good else ink.warn(title)]
        out += [
            f"  {safe(one.case.name)} {said.effect_id}: {safe(one.case.why)}" for one, said in found[:_SHOWN]
        ]
        if len(found) > _SHOWN:
            out.append(f"  and {len(found) - _SHOWN} more: --json has them all")
    return out


def _cells(counts: Confusion) -> tuple[int, int, int, int]:
    return counts.released_good, counts.refused_good, counts.released_bad, counts.refused_bad


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if whole else "-"


def _matrix(counts: Confusion) -> dict[str, int]:
    return dict(zip((head.replace(" ", "_") for head in _COLUMNS), _cells(counts), strict=True))


def _document(name: str, found: Score, judged: Sequence[Judged], missed: Sequence[str]) -> dict[str, object]:
    return {
        "oracle": name,
        "cases": found.questions,
        "effects": found.whole.total,
        "all": _matrix(found.whole),
        "kinds": {kind: _matrix(counts) for kind, counts in found.kinds.items()},
        "hardness": {one: _matrix(counts) for one, counts in found.hardness.items()},
        "latency_ms": {"p50": round(found.p50_ms, 3), "p95": round(found.p95_ms, 3)},
        "calls": found.calls,
        "tokens": {"in": found.prompt_tokens, "out": found.completion_tokens},
        "faults": found.faults,
        "trimmed": found.trimmed,
        "missed": list(missed),
        "models": _models(judged),
        "judged": [_judged_row(one) for one in judged],
    }


def _models(judged: Sequence[Judged]) -> list[dict[str, str]]:
    known = dict.fromkeys(
        (one.provider, one.model, one.weights_hash, one.engine, one.sampling)
        for each in judged
        for one in each.inferences
    )
    keys = ("provider", "model", "weights_hash", "engine", "sampling")
    return [dict(zip(keys, values, strict=True)) for values in known]


def _judged_row(one: Judged) -> dict[str, object]:
    return {
        "case": one.case.name,
        "kind": one.case.kind,
        "hard": one.case.hard,
        "elapsed_ms": round(one.elapsed_ms, 3),
        "fault": one.fault,
        "effects": [
            {
                "id": said.effect_id,
                "expected": "release" if said.good else "refuse",
                "said": "release" if said.released else "refuse",
                "reason": said.reason,
            }
            for said in one.said
        ],
    }
