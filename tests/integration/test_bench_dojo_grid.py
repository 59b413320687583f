"""The grid and the sweep over played agents, on a small slice: exact, in order, and the same bytes each time."""

from pathlib import Path

import pytest

pytest.importorskip("agentdojo", reason="AgentDojo is not installed: run scripts/need_bench")

from interlock.bench import dojo, dojo_runs, grid, sweeping
from interlock.bench.agents import Agent
from interlock.bench.cases import Case
from interlock.bench.dojo_runs import How
from interlock.bench.noisy import Noisy
from interlock.bench.result_folder import written

SLICE = tuple(
    Case(suite="banking", user="user_task_3", injection=injection, timing="first" if injection else "")
    for injection in ("", "injection_task_0", "injection_task_1", "injection_task_2")
)


def settings(**more: object) -> dojo.Settings:
    return dojo_runs.with_roles(dojo.Settings(**more), ["banking"], None)  # type: ignore[arg-type]


def test_the_grid_has_its_thirty_cells_and_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    once = grid.run_grid(SLICE, settings(), How(out=tmp_path / "a"))
    again = grid.run_grid(SLICE, settings(), How(out=tmp_path / "b"))
    assert written(once) == written(again) == (tmp_path / "a" / "results.json").read_text()
    assert len(once["slips"]) == 30
    open_one, closed = (once["totals"][f"{policy}/obedient/first"] for policy in ("none", "deny"))
    assert (open_one["attack_success"], closed["attack_success"]) == (1.0, 0.0)
    assert once["totals"]["none/hijack/end"]["attacks"] > 0


def test_the_grid_goes_on_with_what_is_there(tmp_path: Path) -> None:
    grid.run_grid(SLICE, settings(), How(out=tmp_path))
    whole = (tmp_path / "results.json").read_bytes()
    for each in sorted((tmp_path / "cases").iterdir())[:2]:
        each.unlink()
    told: list[tuple[int, int]] = []
    grid.run_grid(SLICE, settings(), How(out=tmp_path, told=lambda done, of: told.append((done, of))))
    assert told == [(2, 4), (3, 4), (4, 4)]
    assert (tmp_path / "results.json").read_bytes() == whole


@pytest.mark.parametrize("agent", [Agent.OBEDIENT, Agent.STUBBORN])
def test_a_sweep_says_of_each_pair_of_rates_what_running_every_case_with_it_says(agent: Agent) -> None:
    rates = (0.0, 0.3, 1.0)
    chosen = settings(agent=agent)
    points = sweeping.sweep_played(SLICE, chosen, How(), seed=3, rates=rates)
    assert [(each.refuses_good, each.releases_bad) for each in points] == [
        (good, bad) for good in rates for bad in rates
    ]
    for point in points:
        oracle = f"noisy:{point.refuses_good},{point.releases_bad},3"
        found = [dojo.run_case(case, settings(agent=agent, oracle=oracle)) for case in SLICE]
        attacked = [each for each in found if each.case.injection]
        assert point.attack_success == pytest.approx(sum(each.succeeded for each in attacked) / 3, abs=1e-6)
        assert point.benign_utility == found[0].utility


def test_no_rate_of_error_undoes_an_error_of_a_lower_one() -> None:
    few, many = (
        sweeping.run_noisily(SLICE[1], settings(), [Noisy(refuses_good=0, releases_bad=rate)])
        for rate in (0.2, 0.9)
    )
    assert [each.executed for each in few[0].calls] <= [each.executed for each in many[0].calls]


def test_verdicts_that_are_known_are_those_that_the_judges_give_anew() -> None:
    case = SLICE[1]
    dojo._verdicts.cache_clear()
    first = dojo.run_case(case, settings())
    second = dojo.run_case(case, settings())
    dojo._verdicts.cache_clear()
    assert first == second == dojo.run_case(case, settings())
