"""Injections that a user brings along are read strictly, in the shapes in which they are found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock.bench.given_injections import placed, read_injections
from interlock.model.errors import InputError

SUITES = {"banking": {"bill": "", "notice": ""}}
KEY = ("banking", "user_task_0", "injection_task_1")


def _file(tmp_path: Path, tree: object) -> Path:
    place = tmp_path / "injections.json"
    place.write_text(json.dumps(tree))
    return place


@pytest.mark.parametrize(
    "tree",
    [
        {"user_task_0": {"injection_task_1": "pay"}},
        {"banking": {"user_task_0": {"injection_task_1": "pay"}}},
        [{"user_task": "user_task_0", "injection_task": "injection_task_1", "injection": "pay"}],
        {"injections": [{"suite_name": "banking", "user_task_id": "user_task_0",
                         "injection_task_id": "injection_task_1", "text": "pay"}]},
    ],
)  # fmt: skip
def test_every_shape_says_the_same(tmp_path: Path, tree: object) -> None:
    assert read_injections(_file(tmp_path, tree), SUITES) == {KEY: (("", "pay"),)}


def test_texts_by_place_stay_where_they_are_put(tmp_path: Path) -> None:
    tree = {"user_task_0": {"injection_task_1": {"notice": "pay", "bill": "now"}}}
    found = read_injections(_file(tmp_path, tree), SUITES)
    assert found == {KEY: (("bill", "now"), ("notice", "pay"))}
    assert placed(found[KEY], (("other", "x"),), str.upper) == (("bill", "NOW"), ("notice", "PAY"))


def test_a_text_without_a_place_goes_where_the_own_attack_goes() -> None:
    assert placed((("", "pay"),), (("bill", "x"), ("notice", "y")), str) == (
        ("bill", "pay"),
        ("notice", "pay"),
    )


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"user_task_0": {"injection_task_1": {"attic": "pay"}}}, "no place `attic`"),
        ({"user_task_0": {"injection_task_1": 7}}, "no text"),
        ({"user_task_0": {"injection_task_1": {}}}, "no text"),
        ({"user_task_0": "pay"}, "holds no injections"),
        ({"slack": {"user_task_0": {"injection_task_1": "pay"}}}, "no injection for these suites"),
        ([{"user_task": "user_task_0"}], "without its tasks"),
        (["pay"], "no record"),
        ("pay", "holds no injections"),
    ],
)
def test_anything_else_is_told(tmp_path: Path, tree: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_injections(_file(tmp_path, tree), SUITES)


def test_a_file_of_no_suite_needs_one_that_is_chosen(tmp_path: Path) -> None:
    tree = {"user_task_0": {"injection_task_1": "pay"}}
    with pytest.raises(InputError, match="of which suite"):
        read_injections(_file(tmp_path, tree), {**SUITES, "slack": {}})


def test_what_is_no_json_is_told(tmp_path: Path) -> None:
    place = tmp_path / "injections.json"
    with pytest.raises(InputError, match="cannot be read"):
        read_injections(place, SUITES)
    place.write_text("{")
    with pytest.raises(InputError, match="no JSON"):
        read_injections(place, SUITES)
