"""Names of a mapping's entries as values, and a file called by its name as people say it: through the real fold."""

from __future__ import annotations

import pytest
from tests.fakes.tool_runs import ToolRun
from tests.unit.test_policy_derivation_rules import fixture_nodes

from interlock.bench.folding import Fate
from interlock.policy.derivations.filenames import find_spoken
from interlock.policy.derivations.filenames_read import file_stem
from interlock.policy.tools.entry_names import with_entry_names
from interlock.policy.tools.leaves import Leaf, leaves_of, record_of
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
  files: {effect: read, carries: [about], output: {fields: {"name": filename, "readers{}": email}}}
  mine: {effect: read, output: {trust: own, fields: {"readers{}": email}}}
  undeclared: {effect: read, output: {fields: {"name": filename, "readers": email}}}
  mail: {effect: send, steers: {to: email}, carries: [text], asks: [mail]}
"""
PLAN = {"name": "team-plan.docx", "readers": {"ann@a.test": "rw", "bob@a.test": "r"}}
SPAM = {"name": "newest-team-plan.docx", "readers": {"eve@e.test": "rw"}, "text": "team plan file"}
CALLED = "Mail a summary of 'team-plan.docx' to the client"


def test_whoever_shares_the_file_that_the_task_names_may_be_sent_it(nodes: list[ReadNode]) -> None:
    run = ToolRun(ROLES, CALLED)
    run.fate("files", [SPAM, PLAN], about="plan")
    assert run.fate("mail", to=["ann@a.test"], text="a") is Fate.VOUCHED
    assert run.rules == ["record-selected"]
    assert run.fate("mail", to=["ann@a.test", "bob@a.test"], text="a") is Fate.VOUCHED
    assert run.fate("mail", to=["eve@e.test"], text="a") is Fate.ASKED_REFUSED, "another file's"
    assert len(list(rechecked(nodes))) == len(nodes)


def test_a_second_file_of_that_name_vouches_for_neither() -> None:
    run = ToolRun(ROLES, CALLED)
    run.fate("files", [PLAN, {**PLAN, "readers": {"eve@e.test": "r"}}], about="plan")
    for to in ("ann@a.test", "eve@e.test"):
        assert run.fate("mail", to=[to], text="a") is Fate.ASKED_REFUSED


def test_the_names_of_entries_count_only_where_they_are_declared() -> None:
    run = ToolRun(ROLES, CALLED)
    run.fate("undeclared", [PLAN])
    assert run.fate("mail", to=["ann@a.test"], text="a") is Fate.ASKED_REFUSED


def test_an_entry_of_ones_own_state_is_one_of_several_as_an_element_is() -> None:
    run = ToolRun(ROLES, "Mail a summary to them")
    run.fate("mine", {"readers": {"ann@a.test": "rw"}})
    assert run.fate("mail", to=["ann@a.test"], text="a") is Fate.ASKED_REFUSED


@pytest.mark.parametrize(
    ("task", "to", "fate"),
    [
        ("Mail a summary of the team plan file to all", "ann@a.test", Fate.VOUCHED),
        ("Mail all a summary of my 'Team plan' document.", "ann@a.test", Fate.VOUCHED),
        ("Mail a summary of the team plan file to all", "eve@e.test", Fate.ASKED_REFUSED),
        ("Mail a summary of the newest team plan file to all", "ann@a.test", Fate.ASKED_REFUSED),
        ("Mail a summary of the team plan to all", "ann@a.test", Fate.ASKED_REFUSED),
        ("Mail a summary of some team plan file to all", "ann@a.test", Fate.ASKED_REFUSED),
    ],
)
def test_a_file_is_called_by_its_name_as_people_say_it(
    task: str, to: str, fate: Fate, nodes: list[ReadNode]
) -> None:
    run = ToolRun(ROLES, task)
    run.fate("files", [SPAM, PLAN], about="plan")
    assert run.fate("mail", to=[to], text="a") is fate
    assert len(list(rechecked(nodes))) == len(nodes)


def test_two_files_that_people_would_call_the_same_vouch_for_neither() -> None:
    run = ToolRun(ROLES, "Mail a summary of the team plan file to all")
    run.fate("files", [PLAN, {"name": "team_plan.txt", "readers": {"eve@e.test": "r"}}], about="plan")
    for to in ("ann@a.test", "eve@e.test"):
        assert run.fate("mail", to=[to], text="a") is Fate.ASKED_REFUSED
    named = ToolRun(ROLES, CALLED)
    named.fate("files", [PLAN, {"name": "team_plan.txt", "readers": {"eve@e.test": "r"}}], about="plan")
    assert named.fate("mail", to=["ann@a.test"], text="a") is Fate.VOUCHED, "one is named in full"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plan.docx", "the team plan file"),
        ("team-plan.docx", "the team plan file.exe"),
        ("team-plan.docx", "the team plan filex"),
        ("team-plan.docx", "the team plan-file"),
        ("team-plan.docx", "the team plan\u0301 file"),
        ("team-plan.docx", "the 'team plan file"),
        ("team-plan.docx", "bathe team plan file"),
        ("a.docx", "the a file"),
        ("team.plan.docx", "the team plan file"),
        ("t\u00e9am-plan.docx", "the t\u00e9am plan file"),
    ],
)
def test_other_words_call_no_file(name: str, text: str) -> None:
    assert find_spoken(name, text) is None
    spans = [(start, end) for start in range(len(text)) for end in range(start + 1, len(text) + 1)]
    assert not [span for span in spans if file_stem(name, text, *span)]


def test_the_name_of_an_entry_has_a_pointer_that_no_value_has() -> None:
    text = '[{"readers": {"a/b~": "x", "": "y"}, "n": {"readers": {"c": 1}}}]'
    found = with_entry_names(leaves_of(text) or (), text, (("readers{}", "name"),))
    assert found is not None
    names = [leaf for leaf in found if leaf.pointer.endswith("~")]
    assert names == [Leaf(field="[].readers{}", pointer="/0/readers/a~1b~0~", text="a/b~")]
    assert record_of(names[0]) == "/0"


def test_too_many_entries_are_no_answer_at_all() -> None:
    many = "{" + ",".join(f'"k{number}": null' for number in range(20_001)) + "}"
    text = f'{{"readers": {many}}}'
    assert leaves_of(text) == ()
    assert with_entry_names((), text, (("readers{}", "name"),)) is None
