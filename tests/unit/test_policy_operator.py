"""The operator's role and the number of corrections: what a policy may say, and what the role refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fakes.deferred import deferred

from interlock import policy as rules
from interlock.model.effects import Effect
from interlock.model.errors import PolicyError
from interlock.model.tools import ToolCall
from interlock.model.verdicts import Decision, ExceptionType, Guard, Verdict
from interlock.policy import Knowledge, load_policy
from interlock.policy.explaining import explain

TEXT = """version: 1
preset: none
operator:
  instruction: |
    You answer questions about orders.
  tools: [find_order, "shop/*"]
tools:
  find_order: {effect: read, steers: {id: name}}
  send_money: {effect: send, steers: {to: iban}}
cedar: |
  @id("all") permit(principal, action, resource);
"""


def verdict(text: str, effect: Effect) -> Verdict:
    policy = load_policy(text, filename="p")
    return rules.decide(policy, Knowledge.started(policy, "send money to X", 0), (effect,))[0]


def call(tool: str, server: str = "", text: str = TEXT) -> Effect:
    policy = load_policy(text, filename="p")
    made = ToolCall(call="c", tool=tool, arguments='{"to":"X"}', server=server)
    return rules.characterise_call(policy, Knowledge.started(policy, "t", 0), made, "e1")


@pytest.mark.parametrize(
    ("tool", "server", "held"),
    [
        ("find_order", "", True),
        ("find_order", "other", True),
        ("pay", "shop", True),
        ("send_money", "", False),
        ("pay", "", False),
        ("pay", "shop2", False),
        ("find_order_2", "", False),
    ],
)
def test_a_tool_outside_of_the_role_is_refused_before_any_rule(tool: str, server: str, held: bool) -> None:
    found = verdict(TEXT, call(tool, server))
    assert (found.decision is not Decision.REFUSE) is held
    if not held:
        assert found.exception is not None
        assert found.exception.type is ExceptionType.SUITABILITY
        assert (found.checks[0].guard, found.checks[0].rules) == (Guard.RULES, ("operator.role",))
        assert "`find_order`" in " ".join(found.exception.constraints)


@pytest.mark.parametrize(
    ("operations", "held"),
    [('["file.*"]', True), ("[file.create]", True), ("[net.read]", False), ("[]", False)],
)
def test_operations_bound_every_effect(operations: str, held: bool) -> None:
    text = f"version: 1\npreset: coding\ntrusted: [{{task: true}}]\noperator: {{operations: {operations}}}\n"
    effect, _ = deferred(1, "a.py")
    assert (verdict(text, effect).decision is Decision.RELEASE) is held


def test_the_agents_own_model_is_never_outside_of_the_role() -> None:
    operator = load_policy("version: 1\noperator: {operations: [file.create]}\n", filename="p").operator
    effect, _ = deferred(1, "a.py")
    assert operator.outside(replace(effect, operation="net.model")) == ""
    assert operator.outside(replace(effect, operation="net.read"))


def test_an_empty_list_of_tools_holds_none() -> None:
    text = TEXT.replace('[find_order, "shop/*"]', "[]")
    assert verdict(text, call("find_order")).decision is Decision.REFUSE


def test_who_speaks_of_the_operator_apart_does_not_trust_the_task_unless_it_says_so() -> None:
    assert load_policy("version: 1\npreset: coding\n", filename="p").task_trusted
    text = 'version: 1\npreset: coding\noperator: {instruction: "help"}\n'
    policy = load_policy(text, filename="p")
    assert not policy.task_trusted
    assert policy.operator.instruction == "help"
    assert load_policy(text + "trusted: [{task: true}]\n", filename="p").task_trusted
    assert load_policy(policy.text, filename="p") == policy


def test_corrections_go_from_none_to_three_and_are_one_where_nothing_is_said() -> None:
    assert load_policy(None, filename="p").corrections == 1
    for count in range(4):
        assert load_policy(f"version: 1\ncorrections: {count}\n", filename="p").corrections == count


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("corrections: 4", "from 0 to 3"),
        ("corrections: -1", "from 0 to 3"),
        ("corrections: true", "from 0 to 3"),
        ("corrections: many", "from 0 to 3"),
        ("operator: help", "must be a mapping"),
        ("operator: {}", "says nothing"),
        ("operator: {instructions: x}", "unknown key"),
        ("operator: {instruction: ''}", "must be text"),
        ("operator: {instruction: 7}", "must be text"),
        ("operator: {tools: find}", "must be a list"),
        ("operator: {tools: ['/x']}", "not relative"),
        ("operator: {operations: [net.raed]}", "no operation is named"),
        (f"operator: {{instruction: {'x' * 20_001}}}", "longer than"),
    ],
)
def test_a_mistake_says_where_and_how_to_mend_it(line: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy(f"version: 1\n{line}\n", filename="p")
    assert says in caught.value.message
    assert caught.value.hint
    assert caught.value.line == 2


def test_the_role_is_told_in_words() -> None:
    lines = [
        line
        for line in explain(load_policy(TEXT, filename="p"))
        if line.startswith("operator") or "shop/*" in line
    ]
    assert lines == ["operator  instructs the agent in 35 characters", "          tools: find_order, shop/*"]
