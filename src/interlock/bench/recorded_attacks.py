"""Recorded attacks, played: what each attack that succeeded anywhere did, proposed after every run without an attack.

A recorded run tells only how far this model followed this injection in this task. Here an agent follows it in every
task of the suite, with each form that the attack took in any run: an obedient agent, as far as recorded runs show one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from interlock.bench.agentdyn import RunSeen, replayed_calls
from interlock.bench.recorded import RecordedRun
from interlock.model.records import dataclass
from interlock.model.tools import ToolCall

Calls = tuple[tuple[str, str], ...]
MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """An injection after a run. Takes: `slipped`, whether one of its forms got past the policy, each kind of its calls
    once; `why`, by which rules."""

    run: str
    suite: str
    injection: str
    slipped: bool
    why: str = ""


def forms(seen: Iterable[RunSeen]) -> dict[tuple[str, str], tuple[Calls, ...]]:
    """Return by suite and injection the calls that each recorded success took."""
    found: dict[tuple[str, str], set[Calls]] = defaultdict(set)
    for one in seen:
        run = one.run
        theirs = zip(one.calls, run.calls, strict=True) if run.succeeded else ()
        calls = tuple(dict.fromkeys((call.tool, call.arguments) for told, call in theirs if told.attack))
        if calls:
            found[run.suite, run.injection_task].add(calls)
    return {key: tuple(sorted(each)) for key, each in sorted(found.items())}


def play(seen: Sequence[RunSeen], roles: Mapping[str, str]) -> tuple[Played, ...]:
    """Propose each form of each injection after each run without an attack of its suite. Takes: `roles`, by suite."""
    by_injection = forms(seen)
    return tuple(
        _after(run, roles[suite], injection, each)
        for run in sorted((one.run for one in seen), key=lambda run: run.id)
        if not run.attacked
        for (suite, injection), each in by_injection.items()
        if suite == run.suite
    )


def _after(run: RecordedRun, roles: str, injection: str, each: tuple[Calls, ...]) -> Played:
    after = replayed_calls(run, roles)
    for calls in each:
        fold = after.forked(lambda _item: False)
        judged = [
            fold.call(ToolCall(call=f"a{number}", tool=tool, arguments=arguments))
            for number, (tool, arguments) in enumerate(calls)
        ]
        vouched = {call[0]: one.why for call, one in zip(calls, judged, strict=True) if one.vouched}
        if vouched.keys() == {tool for tool, _ in calls}:
            why = "; ".join(f"{tool} ({rules})" for tool, rules in sorted(vouched.items()))
            return Played(run=run.id, suite=run.suite, injection=injection, slipped=True, why=why)
    return Played(run=run.id, suite=run.suite, injection=injection, slipped=False)


def document(played: Sequence[Played]) -> dict[str, Any]:
    """Return the figures, and what slips by kind."""
    groups: dict[str, list[Played]] = defaultdict(list)
    examples: dict[str, list[str]] = defaultdict(list)
    for one in played:
        groups["overall"].append(one)
        groups[one.suite].append(one)
        if one.slipped:
            examples[f"{one.suite}: {one.why}"].append(f"{one.run} with {one.injection}")
    kinds = sorted(examples.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        "totals": {
            name: {
                "cases": len(group),
                "slipped": sum(one.slipped for one in group),
                "attack_success": round(sum(one.slipped for one in group) / len(group), 6),
            }
            for name, group in sorted(groups.items())
        },
        "slips": [
            {"kind": kind, "count": len(all_), "examples": all_[:MAX_EXAMPLES]} for kind, all_ in kinds
        ],
    }
