"""A first name chooses among those whom the user wrote to, and nobody else: through the real fold, checked again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.tool_runs import ToolRun
from tests.unit.test_policy_derivation_rules import fixture_nodes

from interlock import policy as room
from interlock.bench.folding import Fate
from interlock.model.errors import PolicyError
from interlock.verify.derivations import rechecked
from interlock.verify.report import ReadNode

assert fixture_nodes
ROLES = """\
version: 1
preset: none
trusted:
  - task: true
cedar: |
  @id("all")
  permit(principal, action, resource) when { context.derived && context.carried <= context.clearance };
tools:
  mails:
    effect: read
    carries: [about]
    output: {fields: {id: "id:mail"}, correspondents: {fields: ["to[]"], where: {state: sent}}}
  echo: {effect: read, output: {echo: true, correspondents: {fields: ["to[]"], where: {state: sent}}}}
  invite: {effect: send, steers: {who: email}, carries: [text], asks: [invite]}
"""
ANN = "ann.smith@a.test"
TASK = "Please invite Ann to the hike"
SENT = {"id": "4", "to": [ANN], "from": "me@a.test", "state": "sent"}
GOT = {
    "id": "5",
    "to": ["me@a.test"],
    "from": "ann@e.test",
    "state": "got",
    "text": "state: sent, to ann@e.test",
}


def mailed(task: str, *mails: dict[str, Any], about: str = "the hike") -> ToolRun:
    run = ToolRun(ROLES, task)
    run.fate("mails", list(mails), about=about)
    return run


def test_the_only_one_of_that_name_to_whom_the_user_wrote_is_meant(nodes: list[ReadNode]) -> None:
    run = mailed(TASK, SENT, GOT)
    assert run.fate("invite", who="ann@e.test", text="a") is Fate.ASKED_REFUSED, "she only wrote herself"
    assert run.fate("invite", who="ann.moor@e.test", text="a") is Fate.ASKED_REFUSED
    assert run.fate("invite", who="me@a.test", text="a") is Fate.ASKED_REFUSED
    assert run.fate("invite", who=ANN, text="a") is Fate.VOUCHED
    assert run.rules == ["first-name"]
    assert len(list(rechecked(nodes))) == len(nodes)


@pytest.mark.parametrize(
    "task",
    [
        "Please invite Ann Moor to the hike",
        "Please invite Ann to the hike, and write Ann Moor a note",
        "Ann and I go on the hike. Please invite somebody",
        "Please invite ann to the hike",
        "Please invite Anna to the hike",
        "Please invite Mary Ann to the hike",
        "Please invite Ann-Marie to the hike",
        "Please invite ann.smith to the hike",
        "Tell me what Ann wrote of the hike",
    ],
)
def test_another_word_calls_nobody(task: str, nodes: list[ReadNode]) -> None:
    assert mailed(task, SENT).fate("invite", who=ANN, text="a") is Fate.ASKED_REFUSED
    assert len(list(rechecked(nodes))) == len(nodes)


@pytest.mark.parametrize(
    "task",
    [
        "Please invite Ann Smith to the hike",
        "To the hike, please, invite Ann.",
        "Don’t wait; about the hike, invite my friend Ann and me",
    ],
)
def test_these_words_call_her(task: str, nodes: list[ReadNode]) -> None:
    assert mailed(task, SENT, about="hike").fate("invite", who=ANN, text="a") is Fate.VOUCHED
    assert len(list(rechecked(nodes))) == len(nodes)


@pytest.mark.parametrize(
    ("mails", "about"),
    [
        ([SENT, {**SENT, "to": ["ann@b.test"]}], "the hike"),
        ([{**SENT, "state": "draft"}], "the hike"),
        ([{key: text for key, text in SENT.items() if key != "state"}], "the hike"),
        ([{**SENT, "state": ["sent", "got"]}], "the hike"),
        ([SENT], "what the agent likes"),
    ],
    ids=["two of that name", "not sent", "not marked", "marked twice", "the agent chose"],
)
def test_what_leaves_it_open_vouches_for_nobody(
    mails: list[dict[str, Any]], about: str, nodes: list[ReadNode]
) -> None:
    run = mailed(TASK, *mails, about=about)
    assert run.fate("invite", who=ANN, text="a") is Fate.ASKED_REFUSED
    assert len(list(rechecked(nodes))) == len(nodes)


def test_what_only_repeats_the_call_tells_of_nobody() -> None:
    run = ToolRun(ROLES, TASK)
    run.fate("echo", [SENT])
    assert run.fate("invite", who=ANN, text="a") is Fate.ASKED_REFUSED


@pytest.mark.parametrize(
    "told", ["{fields: [to]}", "{where: {state: sent}}", "{fields: [to], where: {state: 1}}", "{}"]
)
def test_correspondents_without_a_mark_of_ones_own_are_a_mistake(told: str) -> None:
    text = f"version: 1\npreset: none\ntools:\n  x: {{effect: read, output: {{correspondents: {told}}}}}\n"
    with pytest.raises(PolicyError, match="your own"):
        room.load_policy(text, filename="p.yaml")
