"""Parts of the role files of recorded runs are switched on one by one."""

from __future__ import annotations

import pytest

from interlock.bench.agentdyn import RunSeen, role_text
from interlock.bench.recorded_frontier import STEPS, frontier, without
from interlock.policy.loading import load_policy
from interlock.policy.tools.roles import ToolRoles

SUITES = ("dailylife", "github", "shopping")


@pytest.mark.parametrize("suite", SUITES)
def test_the_last_step_is_the_role_file_as_it_is(suite: str) -> None:
    asked: list[str] = []

    def measure(changed: object) -> tuple[RunSeen, ...]:
        assert callable(changed)
        asked.append(changed(role_text(suite)))
        return ()

    steps = frontier(measure)
    assert [step["with"] for step in steps] == [name for name, _ in STEPS]
    assert asked[-1] == role_text(suite)
    assert len(set(asked)) >= 4


@pytest.mark.parametrize("suite", SUITES)
def test_what_is_switched_off_vouches_for_nothing(suite: str) -> None:
    off = frozenset(key for _, key in STEPS if key)
    tools = load_policy(without(role_text(suite), off), filename="roles").tools
    assert not tools.delegations
    for tool in tools.tools:
        assert not any((tool.chooses, tool.links, tool.output.makes, tool.output.fields))
        assert tool.output.trust == "none"
    kept = load_policy(role_text(suite), filename="roles").tools
    assert _steering(tools) == _steering(kept)


def _steering(roles: ToolRoles) -> dict[str, tuple[dict[str, str], frozenset[str]]]:
    return {tool.name: (dict(tool.steers), frozenset(tool.asks)) for tool in roles.tools}
