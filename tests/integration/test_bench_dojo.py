"""AgentDojo's suites as the bench loads them."""

import pytest

pytest.importorskip("agentdojo", reason="AgentDojo is not installed: run scripts/need_bench")

from interlock.bench.dojo import cases
from interlock.bench.dojo_suites import SUITES, environment, payload


def test_all_629_attacked_cases_are_there() -> None:
    assert sum(bool(each.injection) for each in cases(SUITES)) == 629


def test_an_attacked_environment_loads_with_the_escaped_text_in_it() -> None:
    injections = payload("banking", "user_task_0", "injection_task_0")
    assert environment("banking", injections) == environment("banking", injections)
    assert environment("banking", injections) is not environment("banking", injections)
