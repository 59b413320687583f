"""The text of a change for the review: right, bounded, and safe for a terminal."""

import hashlib
import os
from pathlib import Path

import pytest

from interlock.model.effects import FileChange
from interlock.model.errors import IntegrityError
from interlock.model.events import Staging
from interlock.model.moves import Moved
from interlock.staging import StagedRoot, list_changes, unified_diff


def sides(tmp_path: Path) -> tuple[Path, Path, StagedRoot]:
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    lower.mkdir()
    upper.mkdir()
    return lower, upper, StagedRoot(name="w", lower=str(lower), upper=str(upper), mode=Staging.COPY)


def only(root: StagedRoot) -> FileChange:
    (change,) = list_changes(root, judges_content=lambda path: False)
    return change


def test_a_modified_text(tmp_path: Path) -> None:
    lower, upper, root = sides(tmp_path)
    (lower / "f").write_text("one\ntwo\nthree\n", encoding="ascii")
    (upper / "f").write_text("one\n2\nthree\n", encoding="ascii")
    lines = unified_diff(root, only(root), limit_bytes=1000).splitlines()
    assert lines[0] == "modify f"
    assert lines[-7:] == ["--- a/f", "+++ b/f", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]


def test_created_and_removed_texts(tmp_path: Path) -> None:
    _, upper, root = sides(tmp_path)
    (upper / "f").write_text("new", encoding="ascii")
    text = unified_diff(root, only(root), limit_bytes=1000)
    assert text.endswith("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n")
    swapped = StagedRoot(name="w", lower=root.upper, upper=root.lower, mode=Staging.COPY)
    text = unified_diff(swapped, only(swapped), limit_bytes=1000)
    assert "+++ /dev/null" in text
    assert "-new" in text


def test_what_is_no_text_is_said_with_size_and_digest(tmp_path: Path) -> None:
    lower, upper, root = sides(tmp_path)
    (lower / "f").write_bytes(b"\x00\x01")
    (upper / "f").write_bytes(b"\xff")
    text = unified_diff(root, only(root), limit_bytes=1000)
    assert "2 bytes" in text
    assert hashlib.sha256(b"\xff").hexdigest() in text
    assert "@@" not in text


def test_nothing_in_a_file_or_name_reaches_the_terminal_raw(tmp_path: Path) -> None:
    _, upper, root = sides(tmp_path)
    (upper / "evil\x1b[2J\nfake").write_text("\x1b]0;title\x07\r\u202e\x9b31m fine\ttab", encoding="utf-8")
    text = unified_diff(root, only(root), limit_bytes=1000)
    assert all(char.isprintable() or char in "\n\t" for char in text)
    assert "\\x1b]0;title\\x07\\x0d" in text
    assert "create evil\\x1b[2J\\x0afake" in text


def test_long_lines_and_long_diffs_are_cut(tmp_path: Path) -> None:
    _, upper, root = sides(tmp_path)
    (upper / "f").write_text("x" * 5000 + "\n" + "line\n" * 5000, encoding="ascii")
    text = unified_diff(root, only(root), limit_bytes=40000)
    assert max(map(len, text.splitlines())) < 500
    short = unified_diff(root, only(root), limit_bytes=30500)
    assert len(short) < 31000
    (upper / "f").write_text("line\n" * 50000, encoding="ascii")
    assert "@@" not in unified_diff(root, only(root), limit_bytes=1000)


def test_a_link_and_a_removed_folder(tmp_path: Path) -> None:
    lower, upper, root = sides(tmp_path)
    os.symlink("/etc/passwd", upper / "l")
    text = unified_diff(root, only(root), limit_bytes=1000)
    assert "-> /etc/passwd" in text
    assert "hazards: outward-link" in text
    (upper / "l").unlink()
    (lower / "d" / "e").mkdir(parents=True)
    assert "with 1 entries below" in unified_diff(root, only(root), limit_bytes=1000)


def test_a_side_that_is_gone_is_an_error_and_a_link_in_its_place_is_not_read(tmp_path: Path) -> None:
    _, upper, root = sides(tmp_path)
    (upper / "f").write_text("x", encoding="ascii")
    change = only(root)
    (upper / "f").unlink()
    with pytest.raises(IntegrityError):
        unified_diff(root, change, limit_bytes=1000)
    (tmp_path / "secret").write_text("s", encoding="ascii")
    (upper / "f").symlink_to(tmp_path / "secret")
    with pytest.raises(IntegrityError):
        unified_diff(root, change, limit_bytes=1000)


def test_a_file_that_was_moved_and_edited_is_compared_with_what_it_was(tmp_path: Path) -> None:
    lower, upper, root = sides(tmp_path)
    (lower / "old").write_text("one\ntwo\n", encoding="ascii")
    (upper / "new").write_text("one\n2\n", encoding="ascii")
    came, left = list_changes(root, judges_content=lambda path: False)
    arrived = Moved(other=left, arrived=True, edited=True)
    lines = unified_diff(root, came, moved=arrived).splitlines()
    assert lines[:2] == ["create new", "moved from `w:old`, and edited"]
    assert lines[-6:] == ["--- a/old", "+++ b/new", "@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    lines = unified_diff(root, left, moved=Moved(other=came, arrived=False, edited=True)).splitlines()
    assert lines[:2] == ["delete old", "moved to `w:new`"]
    assert "-two" not in lines


def test_a_file_that_was_moved_as_it_is_is_shown_whole_only_where_its_content_matters(tmp_path: Path) -> None:
    lower, upper, root = sides(tmp_path)
    for path in (lower / "old", upper / "new"):
        path.write_text("one\n", encoding="ascii")
    for judged in (False, True):
        came, left = list_changes(root, judges_content=lambda path, judged=judged: judged)  # type: ignore[misc]
        text = unified_diff(root, came, moved=Moved(other=left, arrived=True, edited=False))
        assert "moved from `w:old`\n" in text
        assert ("+one" in text) is judged
