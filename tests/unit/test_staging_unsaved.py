"""What a merge would take away that no repository holds, on real repositories."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.fakes.git_repositories import git

from interlock import staging
from interlock.model.events import Staging
from interlock.staging.git_index import read_index
from interlock.staging.roots import StagedRoot


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """A repository, and the full copy of it that an agent works on."""
    host, staged = tmp_path / "host", tmp_path / "staged"
    (host / "src").mkdir(parents=True)
    (host / "src" / "a.py").write_text("old\n")
    (host / "b.py").write_text("old\n")
    (host / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    git(host, "init", "-q")
    git(host, "add", "-A")
    git(host, "commit", "-qm", "start")
    return host, staged


def lost(sides: tuple[Path, Path]) -> set[str]:
    host, staged = sides
    root = StagedRoot(
        name="workspace", lower=str(host), upper=str(staged), mode=Staging.COPY, xattr_prefix="user.overlay."
    )
    unsaved = staging.Unsaved(root)
    return {
        change.place.path
        for change in staging.list_changes(root, judges_content=lambda _path: False)
        if unsaved.is_lost_by(change)
    }


def copied(sides: tuple[Path, Path]) -> Path:
    subprocess.run(["cp", "-a", *map(str, sides)], check=True)
    return sides[1]


def test_git_version_over_uncommitted_work_is_a_loss(sides: tuple[Path, Path]) -> None:
    (sides[0] / "src" / "a.py").write_text("a week of work\n")
    (sides[0] / "b.py").write_text("more work\n")
    staged = copied(sides)
    git(staged, "checkout", "-q", "--", "src/a.py")
    (staged / "b.py").write_text("more work, edited\n")
    assert lost(sides) == {"src/a.py"}


def test_what_a_commit_holds_can_be_deleted_edited_and_replaced(sides: tuple[Path, Path]) -> None:
    staged = copied(sides)
    (staged / "b.py").unlink()
    (staged / "b.py").mkdir()
    (staged / "src" / "a.py").unlink()
    assert lost(sides) == set()


@pytest.mark.parametrize("how", ["unlink", "empty", "folder"])
def test_what_was_never_committed_is_lost_with_its_place(sides: tuple[Path, Path], how: str) -> None:
    (sides[0] / "notes.txt").write_text("mine\n")
    staged = copied(sides)
    (staged / "notes.txt").write_text("") if how == "empty" else (staged / "notes.txt").unlink()
    if how == "folder":
        (staged / "notes.txt").mkdir()
    assert lost(sides) == {"notes.txt"}


def test_what_git_ignores_and_what_the_agent_made_is_no_loss(sides: tuple[Path, Path]) -> None:
    host = sides[0]
    (host / "build" / "deep").mkdir(parents=True)
    (host / "build" / "deep" / "x.o").write_text("x")
    (host / "run.log").write_text("x")
    (host / "keep.log").write_text("x")
    (host / "empty.txt").write_text("")
    staged = copied(sides)
    (staged / "own.txt").write_text("x")
    (staged / "own.txt").unlink()
    for path in ("run.log", "keep.log", "empty.txt"):
        (staged / path).unlink()
    subprocess.run(["rm", "-r", str(staged / "build")], check=True)
    assert lost(sides) == {"keep.log"}


def test_a_deleted_folder_is_a_loss_for_what_lies_in_it(sides: tuple[Path, Path]) -> None:
    host = sides[0]
    (host / "~").mkdir()
    (host / "~" / "junk.txt").write_text("x")
    staged = copied(sides)
    subprocess.run(["rm", "-r", str(staged / "~"), str(staged / "src")], check=True)
    assert any(path.startswith("~") for path in lost(sides))
    assert not any(path.startswith("src") for path in lost(sides))


def test_an_index_that_cannot_be_read_holds_nothing(sides: tuple[Path, Path]) -> None:
    host = sides[0]
    index = host / ".git" / "index"
    index.write_bytes(index.read_bytes()[:-3])
    staged = copied(sides)
    (staged / "b.py").unlink()
    assert lost(sides) == {"b.py"}


def test_without_a_repository_only_the_loss_of_everything_is_told(tmp_path: Path) -> None:
    host, staged = tmp_path / "host", tmp_path / "staged"
    host.mkdir()
    for name in (".hidden", "a", "b", "c"):
        (host / name).write_text("x")
    staged.mkdir()
    (staged / "a").write_text("x")
    assert lost((host, staged)) == set()
    (staged / "a").unlink()
    assert lost((host, staged)) == {".hidden", "a", "b", "c"}


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("hash_name", ["sha1", "sha256"])
def test_every_form_of_the_index_is_read(tmp_path: Path, version: str, hash_name: str) -> None:
    git(tmp_path, "init", "-q", f"--object-format={hash_name}")
    for name in ("a", "folder/long-" + "x" * 200, "folder/long-" + "x" * 201 + "y", "ü\n", "n" * 7, "m" * 8):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    git(tmp_path, "add", "-A")
    if version == "3":
        (tmp_path / "later").write_text("x")
        git(tmp_path, "add", "-N", "later")
    git(tmp_path, "update-index", "--index-version", version)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=tmp_path, capture_output=True, check=True).stdout
    found = read_index((tmp_path / ".git" / "index").read_bytes())
    assert found is not None
    assert set(found) == set(names.split(b"\0")) - {b""}
    for tracked, entry in found.items():
        path = os.path.join(os.fsencode(tmp_path), tracked)
        status = os.stat(path)
        with open(path, "rb") as file:
            assert entry.is_blob(file, status.st_size) == (tracked != b"later")


@pytest.mark.parametrize("data", [b"", b"DIRC", bytes(40), b"x" * 100])
def test_no_bytes_break_the_reader(data: bytes) -> None:
    assert read_index(data) is None
