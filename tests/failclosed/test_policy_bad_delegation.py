"""Sources that are handed to each other, or to a tool that is not there: told with their place, and never a way round."""

from __future__ import annotations

import pytest

from interlock import policy as room
from interlock.bench.folding import Fate, Folding
from interlock.model.errors import PolicyError
from interlock.model.tools import ToolCall

TOOLS = """\
version: 1
preset: none
trusted: [{task: true}]
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived };
tools:
  read_page: {effect: egress, steers: {address: url}}
  read_feed: {effect: egress, steers: {address: url}}
  read_list: {effect: egress, steers: {address: url}}
  confirm: {effect: write, follows: [repeat]}
  repeat: {effect: write, follows: [confirm]}
"""


def refused(delegate: str) -> PolicyError:
    with pytest.raises(PolicyError) as told:
        room.load_policy(TOOLS + f"delegate:\n{delegate}", filename="p.yaml")
    assert told.value.line > 10
    assert told.value.hint
    return told.value


def entry(tool: str, *roles: str) -> str:
    return f'  - {{tool: {tool}, source: "*", roles: [{", ".join(roles)}]}}\n'


def test_a_source_that_hands_over_to_itself_is_a_mistake() -> None:
    assert "cannot choose" in refused(entry("read_page", "read_page.address")).message


@pytest.mark.parametrize(
    "circle",
    [
        entry("read_page", "read_feed.address") + entry("read_feed", "read_page.address"),
        entry("read_page", "read_feed.address")
        + entry("read_feed", "read_list.address")
        + entry("read_list", "read_page.address"),
    ],
)
def test_sources_that_hand_over_to_each_other_are_a_mistake(circle: str) -> None:
    assert "circular" in refused(circle).message


def test_a_circle_over_a_policy_and_what_it_rests_on_is_a_mistake() -> None:
    from interlock.policy.document import read_document
    from interlock.policy.tools.loading import read_tools

    base = room.load_policy(
        TOOLS + "delegate:\n" + entry("read_page", "read_feed.address"), filename="base.yaml"
    )
    more = read_document("delegate:\n" + entry("read_feed", "read_page.address"), filename="p.yaml")
    with pytest.raises(PolicyError, match="circular"):
        read_tools(more, base.tools)


def test_a_source_that_is_not_declared_is_a_mistake() -> None:
    assert "no tool `read_mail`" in refused(entry("read_mail", "read_page.address")).message
    assert "steers" in refused(entry("read_page", "send_mail.to")).message


def test_second_steps_that_follow_each_other_are_never_vouched_for() -> None:
    run = Folding(TOOLS, "confirm and repeat it", oracle=lambda _item: False)
    for tool in ("confirm", "repeat"):
        assert run.call(ToolCall(call="c", tool=tool, arguments="{}")).fate is Fate.ASKED_REFUSED


def test_a_source_that_was_never_read_hands_over_nothing() -> None:
    run = Folding(
        TOOLS + "delegate:\n" + entry("read_page", "read_feed.address"), "go on", oracle=lambda _item: False
    )
    call = ToolCall(call="c", tool="read_feed", arguments='{"address":"https://a.test/x"}')
    assert run.call(call).fate is Fate.ASKED_REFUSED
