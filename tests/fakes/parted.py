"""Deferred changes of files with hunks, conflicts and needs, as a review is asked about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.fakes.deferred import deferred

from interlock.model.effects import ChangeKind, Effect, FileStamp, FileType, HostEdit
from interlock.model.errors import InputError
from interlock.model.places import Place
from interlock.model.verdicts import Verdict
from interlock.oracle import Question

Pair = tuple[Effect, Verdict]


@dataclass(frozen=True)
class Piece:
    number: int
    header: str
    lines: tuple[str, ...]
    added: int = 1
    removed: int = 0


def file_stamp(digest: str = "", *, mode: int = 0o644) -> FileStamp:
    return FileStamp(type=FileType.FILE, mode=mode, uid=1000, gid=1000, size_bytes=12, digest=digest)


FOLDER = FileStamp(type=FileType.DIRECTORY, mode=0o755, uid=1000, gid=1000, size_bytes=0)


def changed(
    number: int,
    path: str,
    kind: ChangeKind,
    *,
    before: FileStamp | None = None,
    after: FileStamp | None = None,
    source: str = "",
    host_edit: HostEdit | None = None,
) -> Pair:
    effect, verdict = deferred(number, path, operation=f"file.{kind.value}")
    assert effect.change is not None
    place = Place(root="workspace", path=source) if source else None
    change = replace(effect.change, kind=kind, before=before, after=after, source=place, host_edit=host_edit)
    return replace(effect, change=change), verdict


def modified(number: int, path: str, *, mode: int = 0o644) -> Pair:
    return changed(
        number, path, ChangeKind.MODIFY, before=file_stamp("0" * 64), after=file_stamp("1" * 64, mode=mode)
    )


def conflicting(number: int, path: str, edit: HostEdit = HostEdit.EDITED) -> Pair:
    pair = modified(number, path)
    assert pair[0].change is not None
    return replace(pair[0], change=replace(pair[0].change, host_edit=edit)), pair[1]


def asked(*pairs: Pair, counts: dict[str, int] | None = None, clean: Sequence[str] = ()) -> Question:
    """Put a question.

    Takes: `counts`, effect id -> how many hunks it has; `clean`, the conflicts that can be merged.
    """

    def hunks(effect: Effect) -> tuple[Piece, ...]:
        return tuple(
            Piece(number, f"@@ -{number}0 +{number}0 @@", (" same", f"+put {number}\x1b[2J"))
            for number in range(1, (counts or {}).get(effect.id, 0) + 1)
        )

    def merged(effect: Effect) -> str:
        if effect.id not in clean:
            raise InputError(f"`{effect.object}` cannot be merged: both sides changed 1 place differently")
        return "merge f\n@@ -1 +1 @@\n-host\x1b[2J\n+both\n"

    def diff(effect: Effect) -> str:
        return "".join("\n".join((piece.header, *piece.lines)) + "\n" for piece in hunks(effect))

    return Question(task="mend it", deferred=pairs, diff=diff, hunks=hunks, merged=merged)
