"""Many cases of AgentDojo: run, kept, and counted into one document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from interlock.bench import dojo, metrics
from interlock.bench.cases import Case, CaseResult
from interlock.bench.compare import SCHEMA
from interlock.bench.dojo_roles import Level, role_text
from interlock.bench.dojo_suites import SUITES, VERSION, installed
from interlock.bench.made_with import commit, digests, source_digest
from interlock.bench.result_folder import Document, ResultFolder
from interlock.bench.spread import streamed
from interlock.model.errors import InputError
from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How much at once, and where to. Takes: `jobs`, processes; `ray`, a cluster's address; `out`, a result folder;
    `told`, called with how many are done, and of how many."""

    jobs: int = 1
    ray: str | None = None
    out: Path | None = None
    told: Callable[[int, int], None] = lambda _done, _of: None


def with_roles(settings: dojo.Settings, suites: Iterable[str], folder: Path | None) -> dojo.Settings:
    """Read the role files of some suites: the shipped, or SUITE.yaml of a folder. Raises: InputError."""
    return replace(settings, roles={suite: _roles_of(suite, folder) for suite in sorted(suites)})


def _roles_of(suite: str, folder: Path | None) -> str:
    if folder is None:
        return role_text(suite)
    try:
        return (folder / f"{suite}.yaml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise InputError(
            f"no role file for `{suite}` in `{folder}` ({type(failure).__name__})", hint="name it SUITE.yaml"
        ) from None


def header(settings: dojo.Settings, timing: str, suites: Sequence[str]) -> dict[str, Any]:
    """Return all that the results depend on."""
    return {
        "schema": SCHEMA,
        "bench": "agentdojo",
        "command": command(settings, f"--agent {settings.agent.value} --timing {timing}", suites),
        "settings": {
            "agent": settings.agent.value,
            "timing": timing,
            "oracle": settings.oracle,
            "policy": settings.level.value,
            "suites": sorted(suites),
            **({"plan": settings.plan} if settings.plan else {}),
        },
        "made_with": made_with(settings),
    }


def command(settings: dojo.Settings, words: str, suites: Sequence[str]) -> str:
    """Return the command that makes a result. Takes: `words`, what is not said by the settings; how much at once and
    where to are left out: no result depends on them."""
    chosen = [] if sorted(suites) == sorted(SUITES) else [f"--suite {each}" for each in sorted(suites)]
    policy = [] if settings.level is Level.FULL else [f"--policy {settings.level.value}"]
    plan = [f"--plan {settings.plan}"] if settings.plan else []
    return " ".join(
        ["interlock bench agentdojo", words, f"--oracle {settings.oracle}", *policy, *plan, *chosen]
    )


def made_with(settings: dojo.Settings) -> dict[str, Any]:
    """Return what the product, the suites and the files of the user's are. Raises: InputError."""
    path = settings.oracle.removeprefix(dojo.GIVEN)
    try:
        given = (
            {} if path == settings.oracle else digests({"answers": Path(path).read_text(encoding="utf-8")})
        )
    except (OSError, UnicodeDecodeError):
        raise InputError(f"`{path}` cannot be read", hint="check the name after `answers:`") from None
    return {
        **given,
        **({"injections": _digest(settings)} if settings.injections else {}),
        "commit": commit(),
        "source": source_digest(),
        "agentdojo": installed(),
        "suites_version": VERSION,
        "roles": digests(settings.roles),
    }


def _digest(settings: dojo.Settings) -> str:
    found = sorted((*key, *texts) for key, texts in settings.injections.items())
    return digests({"": json.dumps(found)})[""]


def run(
    cases: Sequence[Case],
    settings: dojo.Settings,
    head: Document,
    how: How,
    work: Callable[[Case], CaseResult] | None = None,
) -> tuple[CaseResult, ...]:
    """Run some cases; those whose results are in the folder already are read from there.

    Takes: `head`, see `header`; `work`, what runs a case, a played agent where it is None.
    Raises: InputError.
    """
    folder = None if how.out is None else ResultFolder.opened(how.out, head)
    found: dict[str, CaseResult] = {}
    for case in cases if folder is not None else ():
        kept = folder.kept(case.id) if folder is not None else None
        if kept is not None:
            found[case.id] = _read(case.id, kept)
    open_ones = [case for case in cases if case.id not in found]
    how.told(len(found), len(cases))
    for made in streamed(
        work or partial(dojo.run_case, settings=settings), open_ones, jobs=how.jobs, ray=how.ray
    ):
        if folder is not None:
            folder.keep(made.case.id, dojo.as_json(made))
        found[made.case.id] = made
        how.told(len(found), len(cases))
    ordered = tuple(found[case.id] for case in cases)
    if folder is not None:
        folder.finish(document(ordered, head))
    return ordered


def _read(case_id: str, values: Document) -> CaseResult:
    try:
        return dojo.from_json(dict(values))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"the result of `{case_id}` in --out cannot be read",
            hint="delete its file: the case is run again",
        ) from None


def document(results: Sequence[CaseResult], head: Document) -> dict[str, Any]:
    """Return the result document: per case, in total, and what remains by kind."""
    return {
        **head,
        "cases": [dojo.as_json(each) for each in results],
        **summary(results),
    }


def summary(results: Sequence[CaseResult]) -> dict[str, Any]:
    """Return the figures of some results, without the cases."""
    return {
        "totals": {name: asdict(found) for name, found in metrics.per_suite(results).items()},
        "slips": metrics.slips(results),
        "false_deferrals": metrics.false_deferrals(results),
        "false_deferrals_under_attack": metrics.false_deferrals(results, attacked=True),
    }
