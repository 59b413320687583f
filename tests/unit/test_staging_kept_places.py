"""What of a listing is kept where not every place counts."""

from dataclasses import replace

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.places import Place
from interlock.staging.kept_places import only_kept

FOLDER = FileStamp(type=FileType.DIRECTORY, mode=0o755, uid=0, gid=0, size_bytes=0)
FILE = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=0)


def change(kind: ChangeKind, path: str, *, folder: bool = False, source: str = "") -> FileChange:
    return FileChange(
        kind=kind,
        place=Place(root="home", path=path),
        source=Place(root="home", path=source) if source else None,
        before=None if kind is ChangeKind.CREATE else FILE,
        after=None if kind is ChangeKind.DELETE else (FOLDER if folder else FILE),
    )


def kept(*changes: FileChange, counts: set[str]) -> list[str]:
    return [one.place.path for one in only_kept(iter(changes), counts.__contains__)]


def test_what_is_left_out_with_content_is_told() -> None:
    told: list[str] = []
    changes = (
        change(ChangeKind.CREATE, "a", folder=True),
        change(ChangeKind.CREATE, "a/mine"),
        change(ChangeKind.CREATE, "a/other"),
        change(ChangeKind.MODIFY, "b"),
        change(ChangeKind.DELETE, "c"),
        change(ChangeKind.ATTRIBUTES, "d"),
        change(ChangeKind.REPLACE, "e", folder=True),
        change(ChangeKind.CREATE, "e/f"),
        change(ChangeKind.CREATE, "g", folder=True),
    )
    assert [one.place.path for one in only_kept(iter(changes), {"a/mine"}.__contains__, told.append)] == [
        "a",
        "a/mine",
    ]
    assert told == ["a/other", "b", "e/f"]


def test_new_folders_come_along_only_where_they_hold_what_counts() -> None:
    found = kept(
        change(ChangeKind.CREATE, "a", folder=True),
        change(ChangeKind.CREATE, "a/b", folder=True),
        change(ChangeKind.CREATE, "a/b/mine"),
        change(ChangeKind.CREATE, "a/b/other"),
        change(ChangeKind.CREATE, "a/c", folder=True),
        change(ChangeKind.CREATE, "a/c/other"),
        change(ChangeKind.CREATE, "ab", folder=True),
        counts={"a/b/mine"},
    )
    assert found == ["a", "a/b", "a/b/mine"]


def test_a_folder_in_the_place_of_a_file_that_does_not_count_takes_nothing_along() -> None:
    found = kept(
        change(ChangeKind.REPLACE, "a", folder=True),
        change(ChangeKind.CREATE, "a/mine"),
        change(ChangeKind.MODIFY, "ab"),
        counts={"a/mine", "ab"},
    )
    assert found == ["ab"]


def test_a_move_counts_only_with_both_its_ends() -> None:
    found = kept(
        change(ChangeKind.RENAME, "mine", folder=True, source="other"),
        change(ChangeKind.CREATE, "mine/below"),
        change(ChangeKind.DELETE, "gone"),
        counts={"mine", "mine/below"},
    )
    assert found == []


def test_nothing_is_removed_whose_content_lives_on_only_where_nothing_is_kept() -> None:
    gone = change(ChangeKind.DELETE, "mine")
    folder = replace(gone, before=FOLDER)
    linked = change(ChangeKind.REPLACE, "mine")
    for one, needs, stays in (
        (gone, ("mine.bak",), True),
        (gone, ("mine.bak", "other"), False),
        (gone, ("other",), False),
        (gone, (), False),
        (linked, ("mine.bak",), True),
        (folder, ("other",), False),
        (folder, ("mine.bak", "other"), True),
    ):
        found = kept(replace(one, needs=needs), counts={"mine", "other"})
        assert found == ([] if stays else ["mine"]), (one.kind, needs)


def test_what_took_the_place_of_a_file_that_stays_takes_nothing_along() -> None:
    gone = replace(change(ChangeKind.REPLACE, "mine", folder=True), needs=("mine.bak",))
    below = change(ChangeKind.CREATE, "mine/other")
    assert kept(gone, below, counts={"mine", "mine/other"}) == []
