"""What an ordinary user's command closed to itself is listed, merged, taken back and dropped as if made bare."""

import os
import resource
import shutil
import signal
import stat
from collections.abc import Callable

import pytest
from tests.fakes.staged_edits import fill
from tests.fakes.staged_examples import scratch
from tests.fakes.staged_tree import StagedTree, in_child, killed_by, snapshot

from interlock.model.errors import IntegrityError
from interlock.model.events import Staging
from interlock.staging import StagedRoot, copy_tree, discard, list_changes, plan, prepare, recover
from interlock.staging.journal import locked
from interlock.staging.lending import lending
from interlock.staging.sides import read_staged
from interlock.staging.stepping import Steps

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not run: an ordinary user is made of root here")

MODES = (0o000, 0o100, 0o200, 0o300, 0o400, 0o600)
_STAMP_NS = 1_700_000_000_000_000_000


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.utime(path, ns=(_STAMP_NS, _STAMP_NS))


def close_one(top: str, mode: int) -> None:
    os.chmod(f"{top}/a", mode)


def fill_and_close(top: str, mode: int) -> None:
    _write(f"{top}/a/f0", "changed")
    os.unlink(f"{top}/a/b/f1")
    _write(f"{top}/a/b/made", "made")
    os.chmod(f"{top}/a/b", mode)
    os.chmod(f"{top}/a", mode)


def make_and_close(top: str, mode: int) -> None:
    os.makedirs(f"{top}/new/below/deep")
    _write(f"{top}/new/file", "one")
    _write(f"{top}/new/below/file", "two")
    os.link(f"{top}/new/file", f"{top}/new/below/deep/linked")
    os.symlink("../file", f"{top}/new/below/link")
    for folder in ("new/below/deep", "new/below", "new"):
        os.chmod(f"{top}/{folder}", mode)


def replace_and_close(top: str, mode: int) -> None:
    shutil.rmtree(f"{top}/c")
    os.mkdir(f"{top}/c")
    _write(f"{top}/c/f0", "again")
    os.chmod(f"{top}/c", mode)
    os.unlink(f"{top}/e/f0")
    os.mkdir(f"{top}/e/f0")
    _write(f"{top}/e/f0/in", "in")
    os.chmod(f"{top}/e/f0", mode)


def close_all(top: str, mode: int) -> None:
    fill_and_close(top, mode)
    make_and_close(top, mode)
    replace_and_close(top, mode)
    os.chmod(f"{top}/e", mode)


CASES: tuple[Callable[[str, int], None], ...] = (
    close_one,
    fill_and_close,
    make_and_close,
    replace_and_close,
    close_all,
)


def layer_modes(tree: StagedTree) -> dict[str, int]:
    return {folder: stat.S_IMODE(os.lstat(folder).st_mode) for folder, _, _ in os.walk(tree.upper)}


def user_tree(base: str, kind: str) -> StagedTree:
    """Return a tree of the ordinary user's, on an overlay or (`copy`) on a copy that is its own."""
    return StagedTree.make(base, kind, lambda top: fill(top, links=False))


@pytest.mark.parametrize("edit", CASES)
@pytest.mark.parametrize("mode", MODES, ids=oct)
def test_closed_folders_merge_as_if_closed_bare(edit: Callable[[str, int], None], mode: int) -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        bare = f"{base}/bare"
        os.mkdir(bare)
        copy_tree(tree.lower, bare)
        os.chown(bare, 1000, 1000)
        tree.edit(lambda top: edit(top, mode))
        modes = layer_modes(tree)
        tree.merge()
        tree.as_owner(lambda: edit(bare, mode))
        assert snapshot(tree.lower) == snapshot(bare)
        # reading lent rights and gave them back: the layer is as the command left it
        assert layer_modes(tree) == modes
        assert not os.path.lexists(f"{tree.upper}.lent")


@pytest.mark.parametrize("mode", MODES, ids=oct)
def test_a_merge_of_closed_folders_that_is_taken_back_leaves_the_host_as_it_was(mode: int) -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        before = snapshot(tree.lower, folder_times=True)
        tree.edit(lambda top: close_all(top, mode))
        tree.as_owner(lambda: prepared(tree))
        tree.merge_back()
        assert snapshot(tree.lower, folder_times=True) == before


def prepared(tree: StagedTree) -> None:
    changes = list(list_changes(tree.root, judges_content=lambda path: False))
    prepare(plan([tree.root], changes, changes), tree.journal)


@pytest.mark.parametrize("mode", [0o000, 0o200], ids=oct)
def test_a_merge_that_was_cut_off_after_it_closed_a_folder_is_finished(mode: int) -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        bare = f"{base}/bare"
        os.mkdir(bare)
        copy_tree(tree.lower, bare)
        os.chown(bare, 1000, 1000)
        tree.edit(lambda top: close_all(top, mode))

        def cut_off() -> None:
            prepared(tree)
            with locked(tree.journal, create=False) as held:
                assert held is not None
                wal = held.read_wal()
                assert wal is not None
                steps = Steps(wal)
                steps.advance()
                steps.close()

        tree.as_owner(cut_off)
        assert tree.as_owner(lambda: recover(tree.journal)) == "finished"
        tree.as_owner(lambda: close_all(bare, mode))
        assert snapshot(tree.lower) == snapshot(bare)


def test_closed_folders_are_discarded() -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        before = snapshot(tree.lower, folder_times=True)
        tree.edit(lambda top: (close_all(top, 0), os.chmod(top, 0)))
        assert len(tree.changes()) > 5
        tree.as_owner(lambda: discard(tree.root))
        assert os.listdir(tree.upper) == []
        assert snapshot(tree.lower, folder_times=True) == before


def test_the_folder_itself_may_be_closed() -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        tree.edit(lambda top: (_write(f"{top}/f0", "changed"), os.chmod(top, 0)))
        (top, file) = tree.changes()
        assert (top.place.path, top.after and top.after.mode, file.place.path) == ("", 0, "f0")
        tree.merge()
        assert stat.S_IMODE(os.stat(tree.lower).st_mode) == 0
        assert snapshot(tree.lower)["f0"] == snapshot(tree.upper)["f0"]


def test_a_copy_of_an_ordinary_users_folder_may_be_closed() -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        root = StagedRoot(name="workspace", lower=tree.lower, upper=tree.upper, mode=Staging.COPY)
        bare = f"{base}/bare"
        os.mkdir(bare)
        copy_tree(tree.lower, bare)
        os.chown(bare, 1000, 1000)

        def run() -> None:
            copy_tree(tree.lower, tree.upper)
            close_all(tree.upper, 0)
            changes = list(list_changes(root, judges_content=lambda path: False))
            prepare(plan([root], changes, changes), tree.journal)
            assert recover(tree.journal) == "finished"
            close_all(bare, 0)

        in_child(run, user=True)
        assert snapshot(tree.lower) == snapshot(bare)


def test_what_lies_in_a_closed_folder_is_read_for_a_review() -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        tree.edit(lambda top: fill_and_close(top, 0))
        found = next(one for one in tree.changes() if one.place.path == "a/b/made")
        assert tree.as_owner(lambda: read_staged(tree.root, found, 100).data) == b"made"


def test_rights_that_a_killed_reader_lent_are_given_back_by_the_next() -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        tree.edit(lambda top: close_all(top, 0o200))
        modes, changes = layer_modes(tree), tree.changes()

        def read_and_die() -> None:
            with lending(tree.upper) as loans:
                loans.lend_top()
                top = os.open(tree.upper, os.O_RDONLY | os.O_DIRECTORY)
                loans.lend_below(top)
                os.kill(os.getpid(), signal.SIGKILL)

        assert tree.as_owner(lambda: killed_by(read_and_die))
        assert layer_modes(tree) != modes
        assert tree.changes() == changes
        assert layer_modes(tree) == modes


@pytest.mark.parametrize("room", [0, 10, 30])
def test_nothing_is_lent_that_the_book_has_no_room_for(room: int) -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        tree.edit(lambda top: close_all(top, 0o200))
        modes, changes = layer_modes(tree), tree.changes()

        def read_without_room() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            with lending(tree.upper) as loans:
                try:
                    loans.lend_top()
                    top = os.open(tree.upper, os.O_RDONLY | os.O_DIRECTORY)
                    loans.lend_below(top)
                finally:
                    os.kill(os.getpid(), signal.SIGKILL)

        assert tree.as_owner(lambda: killed_by(read_without_room))
        assert tree.changes() == changes
        assert layer_modes(tree) == modes


def test_readers_of_one_layer_at_once_see_the_same_modes() -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        tree.edit(lambda top: close_all(top, 0))
        changes = tree.changes()

        def read_within() -> bool:
            found = []
            for _ in list_changes(tree.root, judges_content=lambda path: False):
                found.append(list(list_changes(tree.root, judges_content=lambda path: False)))
            return all(one == changes for one in found)

        assert tree.as_owner(read_within)
        assert not os.path.lexists(f"{tree.upper}.lent")


def test_a_damaged_book_is_told_each_time_and_stops_no_later_reader() -> None:
    with scratch() as base:
        tree = user_tree(base, "user")
        tree.edit(lambda top: close_all(top, 0))
        changes = tree.changes()

        def read() -> str:
            signal.alarm(20)
            told = []
            for _ in range(2):
                try:
                    list(list_changes(tree.root, judges_content=lambda path: False))
                except IntegrityError as error:
                    told.append(error.message)
            os.unlink(f"{tree.upper}.lent")
            assert list(list_changes(tree.root, judges_content=lambda path: False)) == changes
            signal.alarm(0)
            return " ".join(told)

        def damage() -> None:
            with open(f"{tree.upper}.lent", "w", encoding="ascii") as file:
                file.write("no book\n")

        tree.as_owner(damage)
        assert tree.as_owner(read).count("what no reader of a staged layer wrote") == 2
