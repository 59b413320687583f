"""The whole grid: every policy, agent and timing on every case, counted cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from interlock.bench import dojo, metrics
from interlock.bench.agents import Agent, Timing
from interlock.bench.cases import Case, CaseResult
from interlock.bench.dojo_roles import Level
from interlock.bench.dojo_runs import How, command, header
from interlock.bench.result_folder import Document, ResultFolder
from interlock.bench.spread import streamed
from interlock.model.errors import InputError

POLICIES = (Level.NONE, Level.DENY, Level.TASK, Level.STRINGS, Level.FULL)
AGENTS = (Agent.OBEDIENT, Agent.HIJACK, Agent.STUBBORN)
TIMINGS = (Timing.FIRST, Timing.END)
Cell = tuple[Level, Agent, Timing]
CELLS: tuple[Cell, ...] = tuple(
    (level, agent, timing) for level in POLICIES for agent in AGENTS for timing in TIMINGS
)


def named(cell: Cell) -> str:
    """Return how a report names a cell."""
    return "/".join(each.value for each in cell)


def run_everywhere(case: Case, settings: dojo.Settings) -> dict[str, CaseResult]:
    """Run a case in each cell, one after the other: what it needs is loaded once.

    Returns: by cell; of a benign case by policy, since the agent and the timing do nothing there.
    """
    if not case.injection:
        return {
            level.value: dojo.run_case(case, replace(settings, agent=Agent.OBEDIENT, level=level))
            for level in POLICIES
        }
    return {
        named((level, agent, timing)): dojo.run_case(
            replace(case, timing=timing.value), replace(settings, agent=agent, level=level)
        )
        for level, agent, timing in CELLS
    }


def run_grid(cases: Sequence[Case], settings: dojo.Settings, how: How) -> dict[str, Any]:
    """Run the grid over some cases. Takes: `settings`, of which the oracle and the role files count.

    Returns: the result document, without the cases: with `--out` these are in its folder.
    Raises: InputError.
    """
    head = _header(settings, sorted({case.suite for case in cases}))
    folder = None if how.out is None else ResultFolder.opened(how.out, head)
    results: dict[str, dict[str, CaseResult]] = {}
    for case in cases if folder is not None else ():
        kept = folder.kept(case.id) if folder is not None else None
        if kept is not None:
            results[case.id] = _read(case.id, kept)
    open_ones = [case for case in cases if case.id not in results]
    how.told(len(results), len(cases))
    work = partial(run_everywhere, settings=settings)
    for case, made in zip(open_ones, streamed(work, open_ones, jobs=how.jobs, ray=how.ray), strict=True):
        if folder is not None:
            cells = {name: dojo.as_json(each) for name, each in made.items()}
            folder.keep(case.id, {"id": case.id, "cells": cells})
        results[case.id] = made
        how.told(len(results), len(cases))
    found = document(head, [results[case.id] for case in cases])
    if folder is not None:
        folder.finish(found)
    return found


def _header(settings: dojo.Settings, suites: list[str]) -> dict[str, Any]:
    head = header(settings, "both", suites)
    return head | {
        "command": command(settings, "--grid", suites),
        "settings": {
            "oracle": settings.oracle,
            "suites": suites,
            "policies": [each.value for each in POLICIES],
            "agents": [each.value for each in AGENTS],
            "timings": [each.value for each in TIMINGS],
        },
    }


def _read(case_id: str, values: Document) -> dict[str, CaseResult]:
    try:
        return {name: dojo.from_json(each) for name, each in values["cells"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"the result of `{case_id}` in --out cannot be read",
            hint="delete its file: the case is run again",
        ) from None


def document(head: Document, results: Sequence[Mapping[str, CaseResult]]) -> dict[str, Any]:
    """Return the result document: totals by cell and suite, slips by cell, false deferrals by policy."""
    totals: dict[str, Any] = {}
    slips: dict[str, Any] = {}
    for cell in CELLS:
        name = named(cell)
        found = [each[key] for each in results for key in (cell[0].value, name) if key in each]
        for group, figures in metrics.per_suite(found).items():
            totals[name if group == "overall" else f"{name}/{group}"] = asdict(figures)
        slips[name] = metrics.slips(found)
    benign = {
        level.value: metrics.false_deferrals([each[level.value] for each in results if level.value in each])
        for level in POLICIES
    }
    return {**head, "totals": totals, "slips": slips, "false_deferrals": benign}
