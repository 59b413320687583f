"""Which files of HOME count as read where there are no file events."""

import os
from pathlib import Path

import pytest

from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.policy import load_policy
from interlock.runtime.folders import StagedFolder
from interlock.runtime.home_files import hidden_globs, named_files
from interlock.runtime.reads import sensitive_places


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for path in (
        ".bashrc",
        ".config/git/config",
        ".config/git/credentials",
        ".config/git/deep/er",
        ".config/other",
        ".tool.json",
        ".tool/state.pem",
        "project/.tool.pem",
        "elsewhere/x.pem",
    ):
        full = tmp_path / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(path)
    (tmp_path / ".tool.link").symlink_to("elsewhere/x.pem")
    return tmp_path


def found(home: Path, *globs: str, exposed: tuple[str, ...] = (), apart: tuple[str, ...] = ()) -> list[str]:
    places = [f"{home}/{one}" for one in apart]
    return [os.fsdecode(one) for one in named_files(str(home), globs, exposed=exposed, apart=places)]


def test_only_what_a_glob_names_is_looked_at(home: Path) -> None:
    assert found(home, ".bashrc", ".zshrc") == [".bashrc"]
    assert found(home, ".tool*") == [".tool.json"]
    assert found(home, ".tool/**", ".tool/*.pem") == [".tool/state.pem"]
    assert found(home, ".config/*") == [".config/other"]


def test_what_is_hidden_counts_only_where_it_is_exposed(home: Path) -> None:
    assert found(home, ".config/git/**") == [".config/git/config", ".config/git/deep/er"]
    exposed = ("~/.config/git/credentials",)
    assert ".config/git/credentials" in found(home, ".config/git/**", exposed=exposed)


def test_a_glob_that_names_a_hidden_place_is_told_with_its_way_out() -> None:
    (line,) = hidden_globs([".bashrc", ".ssh/config", ".sshx"], exposed=())
    assert "`home` names `~/.ssh/config`, but `~/.ssh` is hidden (keys that log in" in line
    assert "`sandbox: {expose: [~/.ssh]}`" in line
    # One file of a hidden folder is shown as it is, and nothing below a closed folder can be changed.
    assert hidden_globs([".ssh/config"], exposed=("~/.ssh/config",)) == [line]
    assert not hidden_globs([".ssh/config", ".netrc"], exposed=("~/.ssh/", "~/.netrc"))
    assert hidden_globs([".config/opera-next/**"], exposed=())
    for preset in ("coding", "none"):
        policy = load_policy(f"version: 1\npreset: {preset}\n", filename="p.yaml")
        assert not hidden_globs(policy.home, exposed=policy.sandbox.expose)


def test_what_is_a_root_of_its_own_does_not_count_twice(home: Path) -> None:
    assert found(home, "project/**", ".tool/**", apart=("project",)) == [".tool/state.pem"]


def test_a_link_on_the_way_is_not_followed(home: Path) -> None:
    (home / ".alias").symlink_to("elsewhere")
    assert found(home, ".alias/**", ".tool.*") == [".tool.json"]


def test_of_home_only_what_counts_is_listed_as_sensitive(home: Path) -> None:
    folder = StagedFolder(name="home", lower=str(home), upper="/u", work="/w", globs=(".tool/**",))

    def level_of(place: Place) -> Confidentiality:
        return Confidentiality.SECRET if place.path.endswith(".pem") else Confidentiality.PUBLIC

    reads = sensitive_places((folder,), level_of)
    assert reads is not None
    assert [one.place for one in reads] == [Place(root="home", path=".tool/state.pem")]
