"""Refusals told again: one order to which is only added, and read strictly wherever they come from."""

from __future__ import annotations

import pytest

from interlock.model.errors import InputError
from interlock.model.verdicts import ExceptionType, SemanticException
from interlock.runtime.notices import Told, _notice
from interlock.runtime.performer import Resolution

WHY = SemanticException(
    type=ExceptionType.RULE, violated_rule="r", rationale="w", constraints=("c",), allowed_objective="o"
)
PLAIN = {
    "effect": "e1",
    "object": "workspace:a",
    "type": "rule",
    "violated_rule": "r",
    "rationale": "w",
    "constraints": ["c"],
    "allowed_objective": "o",
}


def test_what_is_told_is_only_added_to_and_files_join_requests() -> None:
    resolution, told = Resolution(), Told()
    assert told.until_now(resolution) == []
    resolution.turned_away.append(("e10", "http://x/", WHY))
    resolution.refusals += [("e9", "workspace:b", WHY), ("", "all", WHY), ("e2", "workspace:a", WHY)]
    assert [one.effect for one in told.until_now(resolution)] == ["e2", "e9", "e10", ""]
    resolution.refusals.append(("e1", "workspace:c", WHY))
    assert [one.effect for one in told.until_now(resolution)] == ["e2", "e9", "e10", "", "e1"]
    assert [one.effect for one in told.until_now(resolution)] == ["e2", "e9", "e10", "", "e1"]


def test_a_notice_is_read_as_it_was_written() -> None:
    notice = _notice(PLAIN)
    assert (notice.effect, notice.subject, notice.exception) == ("e1", "workspace:a", WHY)
    assert notice.plain() == PLAIN


@pytest.mark.parametrize(
    "item",
    [
        [],
        {},
        {**PLAIN, "more": 1},
        {**PLAIN, "type": "X"},
        {**PLAIN, "constraints": "c"},
        {**PLAIN, "constraints": [1]},
        {**PLAIN, "rationale": None},
        {key: value for key, value in PLAIN.items() if key != "allowed_objective"},
    ],
)
def test_a_notice_is_read_strictly(item: object) -> None:
    with pytest.raises(InputError):
        _notice(item)
