"""A result folder: gone on with where everything is the same, refused where anything is not."""

import json
from pathlib import Path

import pytest

from interlock.bench.result_folder import ResultFolder, written
from interlock.model.errors import InputError

HEAD = {
    "settings": {"agent": "obedient", "oracle": "strict"},
    "made_with": {"commit": "abc", "roles": {"slack": "1"}},
}


def test_what_was_kept_is_there_again(tmp_path: Path) -> None:
    ResultFolder.opened(tmp_path / "out", HEAD).keep("s/u/benign", {"id": "s/u/benign", "utility": True})
    again = ResultFolder.opened(tmp_path / "out", HEAD)
    assert again.kept("s/u/benign") == {"id": "s/u/benign", "utility": True}
    assert again.kept("s/u/i/first") is None


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({**HEAD, "settings": {"agent": "hijack", "oracle": "strict"}}, "settings agent"),
        ({**HEAD, "made_with": {"commit": "abd", "roles": {"slack": "1"}}}, "made_with commit"),
        ({**HEAD, "made_with": {"commit": "abc", "roles": {"slack": "2"}}}, "made_with roles"),
        ({"settings": HEAD["settings"]}, "made_with"),
    ],
)
def test_a_changed_setting_commit_or_role_file_is_refused_and_named(
    tmp_path: Path, changed: dict[str, object], named: str
) -> None:
    ResultFolder.opened(tmp_path / "out", HEAD)
    with pytest.raises(InputError, match=named):
        ResultFolder.opened(tmp_path / "out", changed)


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")
    with pytest.raises(InputError, match="something else"):
        ResultFolder.opened(tmp_path, HEAD)


def test_a_case_that_cannot_be_read_is_told_and_not_taken(tmp_path: Path) -> None:
    folder = ResultFolder.opened(tmp_path / "out", HEAD)
    folder.keep("s/u/benign", {"id": "s/u/benign"})
    (place,) = (tmp_path / "out" / "cases").iterdir()
    place.write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        folder.kept("s/u/benign")
    place.write_text(json.dumps({"id": "another"}))
    with pytest.raises(InputError, match="no result of"):
        folder.kept("s/u/benign")


def test_what_a_killed_run_left_half_written_does_not_stand_in_the_way(tmp_path: Path) -> None:
    import os

    folder = ResultFolder.opened(tmp_path / "out", HEAD)
    (tmp_path / "out" / f"results.json.{os.getpid()}.new").write_text("half")
    folder.finish({"b": 1, "a": 2})
    assert (tmp_path / "out" / "results.json").read_text() == written({"a": 2, "b": 1})
