"""The page `docs/results/oracle-cost.md`, and the result file that it is made from. Pure but for reading it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interlock.bench.compare import Document
from interlock.bench.single_page import single_page
from interlock.bench.tables import markdown

RESULT = "oracle-cost.json"
PAGE = "oracle-cost.md"
BENIGN_GOAL, ATTACKED_GOAL = 0.10, 0.20


def cost_page(folder: Path) -> dict[str, str]:
    """Return the page by its file name. Raises: InputError where the result file is missing or is none."""
    return {PAGE: single_page(folder / RESULT, _page, written_by="`interlock bench cost`")}


def page_of(found: Document) -> str:
    """Return the page of a result document of this version."""
    return "\n".join(_page(found))


def _page(found: Document) -> Iterator[str]:
    rows: Sequence[Mapping[str, Any]] = found["rows"]
    yield "# What the seeing oracle costs beside the agent\n"
    yield (
        "Made by `make results` from `benchmarks/results/oracle-cost.json`; do not edit. Measured by "
        f"`{found['command']}`.\n"
    )
    yield (
        "**Measured:** how often policy asks (the real fold, the shipped role files), and the product's own prompts, "
        "one for each question, over what the run had read until then. **Counted, not run:** the model, which answers "
        "as somebody who knows, in a reason of usual length. A token is four characters, on both sides. AgentDojo's "
        "agents are played: they say nothing, plan nothing and take the shortest way, so the agent's side is the "
        "least that it can be; under attack each of the 629 obeys the injection. AgentDyn's are the recorded runs of "
        "two real models, without an oracle in them.\n"
    )
    yield (
        "*with tools*: what a model is sent in each turn holds the definitions of all tools, and so does the bill; the "
        "schema of the oracle's answer is then counted too. AgentDyn's definitions were not recorded: they are counted "
        f"as the mean of AgentDojo's, {found['a_definition']:,} characters a tool.\n"
    )
    yield (
        f"Goal: at most {_share(BENIGN_GOAL)} % benign and {_share(ATTACKED_GOAL)} % under attack. KAIROS reports 17.7 "
        "and 33.6 % of its agents' tokens (its §IV-E; real models, so a claim of the paper alone).\n"
    )
    for bench in dict.fromkeys(row["bench"] for row in rows):
        yield f"## {bench}\n"
        yield _table([row for row in rows if row["bench"] == bench])


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    return markdown(
        [
            *("runs of", "", "runs", "calls a run", "runs without a call, %", "tokens a call"),
            *("oracle, tokens a run", "agent, tokens a run", "with tools"),
            *("oracle over agent, messages alone, %", "with tools, %", "goal, %"),
        ],
        [
            [
                row["group"],
                "attacked" if row["attacked"] else "benign",
                str(row["runs"]),
                f"{row['calls_a_run']:.2f}",
                _share(row["runs_without_a_call"]),
                "-" if row["tokens_a_call"] is None else str(row["tokens_a_call"]),
                str(row["oracle_tokens_a_run"]),
                str(row["agent_tokens_a_run"]),
                str(row["agent_tokens_a_run_with_tools"]),
                _share(row["over_agent"]),
                _share(row["over_agent_with_tools"]),
                _share(ATTACKED_GOAL if row["attacked"] else BENIGN_GOAL),
            ]
            for row in rows
        ],
    )


def _share(value: float) -> str:
    return f"{100 * value:.1f}"
