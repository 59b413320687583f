"""The search over many trajectories counts what it compared, and keeps what differs."""

import json
from typing import Any

import pytest
from tests.differential import many, test_tools


@pytest.mark.parametrize("kind", sorted(many.KINDS))
def test_a_part_compares_as_many_as_it_says(kind: str) -> None:
    counts = many.search(kind, 1, 20)
    assert counts.trajectories == {kind: 20}
    assert counts.decisions.total() >= 20
    assert not counts.differ


def test_what_differs_is_kept_so_that_it_can_be_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(policy: dict[str, Any], task: str, trajectory: list[Any]) -> list[str]:
        assert len(trajectory) < 6
        return test_tools.compare(policy, task, trajectory)

    cases, _compare, names = many.KINDS["calls"]
    monkeypatch.setitem(many.KINDS, "calls", (cases, differs, names))
    (case,) = many.search("calls", 1, 60).differ
    kept = json.loads(case)
    assert len(kept["trajectory"]) >= 6
    assert test_tools.compare(kept["policy"], kept["task"], kept["trajectory"])


def test_the_parts_make_up_the_whole_and_each_has_a_seed_of_its_own() -> None:
    made = many.parts(10_000, 5)
    assert sum(wanted for _kind, _seed, wanted in made) >= 10_000
    assert len({seed for _kind, seed, _wanted in made}) == len(made)
    assert {kind for kind, _seed, _wanted in made} == set(many.KINDS)
