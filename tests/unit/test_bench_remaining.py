"""One sentence for each kind that remains."""

from __future__ import annotations

import yaml

from interlock.bench.dojo_roles import role_text
from interlock.bench.remaining import HELD, SLIPS, reasons


def test_each_tool_has_its_sentence_once_and_what_has_none_is_told() -> None:
    said = reasons(
        ["slack: get_webpage (url)", "slack: get_webpage (content, url)", "slack: paint (colour)"], HELD
    )
    assert said.count("`slack: get_webpage`") == 1
    assert "`slack: paint`: no reason is written down" in said
    assert reasons([], SLIPS) == ""


def test_a_reason_is_given_for_tools_of_the_role_files_alone() -> None:
    for kind in (*SLIPS, *HELD):
        suite, _, tool = kind.partition(": ")
        assert yaml.safe_load(role_text(suite))["tools"][tool]["effect"] != "read"
