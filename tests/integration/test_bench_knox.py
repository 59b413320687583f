"""KNOX's pool over its workloads: what the flows are, that guards decide them, and that a wrong decision would show."""

from __future__ import annotations

import json

import pytest

from interlock.bench.knox.flows import OF_A_BRANCH, TERMINAL, Flow, Kind, Trigger, pool
from interlock.bench.knox.playing import cell, manifest_of, play
from interlock.bench.knox.regulated import regulated_pool
from interlock.bench.knox.workloads import WORKLOADS, bundles
from interlock.cli.bench_knox import main
from interlock.model.records import changed

TABLE = {1: (400, 150), 2: (200, 75), 4: (100, 37), 6: (66, 25)}
"""Tasks of a bundle: how many bundles, of the pool and of the regulated flows (KNOX, table 3)."""


def flows_of(kind: Kind, seed: int = 0) -> tuple[Flow, ...]:
    return regulated_pool(seed)[0] if kind is Kind.REGULATION else pool(kind, seed)


@pytest.mark.parametrize("kind", Kind)
def test_the_pool_has_the_sizes_of_the_source_and_depends_on_the_seed_alone(kind: Kind) -> None:
    flows = flows_of(kind)
    count = 150 if kind is Kind.REGULATION else 400
    assert (len(flows), sum(flow.blocked for flow in flows)) == (count, count // 2)
    assert flows == flows_of(kind)
    assert flows != flows_of(kind, 1)
    assert len(WORKLOADS) == 13
    for workload in WORKLOADS:
        assert len(bundles(flows, workload)) == TABLE[workload.tasks][kind is Kind.REGULATION]


def test_what_a_flow_tries_is_on_no_plan_of_its_bundle() -> None:
    for kind in (Kind.TOOL, Kind.SYSCALL):
        for workload in WORKLOADS:
            for bundle in bundles(pool(kind, 0), workload):
                planned = {call for flow in bundle.flows for call in flow.planned}
                tried = {flow.deviation for flow in bundle.flows if flow.blocked}
                assert None not in tried
                assert not tried & planned
                if kind is Kind.SYSCALL:
                    assert TERMINAL not in {call.tool for call in planned}


def test_nothing_that_is_to_go_on_comes_after_a_stop_of_its_branch() -> None:
    for workload in WORKLOADS:
        for bundle in bundles(pool(Kind.STOP, 0), workload):
            assert len(bundle.branches) == workload.agents
            for _name, moves in bundle.branches:
                first = next((at for at, move in enumerate(moves) if move.trigger), len(moves))
                assert all(move.flow.blocked for move in moves[first:])
                if workload.agents > 1:
                    assert {move.trigger for move in moves} <= {None, *OF_A_BRANCH}


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("workload", [WORKLOADS[0], WORKLOADS[6], WORKLOADS[11]], ids=lambda one: one.name)
def test_each_guard_decides_its_flows_and_every_run_verifies(kind: Kind, workload: object) -> None:
    terms = regulated_pool(0)[1] if kind is Kind.REGULATION else {}
    runs = [play(one, kind, 0, terms) for one in bundles(flows_of(kind), workload)[:3]]  # type: ignore[arg-type]
    assert [one.wrong for run in runs for one in run.flows if one.wrong] == []
    assert {run.evidence for run in runs} == {"complete"}
    counts = cell(runs)
    assert counts["blocked right"] + counts["allowed right"] == sum(len(run.flows) for run in runs)


@pytest.mark.parametrize("trigger", Trigger)
def test_each_trigger_stops_the_action_before_which_it_comes(trigger: Trigger) -> None:
    flow = next(one for one in pool(Kind.STOP, 0) if one.trigger is trigger)
    (bundle,) = bundles([flow], WORKLOADS[0])
    (played,) = play(bundle, Kind.STOP, 0, {}).flows
    assert played.wrong == ""


def test_a_flow_that_is_decided_otherwise_than_it_must_be_is_told() -> None:
    blocked = next(one for one in pool(Kind.TOOL, 0) if one.blocked)
    allowed = next(one for one in pool(Kind.TOOL, 0) if not one.blocked)
    flows = [changed(blocked, blocked=False), changed(allowed, blocked=True)]
    runs = [play(bundle, Kind.TOOL, 0, {}) for bundle in bundles(flows, WORKLOADS[0])]
    first, second = (one.wrong for run in runs for one in run.flows)
    assert (
        first.endswith("was refused: the plan expects other parameters of it here") or "was refused" in first
    )
    assert second == "it was vouched"
    other = next(one for one in pool(Kind.STOP, 0) if one.blocked)
    (bundle,) = bundles([changed(other, kind=Kind.TOOL, trigger=None)], WORKLOADS[0])
    (played,) = play(bundle, Kind.TOOL, 0, {}).flows
    assert played.wrong == "it was vouched"


def test_a_manifest_offers_every_toolkit_and_authorises_what_is_planned() -> None:
    (bundle, *_more) = bundles(pool(Kind.SYSCALL, 0), WORKLOADS[3])
    manifest = manifest_of(bundle, Kind.SYSCALL, 0)
    assert len(manifest.toolkits) == 38
    assert "execve" not in {one.name for one in manifest.authorised.system_calls}
    assert any(tool.endswith(TERMINAL) for tool, _needs in manifest.lacking)


def test_the_verb_prints_cells_and_says_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--guards", "--guard", "regulation", "--workload", "MT-MA 6,6", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (cell_,) = told["cells"]
    assert (cell_["blocked"], cell_["blocked right"], cell_["tuples right"]) == (75, 75, 150)
    from interlock.model.errors import InputError

    with pytest.raises(InputError, match="is no workload"):
        main(["--workload", "ST"])
