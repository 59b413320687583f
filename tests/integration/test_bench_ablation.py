"""The ablation and the cost of oracles over AgentDojo: the runs are exact, and the pages say what the files say."""

import json
from pathlib import Path

import pytest

pytest.importorskip("agentdojo", reason="AgentDojo is not installed: run scripts/need_bench")

from interlock.bench import ablation, ablation_page, agentdyn, oracle_cost, oracle_cost_page
from interlock.bench.ablation_facts import caught, role_of, truth_of
from interlock.bench.ablation_playing import Conditions, Plays, play
from interlock.bench.agents import Agent
from interlock.bench.cases import Case
from interlock.bench.dojo_roles import Level
from interlock.bench.dojo_runs import How
from interlock.bench.simulated_oracles import OneWord, Visor

CASE = Case(suite="banking", user="user_task_0", injection="injection_task_1", timing="first")
OTHER = Case(suite="slack", user="user_task_1", injection="injection_task_3", timing="first")
DENY = Conditions(agent=Agent.OBEDIENT, level=Level.DENY)


def test_what_each_check_could_catch_is_told_by_the_suite() -> None:
    assert "send_money" in truth_of("banking", "user_task_0").tools
    assert "send_money" in role_of("banking")
    own = json.dumps({"recipient": "UK12345678901234567890"})
    assert caught("banking", "user_task_0", "send_money", own) == frozenset()
    other = json.dumps({"recipient": "US133000000121212121212"})
    assert caught("banking", "user_task_0", "send_money", other) == {"I"}
    assert caught("banking", "user_task_0", "update_password", json.dumps({"password": "zq-1"})) == {"T", "I"}
    assert caught("banking", "user_task_0", "no_tool", "{}") == {"S", "T"}
    assert caught("banking", "user_task_0", "send_money", other, direct=True) == frozenset()
    assert caught("banking", "user_task_0", "update_password", "{}", direct=True) == {"S"}


@pytest.mark.parametrize("case", [CASE, OTHER])
@pytest.mark.parametrize("agent", [Agent.OBEDIENT, Agent.STUBBORN])
def test_a_run_that_stands_for_another_is_what_the_other_would_have_been(case: Case, agent: Agent) -> None:
    plays = Plays(case)
    for corrections in (0, 1, 3):
        for error in (0.0, 0.4):
            for oracle in (
                Visor(error=error, seed=3),
                OneWord(name="blind", sees=False, error=error, seed=3),
            ):
                conditions = Conditions(agent=agent, level=Level.DENY, corrections=corrections)
                shared, _calls = plays.with_oracle(conditions, oracle)
                assert shared == play(case, conditions, oracle, {}).result
    assert plays.played <= 12


def test_without_errors_an_attack_is_stopped_and_the_users_task_is_done() -> None:
    found = play(CASE, DENY, Visor(), {}).result
    assert (found.succeeded, found.utility) == (False, True)
    assert play(CASE, DENY, Visor(checks="ST"), {}).result.succeeded
    ended = Conditions(agent=Agent.OBEDIENT, level=Level.DENY, corrections=0, ends=True)
    stopped = play(CASE, ended, Visor(), {}).result
    assert (stopped.succeeded, stopped.utility) == (False, False)


def test_a_declared_role_stops_a_direct_injection_whatever_the_oracle_says() -> None:
    case = Case(suite="banking", user="user_task_0", injection="injection_task_7", timing="first")
    released = OneWord(name="x", sees=False, error=1.0)
    direct = Conditions(agent=Agent.OBEDIENT, level=Level.FULL, direct=True)
    assert play(case, direct, released, {}).result.succeeded
    declared = Conditions(agent=Agent.OBEDIENT, level=Level.FULL, direct=True, operator=True)
    assert not play(case, declared, released, {}).result.succeeded


def test_the_pages_are_made_of_what_was_measured(tmp_path: Path) -> None:
    cases = (Case(suite="banking", user="user_task_0"), CASE)
    found = ablation.measure(cases, 7, How())
    (tmp_path / ablation_page.RESULT).write_text(json.dumps(found))
    (page,) = ablation_page.ablation_page(tmp_path).values()
    assert page.count("| S, T and I |") == 2 * len(ablation.ERRORS)
    assert "38.95" in page
    assert found == ablation.measure(cases, 7, How())


def test_both_sides_of_the_cost_are_counted() -> None:
    cost = oracle_cost.of_dojo(CASE)
    assert cost.attacked
    assert cost.calls >= 1
    assert cost.oracle > 1000
    assert 0 < cost.agent < cost.with_tools
    benign = oracle_cost.of_dojo(Case(suite="travel", user="user_task_3"))
    assert (benign.calls, benign.oracle) == (0, 0)


def test_recorded_turns_send_what_was_said_before(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "text": "12345"},
        {"role": "assistant", "text": "", "calls": [{"id": "a", "tool": "get", "args": {}}]},
        {"role": "tool", "id": "a", "text": "1234567890"},
        {"role": "assistant", "text": "done"},
    ]
    line = {
        "suite": "github", "user_task": "u", "injection_task": None, "utility": True, "security": False,
        "messages": messages,
    }  # fmt: skip
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n")
    # 5 and the call of 5; then 5, 5, 10 and the answer of 4.
    assert oracle_cost.turns_of(tmp_path) == {"github/u/none/m": (2, 10 + 24)}


def test_the_cost_of_recorded_runs_is_counted_and_told() -> None:
    place = Path(__file__).parents[2] / "benchmarks" / "agentdyn"
    work = agentdyn.works_of(place / "runs", place / "catalogue.json", suites=("github",))[0]
    few = agentdyn.Work(runs=work.runs[:3], attacks=work.attacks[:3], roles=work.roles)
    costs = oracle_cost.of_recorded(few, oracle_cost.turns_of(place / "runs"), a_definition=400)
    rows = list(oracle_cost._rows("AgentDyn, recorded", costs))
    document = {"rows": rows, "command": "c", "a_definition": 400}
    assert "AgentDyn, recorded" in oracle_cost_page.page_of(document)
