"""A move is told only where it is sure: one removal, one place, the same bytes or the same origin."""

from __future__ import annotations

import pytest

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.moves import moved_files
from interlock.model.places import Place


def stamp(digest: str, kind: FileType = FileType.FILE) -> FileStamp:
    return FileStamp(type=kind, mode=0o644, uid=0, gid=0, size_bytes=3, digest=digest)


def gone(path: str, digest: str = "d1", *needs: str) -> FileChange:
    place = Place(root="workspace", path=path)
    return FileChange(kind=ChangeKind.DELETE, place=place, before=stamp(digest), needs=needs)


def made(path: str, digest: str = "d1", *, root: str = "workspace", over: bool = False) -> FileChange:
    return FileChange(
        kind=ChangeKind.MODIFY if over else ChangeKind.CREATE,
        place=Place(root=root, path=path),
        before=stamp("old") if over else None,
        after=stamp(digest),
    )


def told(*changes: FileChange) -> dict[int, str]:
    return {index: moved.words for index, moved in moved_files(changes).items()}


def test_both_ends_of_a_move_say_where_the_other_is() -> None:
    both = {0: "moved to `workspace:b`", 1: "moved from `workspace:a`"}
    assert told(gone("a", "d1", "b"), made("b")) == both
    assert told(gone("a", "d1", "b"), made("b", over=True)) == both
    assert told(made("b", "d2"), gone("a", "d1", "b")) == {
        0: "moved from `workspace:a`, and edited",
        1: "moved to `workspace:b`",
    }


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param((gone("a"), made("b")), id="nothing ties them"),
        pytest.param((gone("a", "d1", "b", "c"), made("b"), made("c")), id="two places"),
        pytest.param((gone("a", "d1", "c"), gone("b", "d1", "c"), made("c")), id="two removals"),
        pytest.param((gone("a", "stat:1", "b"), made("b")), id="bytes that were not read"),
        pytest.param((gone("a", "", "b"), made("b")), id="no digest"),
        pytest.param((gone("a", "d1", "b"), made("b", root="home")), id="another root"),
        pytest.param((gone("a", "d1", "b"), gone("b")), id="no file there"),
        pytest.param((gone("a", "d1", "a"),), id="itself"),
    ],
)
def test_what_is_not_sure_is_not_told(changes: tuple[FileChange, ...]) -> None:
    assert moved_files(changes) == {}
