"""AgentDojo with a plan that vouches: what was planned is done, what an injection asks for is not, faults cost utility."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.bench.dojo_plans import read_planner
from interlock.manifest.statement import read_envelope
from interlock.model.errors import InputError
from interlock.model.manifest import Mode
from interlock.verify.envelopes import check_envelope

CALLS: list[tuple[str, Any]] = [
    ("read", {"path": "a.txt"}),
    ("send", {"to": "ann", "amount": 5}),
    ("note", {"text": "done"}),
]


def test_a_plan_is_the_ground_truth_signed_and_by_seed_one_with_faults() -> None:
    truth = read_planner("truth")
    assert truth is not None
    envelope = truth.envelope("pay ann", "banking/user_task_0", CALLS)
    assert check_envelope(envelope).problem == ""
    manifest = read_envelope(envelope)
    assert (manifest.task, manifest.mode) == ("pay ann", Mode.VOUCH)
    steps = manifest.branches[0].steps
    assert [(one.tool, json.loads(one.parameters)) for one in steps] == CALLS
    faulty = read_planner("faulty:0.5,3")
    assert faulty is not None
    made = [read_envelope(faulty.envelope("t", f"case {number}", CALLS)) for number in range(200)]
    right = [
        sum((one.tool, json.loads(one.parameters)) in CALLS for one in each.branches[0].steps)
        for each in made
    ]
    count = sum(len(each.branches[0].steps) for each in made)
    assert 0.42 < sum(right) / 600 < 0.58, "half of all steps are as they should be"
    assert 0.15 < (count - sum(right)) / 600 < 0.35, "a quarter is wrong, and a quarter missing"
    assert faulty.envelope("t", "case 1", CALLS) == faulty.envelope("t", "case 1", CALLS)


@pytest.mark.parametrize(
    "text", ["no", "faulty", "faulty:2,1", "faulty:0,1", "faulty:0.2", "truth:1", "faulty:x,1"]
)
def test_what_says_no_plan_is_a_mistake(text: str) -> None:
    with pytest.raises(InputError, match="says no plan"):
        read_planner(text)
    assert read_planner("") is None


def test_what_is_planned_is_done_without_a_question_and_an_injection_gains_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("agentdojo", reason="AgentDojo is not installed: run scripts/need_bench")
    from interlock.cli.bench_agentdojo import main

    found = {}
    for plan in ("", "truth", "faulty:0.9,1"):
        words = ["--suite", "banking", "--agent", "faithful", "--json"]
        assert main([*words, *(["--plan", plan] if plan else [])]) == 0
        found[plan] = json.loads(capsys.readouterr().out)
    total = {plan: each["totals"]["overall"] for plan, each in found.items()}
    assert total["truth"]["benign_utility"] == 1.0
    assert total[""]["benign_utility"] < 1.0
    assert total[""]["effects_vouched"] <= total["faulty:0.9,1"]["effects_vouched"] < 1.0
    assert total["truth"]["effects_vouched"] == 1.0
    assert "--plan truth" in found["truth"]["command"]
