"""What an oracle released of tools holds for the same call until the task ends, stands in the ledger, and can be taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.test_policy_derivation_rules import fixture_nodes

from interlock.bench.folding import Answered, Fate, Folding, Judged
from interlock.model.events import GrantAction, GrantChanged
from interlock.model.tools import ToolCall
from interlock.monitor.step import step
from interlock.policy.grants import GrantError, with_change
from interlock.verify.derivations import rechecked
from interlock.verify.report import ReadNode

assert fixture_nodes
ROLES = """\
version: 1
preset: none
trusted: [{task: true}]
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  mail: {effect: send, steers: {to: email, cc: email}, carries: [text], asks: [mail]}
  post: {effect: send, steers: {room: name}, carries: [text], asks: [post], parks: true}
"""


class Run:
    """A run in which the oracle releases what it is asked about. Takes: `releases`."""

    def __init__(self, *, releases: bool = True) -> None:
        self.fold = Folding(
            ROLES,
            "look at the notes",
            oracle=lambda _item: releases,
            send=lambda _item: Answered(text="done"),
        )

    def call(self, tool: str, **arguments: Any) -> Judged:
        text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        return self.fold.call(ToolCall(call="c", tool=tool, arguments=text))


def test_the_same_call_is_asked_about_once_whatever_it_carries(nodes: list[ReadNode]) -> None:
    run = Run()
    assert run.call("mail", to="ann@a.test", text="one").fate is Fate.ASKED_RELEASED
    again = run.call("mail", to="ann@a.test", text="two")
    assert again.fate is Fate.VOUCHED
    assert [(each.role, each.rule) for each in again.item.verdict.derivations] == [("to", "granted")]
    assert run.fold.questions == 1
    assert len(list(rechecked(nodes))) == len(nodes)


def test_a_tool_that_nobody_declared_is_granted_as_a_whole_call(nodes: list[ReadNode]) -> None:
    run = Run()
    assert run.call("odd", to="a").fate is Fate.ASKED_RELEASED
    assert run.call("odd", to="a").fate is Fate.VOUCHED
    assert run.fold.questions == 1
    assert run.call("odd", to="b").fate is Fate.ASKED_RELEASED
    assert len(list(rechecked(nodes))) == len(nodes)


def test_parts_of_two_grants_make_no_third() -> None:
    run = Run()
    run.call("mail", to="ann@a.test", cc="bob@b.test", text="x")
    run.call("mail", to="bob@b.test", cc="ann@a.test", text="x")
    assert run.fold.questions == 2
    assert run.call("mail", to="ann@a.test", cc="ann@a.test", text="x").fate is Fate.ASKED_RELEASED
    assert run.call("mail", to="ann@a.test", text="x").fate is Fate.ASKED_RELEASED
    assert run.fold.questions == 4


def test_a_refusal_grants_nothing() -> None:
    run = Run(releases=False)
    for questions in (1, 2):
        assert run.call("mail", to="ann@a.test", text="x").fate is Fate.ASKED_REFUSED
        assert run.fold.questions == questions


def test_a_grant_of_a_call_can_be_taken_back_and_has_no_paths_to_narrow(nodes: list[ReadNode]) -> None:
    run = Run()
    run.call("mail", to="ann@a.test", text="x")
    run.fold.state, _ = step(
        run.fold.state, GrantChanged(grant="g1", action=GrantAction.REVOKE, changed_at_ns="1")
    )
    assert run.call("mail", to="ann@a.test", text="x").fate is Fate.ASKED_RELEASED
    assert run.fold.questions == 2
    assert run.fold.state.knowledge is not None
    narrowing = GrantChanged(grant="g2", action=GrantAction.NARROW, changed_at_ns="1", below="/a/")
    with pytest.raises(GrantError, match="can only be taken back"):
        with_change(run.fold.state.knowledge.grants, narrowing)


def test_equal_calls_that_wait_are_asked_about_once_at_the_end() -> None:
    run = Run()
    first, twin = (run.call("post", room="blue", text="x") for _ in range(2))
    other = run.call("post", room="blue", text="another")
    assert {first.fate, twin.fate, other.fate} == {Fate.PARKED}
    run.fold.finish()
    assert run.fold.questions == 2
    assert all(run.fold.fates[one.item.effect.id] is Fate.ASKED_RELEASED for one in (first, twin, other))
