"""Changes that stand or fall together."""

from __future__ import annotations

from tests.playbook.playbook import Wrote
from tests.playbook.test_monitor_scope import created, listing

from interlock.model import commands as cmd
from interlock.model import events as ev
from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.nodes import NodeKind
from interlock.model.places import Place
from interlock.model.verdicts import Decision


def folder(path: str) -> FileChange:
    return FileChange(
        kind=ChangeKind.CREATE,
        place=Place(root="workspace", path=path),
        after=FileStamp(type=FileType.DIRECTORY, mode=0o755, uid=0, gid=0, size_bytes=0),
    )


def moved(old: str, new: str) -> FileChange:
    stamp = FileStamp(type=FileType.DIRECTORY, mode=0o755, uid=0, gid=0, size_bytes=0)
    return FileChange(
        kind=ChangeKind.RENAME,
        place=Place(root="workspace", path=new),
        source=Place(root="workspace", path=old),
        before=stamp,
        after=stamp,
    )


def test_what_needs_a_refused_move_is_refused_with_it() -> None:
    book = listing()
    changes = (moved("hooks", ".github"), created(".github/notes.txt"), created("plain.txt"))
    book >> ev.ChangesListed(changes=changes, last=True)
    book << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK) << Wrote(NodeKind.CHECK)
    deferred = [item.effect.id for item in book.state.with_decision(Decision.DEFER)]
    assert deferred == ["e1"]
    for _ in deferred:
        book << Wrote(NodeKind.DEFERRED, "defer")
    book << cmd.Ask
    book >> ev.OracleAnswered(oracle="strict", answers=())
    book << Wrote(NodeKind.RESOLUTION)
    for _ in range(2):
        book << Wrote(NodeKind.BLOCKED, "refuse")
    book << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent(released=("e3",))
    book.done()
    assert sorted(item.effect.id for item in book.state.refused) == ["e1", "e2"]


def test_a_selected_file_takes_its_new_folders_along() -> None:
    book = listing("hold")
    changes = (folder("a"), folder("a/b"), created("a/b/f"), created("other"))
    for event in (
        ev.ChangesListed(changes=changes, last=True),
        ev.Resumed(oracle="principal", selection=("workspace:a/b/f",), resumed_at_ns="3"),
    ):
        book >> event
        while book._given:
            book._given.popleft()
    book >> ev.ChangesListed(changes=changes, last=True)
    book << Wrote(NodeKind.TOOL_CALL) << Wrote(NodeKind.CHECK) << Wrote(NodeKind.CHECK, "release")
    book << Wrote(NodeKind.RESOLUTION, "release") << cmd.RecordIntent(released=("e5", "e6", "e7"))
    book.done()


def test_a_selection_is_a_place_and_not_a_prefix_of_its_name() -> None:
    book = listing("hold")
    changes = (created("ab"), created("a/f"))
    book >> ev.ChangesListed(changes=changes, last=True)
    book._given.clear()
    book >> ev.Resumed(oracle="principal", selection=("workspace:a",), resumed_at_ns="3")
    book._given.clear()
    book >> ev.ChangesListed(changes=changes, last=True)
    released = [c.released for c in book._given if isinstance(c, cmd.RecordIntent)]
    assert released == [("e4",)]
