"""`interlock bench judge`: how a judge of regulation does on cases of which the label is known."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from interlock.cli.output import parser, print_json, safe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from interlock.bench.judging import Matrix, Outcome

DEFAULT_SAMPLE = 12
_REASONS = 8
_DEADLINE_S = 600.0


def main(words: list[str]) -> int:
    """Run the verb; see `interlock bench judge --help`."""
    from interlock.oracle.choose import MODELS_HELP

    form = parser(
        "bench judge",
        "Put cases of GoldCoin and PrivaCI-Bench to the judge of the regulation guard; print its confusion matrices.",
        "interlock bench judge --data DIR --model local --sample 12 --seed 1",
        "0 whatever it judged; 2 input.",
    )
    form.add_argument(
        "--data", metavar="DIR", required=True, help="the folder with goldcoin/ and privaci_bench/ in it"
    )
    form.add_argument(
        "--model", metavar="NAME", default="local", help="a model of models.yaml (default: local)"
    )
    form.add_argument("--models", metavar="FILE", help=MODELS_HELP)
    form.add_argument(
        "--sample",
        type=int,
        default=DEFAULT_SAMPLE,
        metavar="N",
        help=f"so many cases of each set, the labels in turn (default: {DEFAULT_SAMPLE})",
    )
    form.add_argument("--seed", type=int, default=0, metavar="N", help="draw other cases (default: 0)")
    form.add_argument("--json", action="store_true", help="print JSON, with every case")
    arguments = form.parse_args(words)
    from interlock.bench.judged_cases import read_cases, sample
    from interlock.bench.judging import judge_cases, matrix
    from interlock.model.errors import InputError
    from interlock.oracle.judge import Judge
    from interlock.oracle.models.configuring import load_models

    if arguments.sample < 1:
        raise InputError("`--sample` must be above 0", hint=f"--sample {DEFAULT_SAMPLE}")
    models = load_models(arguments.models)
    judge = Judge(models.open(arguments.model), word=arguments.model, deadline_s=_DEADLINE_S)
    cases = sample(read_cases(arguments.data), arguments.sample, arguments.seed)
    outcomes: list[Outcome] = []
    for one in judge_cases(judge, cases):
        outcomes.append(one)
        if sys.stderr.isatty():
            print(f"\r{len(outcomes)} of {len(cases)} cases", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    sets = {
        name: matrix([one for one in outcomes if one.case.set == name])
        for name in dict.fromkeys(case.set for case in cases)
    }
    if arguments.json:
        print_json(_document(judge.name, arguments.seed, sets, outcomes))
    else:
        print("\n".join(_lines(judge.name, arguments.seed, sets, outcomes)))
    return 0


def _lines(name: str, seed: int, sets: Mapping[str, Matrix], outcomes: Sequence[Outcome]) -> list[str]:
    from interlock.bench.judging import UNDECIDED
    from interlock.oracle.judge.template import LABELS, template_digest

    columns = (*LABELS, UNDECIDED)
    width = max(map(len, columns))
    out = [f"{safe(name)} on {len(outcomes)} cases, seed {seed}, template {template_digest()[:16]}"]
    for title, counts in sets.items():
        out += ["", title, f"{'right label':<{width}}  " + "  ".join(f"{one:>{width}}" for one in columns)]
        for right in LABELS:
            if any(counts.of(right, said) for said in columns):
                cells = "  ".join(f"{counts.of(right, said):>{width}}" for said in columns)
                out.append(f"{right:<{width}}  {cells}")
        out.append(
            f"right: {counts.right} of {counts.total}; not compliant and let through: {counts.let_through}"
        )
        if counts.named:
            out.append(
                f"provisions that the experts name: shown in {counts.shown} of {counts.named}, "
                f"cited in {counts.cited}"
            )
    reasons = Counter(one.why for one in outcomes if one.why)
    if reasons:
        out += ["", "undecided, since:"]
        out += [f"  {count} x {safe(why)}" for why, count in reasons.most_common(_REASONS)]
    calls = [one.inference for one in outcomes if one.inference is not None]
    spent = sum(one.elapsed_ms for one in calls) / 1000
    out += [
        "",
        f"tokens: {sum(one.prompt_tokens for one in calls)} in, "
        f"{sum(one.completion_tokens for one in calls)} out; {spent:.1f} s of the model's time",
    ]
    who = dict.fromkeys((one.provider, one.model, one.weights_hash) for one in calls)
    out += [" ".join(part for part in one if part) for one in who]
    return out


def _document(
    name: str, seed: int, sets: Mapping[str, Matrix], outcomes: Sequence[Outcome]
) -> dict[str, object]:
    from interlock.monitor.codec import plain
    from interlock.oracle.judge.template import template_digest

    return {
        "oracle": name,
        "seed": seed,
        "template": template_digest(),
        "sets": {
            title: {
                "matrix": [
                    {"right": right, "said": said, "count": count} for (right, said), count in counts.counts
                ],
                "right": counts.right,
                "total": counts.total,
                "let_through": counts.let_through,
                "named": counts.named,
                "shown": counts.shown,
                "cited": counts.cited,
            }
            for title, counts in sets.items()
        },
        "cases": [
            {
                "set": one.case.set,
                "number": one.case.number,
                "right": one.case.label,
                "said": one.label,
                "provision": one.provision,
                "why": one.why,
                **({"inference": plain(one.inference)} if one.inference is not None else {}),
            }
            for one in outcomes
        ],
    }
