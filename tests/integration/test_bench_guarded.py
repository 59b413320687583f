"""AgentDojo through the SDK: each call with the same fate as through the fold alone, and a ledger that verifies."""

from __future__ import annotations

import pytest

pytest.importorskip("agentdojo", reason="AgentDojo is not installed: run scripts/need_bench")

from interlock.bench import dojo
from interlock.bench.agents import Agent
from interlock.bench.cases import Case
from interlock.bench.dojo_gate import Gate
from interlock.bench.folding import Folding
from interlock.bench.guarded_folding import GuardedFolding
from interlock.verify import verify_path

FEW = [
    Case(suite=suite, user=f"user_task_{user}", injection=injection, timing="first" if injection else "")
    for suite, users in (("banking", (0, 3)), ("slack", (1, 5)), ("travel", (2,)), ("workspace", (7, 13)))
    for user in users
    for injection in ("", "injection_task_3")
]


class Verified(GuardedFolding):
    """Verifies each run's ledger when it is finished."""

    seen = 0

    def finish(self) -> None:
        super().finish()
        report = verify_path(f"{self.path}/ledger", replay=True)
        assert report.verdict == "complete", report
        type(self).seen += 1


@pytest.mark.parametrize("oracle", ["strict", pytest.param("ideal", marks=pytest.mark.slow)])
def test_a_few_cases_come_to_the_same(oracle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = dojo.Settings(agent=Agent.OBEDIENT, oracle=oracle)
    assert Gate.folds is GuardedFolding
    monkeypatch.setattr(Gate, "folds", Folding)
    alone = [dojo.run_case(case, settings) for case in FEW]
    monkeypatch.setattr(Gate, "folds", Verified)
    assert [dojo.run_case(case, settings) for case in FEW] == alone
    assert Verified.seen


def test_what_the_oracle_raises_is_no_refusal() -> None:
    def breaks(_asked: object) -> bool:
        raise LookupError("gone")

    case = Case(suite="banking", user="user_task_0", injection="injection_task_1", timing="first")
    with pytest.raises(LookupError, match="gone"):
        dojo.run_case(case, dojo.Settings(agent=Agent.OBEDIENT), breaks)
