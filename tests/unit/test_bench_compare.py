"""Two results are compared per case and in total."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.bench.compare import compare, read_results, report
from interlock.model.errors import InputError


def _result(**changed: Any) -> dict[str, Any]:
    return {
        "schema": "interlock-bench/1",
        "cases": [{"id": "a", "slipped": False}, {"id": "b", "slipped": False}],
        "totals": {"overall": {"attack_success": 0.5}},
    } | changed


def test_the_same_results_are_the_same() -> None:
    assert report(compare(_result(), _result())) == "the two results are the same\n"


def test_changed_totals_and_cases_are_told() -> None:
    after = _result(cases=[{"id": "a", "slipped": True}], totals={"overall": {"attack_success": 0.25}})
    found = compare(_result(), after)
    assert not found.same
    assert [(change.where, change.after) for change in found.cases] == [("a", True)]
    assert found.only_before == ("b",)
    assert "overall attack_success: 0.5 -> 0.25 (-0.25)" in report(found)


def test_a_folder_is_read_by_its_results_file(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(_result()))
    assert read_results(tmp_path) == _result()


@pytest.mark.parametrize(
    "text", ["[]", "no", '{"schema": "other"}', '{"schema":"interlock-bench/1","cases":[1]}']
)
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError):
        read_results(tmp_path / "r.json")
