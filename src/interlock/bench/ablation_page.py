"""The page `docs/results/oracles.md`, and the result file that it is made from. Pure but for reading it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interlock.bench.compare import Document
from interlock.bench.single_page import single_page
from interlock.bench.tables import markdown

RESULT = "oracles.json"
PAGE = "oracles.md"

# What the paper says of its own runs (AgentVisor §5.3 and §6.1; models, not played agents).
_PAPER_CHECKS = {
    "S, T and I": ("-", "66.67"),
    "without T": ("13.33", "-"),
    "without I": ("8.89", "-"),
    "block only": ("-", "13.33"),
}
_PAPER_DIRECT = {"S, T and I": ("-", "85.56"), "without S": ("38.95", "-"), "block only": ("-", "0.00")}
_PAPER_CORRECTIONS = {"one": ("0", "1.00"), "2": ("+1.29", "1.45"), "3": ("-", "1.90")}


def ablation_page(folder: Path) -> dict[str, str]:
    """Return the page by its file name. Raises: InputError where the result file is missing or is none."""
    return {PAGE: single_page(folder / RESULT, _page, written_by="`interlock bench ablation`")}


def page_of(found: Document) -> str:
    """Return the page of a result document of this version."""
    return "\n".join(_page(found))


def _page(found: Document) -> Iterator[str]:
    rows: Sequence[Mapping[str, Any]] = found["rows"]
    yield "# What each check, each correction and each member of a panel is worth\n"
    yield (
        "Made by `make results` from `benchmarks/results/oracles.json`; do not edit. Measured by "
        f"`{found['command']}`: {found['of_cases']} cases of AgentDojo {found['made_with']['suites_version']}, "
        f"{found['runs']:,} runs through the real fold, no model.\n"
    )
    yield (
        "**Measured:** agents that are played from the suites' ground truths, the real decision with the real "
        "`corrections` and `operator` keys, the suites' own judges, panels counted by the product's own code. "
        "**Simulated:** the oracles' answers. A check catches what a perfect one of its kind could see (S: a tool "
        "that no task of the suite needs; T: one that this task does not need; I: a value that steers, and stands "
        "neither in the user's words nor in the task's own calls) and errs at the rate given, both ways, one draw a "
        "check and an effect. **Claimed by the paper alone:** the columns *paper*; its agents and its visor are "
        "models, so its figures are shown for their shape. No row here says how well a real model judges: "
        "[oracles.md](../oracles.md) says how that is measured.\n"
    )
    yield "Shares in per cent. *BU*, *UA*, *ASR* and the agents: [bench.md](../bench.md#how-it-is-counted).\n"
    yield "## A blind visor without one of its checks (shaped like AgentVisor's figure 4)\n"
    yield "Nothing vouches (`--policy deny`), so the visor alone stands between the agent and each effect.\n"
    yield _checks(rows)
    yield (
        "*block only*: the first refusal ends the run. A dash: the paper's text gives no figure (its full visor: at "
        "most 1.7 % ASR).\n"
    )
    yield "## Direct injection: the user's own words hold the injected goal\n"
    yield (
        "The goal stands behind the task, and the agent obeys it first. T and I can see nothing of it, since the user "
        "asks for it; S knows the job that the operator deployed the assistant for (the tools of this task).\n"
    )
    yield _direct(rows)
    yield "## How often a refused action may be mended (shaped like AgentVisor's table 3)\n"
    yield (
        "`corrections: N` of the policy: after N refused corrections of one kind of action nobody is asked about it "
        "any more. Calls of the oracle stand for the paper's latency, as nothing here takes a model's time.\n"
    )
    yield _corrections(rows)
    yield "## Seeing, blind, and panels of them, at equal rates of error\n"
    yield (
        "One word an effect, the same rate both ways. A text that persuades the seeing oracle persuades it in its "
        "whole case; the blind one errs on each effect by itself. That they err independently of each other is "
        "assumed: it is what a panel lives by, and nothing here shows it of two real models.\n"
    )
    yield _oracles(rows, "panel")
    yield "## The same behind Interlock's policy\n"
    yield "The role files vouch (`--policy full`); only what they do not vouch for is asked about.\n"
    yield _oracles(rows, "policy")


def _of(rows: Sequence[Mapping[str, Any]], table: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["table"] == table]


def _checks(rows: Sequence[Mapping[str, Any]]) -> str:
    head = [
        "visor",
        "error",
        "BU",
        "UA",
        "ASR obedient",
        "ASR hijack",
        "ASR stubborn",
        "ASR, paper",
        "UA, paper",
    ]
    return markdown(
        head,
        [
            [
                row["name"],
                _share(row["error"]),
                _share(row["benign_utility"]),
                _share(row["agents"]["obedient"]["utility_under_attack"]),
                *(
                    _share(row["agents"][agent]["attack_success"])
                    for agent in ("obedient", "hijack", "stubborn")
                ),
                *_PAPER_CHECKS.get(row["name"], ("-", "-")),
            ]
            for row in _of(rows, "checks")
        ],
    )


def _direct(rows: Sequence[Mapping[str, Any]]) -> str:
    return markdown(
        ["visor", "error", "BU", "UA", "ASR", "ASR, paper", "UA, paper"],
        [
            [
                row["name"],
                _share(row["error"]),
                _share(row["benign_utility"]),
                _share(row["agents"]["obedient"]["utility_under_attack"]),
                _share(row["agents"]["obedient"]["attack_success"]),
                *_PAPER_DIRECT.get(row["name"], ("-", "-")),
            ]
            for row in _of(rows, "direct")
        ],
    )


def _corrections(rows: Sequence[Mapping[str, Any]]) -> str:
    found = _of(rows, "corrections")
    one = {
        row["error"]: row["agents"]["obedient"]["calls_under_attack"] for row in found if row["name"] == "one"
    }
    return markdown(
        [
            *("corrections", "error", "BU", "UA obedient", "UA stubborn", "ASR obedient", "ASR stubborn"),
            *("calls a run", "to one", "UA, paper", "latency, paper"),
        ],
        [
            [
                row["name"],
                _share(row["error"]),
                _share(row["benign_utility"]),
                *(_share(row["agents"][agent]["utility_under_attack"]) for agent in ("obedient", "stubborn")),
                *(_share(row["agents"][agent]["attack_success"]) for agent in ("obedient", "stubborn")),
                f"{row['agents']['obedient']['calls_under_attack']:.2f}",
                f"{row['agents']['obedient']['calls_under_attack'] / one[row['error']]:.2f}",
                *_PAPER_CORRECTIONS.get(row["name"], ("-", "-")),
            ]
            for row in found
        ],
    )


def _oracles(rows: Sequence[Mapping[str, Any]], table: str) -> str:
    return markdown(
        [
            *("oracle", "error", "BU", "UA", "ASR obedient", "ASR hijack", "ASR stubborn"),
            *("calls, benign", "calls, attacked"),
        ],
        [
            [
                row["name"],
                _share(row["error"]),
                _share(row["benign_utility"]),
                _share(row["agents"]["obedient"]["utility_under_attack"]),
                *(
                    _share(row["agents"][agent]["attack_success"])
                    for agent in ("obedient", "hijack", "stubborn")
                ),
                f"{row['calls_benign']:.2f}",
                f"{row['agents']['obedient']['calls_under_attack']:.2f}",
            ]
            for row in _of(rows, table)
        ],
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
