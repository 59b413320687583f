"""Which changes need which others: a pure question, answered without a file system."""

from dataclasses import replace

from interlock.model.dependencies import PathMap, requirements
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.places import Place

FOLDER = FileStamp(type=FileType.DIRECTORY, mode=0o755, uid=0, gid=0, size_bytes=0)
FILE = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=1)


def at(path: str, root: str = "workspace") -> Place:
    return Place(root=root, path=path)


def create(path: str, stamp: FileStamp = FILE, root: str = "workspace") -> FileChange:
    return FileChange(kind=ChangeKind.CREATE, place=at(path, root), after=stamp)


def modify(path: str) -> FileChange:
    return FileChange(kind=ChangeKind.MODIFY, place=at(path), before=FILE, after=FILE)


def delete(path: str, stamp: FileStamp = FILE) -> FileChange:
    return FileChange(kind=ChangeKind.DELETE, place=at(path), before=stamp)


def rename(source: str, path: str) -> FileChange:
    return FileChange(kind=ChangeKind.RENAME, place=at(path), source=at(source), before=FOLDER, after=FOLDER)


def test_what_lies_in_a_new_folder_needs_it_and_only_the_nearest() -> None:
    changes = [create("d", FOLDER), create("d/e", FOLDER), create("d/e/f"), create("dd")]
    assert requirements(changes) == ((), (0,), (1,), ())


def test_what_changed_inside_a_moved_folder_needs_the_move() -> None:
    changes = [rename("a", "b/c"), modify("b/c/f"), delete("b/c/g"), modify("b/other")]
    assert requirements(changes) == ((), (0,), (0,), ())


def test_a_place_must_be_free_first() -> None:
    changes = [create("a", FOLDER), create("a/new"), delete("e", FOLDER), rename("a", "e")]
    assert requirements(changes) == ((3,), (0,), (), (2,))


def test_folders_that_change_places_need_each_other() -> None:
    assert requirements([rename("b", "a"), rename("a", "b")]) == ((1,), (0,))


def test_a_change_stands_with_what_its_listing_names() -> None:
    index = replace(modify(".git/index"), needs=(".git/HEAD", "new.txt", "gone", ".git/index"))
    changes = [index, create("new.txt"), create("gone", root="other"), create("other.txt")]
    assert requirements(changes) == ((1,), (), (), ())


def test_a_folder_is_removed_only_after_what_moved_out_of_it() -> None:
    changes = [delete("a", FOLDER), rename("a/b", "c")]
    assert requirements(changes) == ((1,), ())


def test_a_place_inside_a_moved_folder_is_freed_by_the_move_away() -> None:
    # a went to z, but its b went to c before that, and a new b was made
    changes = [rename("a/b", "c"), rename("a", "z"), create("z/b")]
    assert requirements(changes) == ((), (), (0, 1))


def test_roots_do_not_mix() -> None:
    changes = [create("d", FOLDER), create("d/e", root="state")]
    assert requirements(changes) == ((), ())


def test_paths_are_mapped_by_the_longest_moved_prefix_and_whole_names() -> None:
    paths = PathMap({"a": "z", "a/b": "c"})
    assert [paths.to_merged(p) for p in ("a", "a/x", "a/b", "a/b/y", "ab", "")] == [
        "z",
        "z/x",
        "c",
        "c/y",
        "ab",
        "",
    ]
    assert [paths.to_lower(p) for p in ("z", "z/x", "c", "c/y", "zz", "")] == [
        "a",
        "a/x",
        "a/b",
        "a/b/y",
        "zz",
        "",
    ]
