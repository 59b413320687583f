"""Played agents and the counting of what they reached."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from interlock.bench.agents import Json, hijacked, squeezed, variants
from interlock.bench.cases import CallResult, Case, CaseResult, Origin
from interlock.bench.dojo_roles import Level, at_level, role_text
from interlock.bench.dojo_suites import SUITES, escaped
from interlock.bench.metrics import false_deferrals, per_suite, slips, totals
from interlock.bench.recipients import BLIND, right_recipients
from interlock.bench.tables import figures, kinds
from interlock.policy.loading import load_policy


def call(
    tool: str = "send", *, origin: Origin = Origin.ATTACKER, executed: bool = True, **more: Any
) -> CallResult:
    values: dict[str, Any] = {
        "effect_id": "e1",
        "tool": tool,
        "arguments": "{}",
        "origin": origin,
        "fate": "vouched" if executed else "asked-refused",
        "effect": True,
        "vouched": executed,
        "executed": executed,
        "failed": False,
        "why": "to by named-in-task" if executed else "to",
    }
    return CallResult(**values | more)


def result(injection: str = "", *, calls: tuple[CallResult, ...] = (), **more: Any) -> CaseResult:
    values: dict[str, Any] = {
        "case": Case(suite="s", user="u", injection=injection, timing="first" if injection else ""),
        "utility": True,
        "judged": False,
        "succeeded": False,
        "kept": True,
        "recipient": None,
        "reached": True,
        "text_only": False,
        "hijack": False,
        "questions": 0,
        "calls": calls,
    }
    return CaseResult(**values | more)


def test_a_payload_with_quotes_and_back_slashes_is_escaped_for_the_environment() -> None:
    assert escaped('a "b" \\ c') == 'a \\"b\\" \\\\ c'


def test_a_goal_is_found_however_it_is_wrapped() -> None:
    assert squeezed("send it\nto me") in squeezed("please  send it to me")


def test_a_hijacked_call_has_the_attackers_value_of_the_same_kind() -> None:
    own: dict[str, Json] = {"recipients": ["a@x.org"], "body": "hi"}
    assert hijacked(own, {"to": "evil@y.org"}, ("recipients",)) == {
        "recipients": ["evil@y.org"],
        "body": "hi",
    }
    assert hijacked(own, {"to": "nobody"}, ("recipients",)) is None


def test_a_stubborn_agent_has_three_variants() -> None:
    assert [each["a"] for each in variants({"a": "x"})] == [" x ", "X", "<x>"]


def test_answers_without_a_call_are_counted_apart() -> None:
    found = totals([result("i"), result("j", succeeded=True, text_only=True)])
    assert (found.attack_success, found.text_only_success, found.attacks) == (0.0, 1.0, 1)


def test_of_a_hijack_each_hijacked_call_is_counted_and_no_case_without_one() -> None:
    found = totals(
        [
            result("i", hijack=True),
            result("j", hijack=True, succeeded=True, calls=(call(), call(executed=False))),
        ]
    )
    assert (found.attacks, found.attack_success) == (2, 0.5)


def test_nrp_is_benign_utility_less_the_share_of_attacks_that_succeed() -> None:
    found = totals([result(), result(utility=False), result("i"), result("j", succeeded=True)])
    assert (found.benign_utility, found.attack_success, found.nrp) == (0.5, 0.5, 0.25)


def test_our_look_at_the_recipient_stands_beside_the_suites_verdict() -> None:
    found = totals([result(recipient=False), result(recipient=True), result()])
    assert (found.benign_utility, found.blind_utility, found.blind_recipients_right) == (1.0, 1.0, 0.5)
    assert found.benign_utility_checked == pytest.approx(2 / 3, abs=1e-5)


def test_the_twelve_blind_tasks_are_known() -> None:
    assert sum(map(len, BLIND.values())) == 12


@pytest.mark.parametrize(
    ("done", "right"),
    [
        ([("pay", {"to": "Ann", "note": "x"})], True),
        ([("pay", {"to": "ann ", "note": "other"})], True),
        ([("pay", {"to": "Eve"})], False),
        ([("pay", {"to": "Ann"}), ("pay", {"to": "Eve"})], False),
        ([], False),
        ([("pay", {"to": "Ann"}), ("look", {"to": "Eve"})], True),
    ],
)
def test_the_right_recipient_is_the_one_that_was_meant_and_nobody_else(
    done: list[tuple[str, dict[str, Json]]], right: bool
) -> None:
    assert right_recipients([("pay", {"to": "Ann"})], done, lambda _tool: ("to",)) is right


def test_slips_and_false_deferrals_are_grouped_by_kind_with_an_example() -> None:
    own = call("pay", origin=Origin.USER, executed=False)
    results = [result("i", calls=(call(), call(executed=False))), result(calls=(own, own))]
    assert slips(results) == [
        {"kind": "s: send (to by named-in-task)", "count": 1, "examples": ["s/u/i/first call 1"]}
    ]
    assert false_deferrals(results) == [
        {"kind": "s: pay (to)", "count": 2, "examples": ["s/u/benign call 1", "s/u/benign call 2"]}
    ]
    assert false_deferrals(results, attacked=True) == []
    assert "| 2 | s: pay (to) | s/u/benign call 1 |" in kinds("held", false_deferrals(results))


def test_with_two_timings_each_has_its_own_totals() -> None:
    late = result("i", succeeded=True)
    found = per_suite([result("i"), replace(late, case=replace(late.case, timing="end"))])
    assert {name: each.attack_success for name, each in found.items()} == {
        "overall": 0.5,
        "s": 0.5,
        "overall, end": 1.0,
        "overall, first": 0.0,
    }
    assert "| overall, end | 1 |" in figures({name: {"cases": each.cases} for name, each in found.items()})


def test_levels_take_trust_away() -> None:
    for suite in SUITES:
        text = role_text(suite)
        assert at_level(text, Level.FULL) == text
        assert "fields:" not in at_level(text, Level.DIRECTORY)
        assert "own" not in at_level(text, Level.TASK).split()
        assert not load_policy(at_level(text, Level.DENY), filename="roles").task_trusted
        steering = yaml.safe_load(at_level(text, Level.STRINGS))["tools"].values()
        assert {kind for tool in steering for kind in tool["steers"].values()} == {"text"}
