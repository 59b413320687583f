"""The text of one change for the review: a unified diff, safe for a terminal, bounded."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.errors import IntegrityError
from interlock.model.moves import Moved
from interlock.staging.hunks import TEXT_LIMIT_BYTES, text_hunks
from interlock.staging.roots import StagedRoot
from interlock.staging.sides import read_host, read_staged

SHOWN_LIMIT_BYTES = 64 << 10
"""About the longest text of one change."""
LINE_LIMIT = 400
"""Longer lines are cut in the diff; the whole text counts for what is merged."""


def unified_diff(
    root: StagedRoot,
    change: FileChange,
    *,
    limit_bytes: int = TEXT_LIMIT_BYTES,
    moved: Moved | None = None,
) -> str:
    """Return what a change does, as lines of text.

    Takes: `limit_bytes`, the largest file that is compared line by line; the answer is about as long at most,
    and at most about `SHOWN_LIMIT_BYTES`; `moved`, where the change is one end of a move: a new file is then
    compared with what it was, or shown whole where it is the same and its place judges content (`after_text`); one that
    left is not shown as removed lines.
    Returns: lines ended by a newline; a text file's unified diff, with the hunks that `hunks_of` numbers; else
    what each side is, with size and digest. Control characters and what is not UTF-8 are escaped, so nothing in
    a file can steer a terminal.
    Raises: IntegrityError, where a side cannot be read.
    """
    head = _head(change)
    old: FileChange | None = None
    if moved is not None:
        head.insert(1, moved.words)
        is_same = moved.arrived and not moved.edited and change.before is None
        if not moved.arrived or (is_same and change.after_text is None):
            return _cut(head, limit_bytes)
        if moved.edited and change.before is None:
            old = moved.other
    try:
        before, after = _sides(root, change, limit_bytes)
        if old is not None:
            before, _ = _sides(root, replace(old, after=None), limit_bytes)
    except OSError as error:
        raise IntegrityError(
            f"`{change.place}` cannot be read: {error.strerror}", hint="list the changes again"
        ) from error
    if before is None or after is None or (before == after):
        return _cut(head, limit_bytes)
    return compared(change, before, after, head=head, limit_bytes=limit_bytes, old=old)


def compared(
    change: FileChange,
    before: bytes,
    after: bytes,
    *,
    head: Sequence[str],
    limit_bytes: int = SHOWN_LIMIT_BYTES,
    old: FileChange | None = None,
) -> str:
    """Return the unified diff of two texts of one place, safe to show and cut as `unified_diff`'s.

    Takes: UTF-8; `head`, lines to stand before it; `old`, the removal of the file that was moved here.
    """
    name = change.place.path
    left = old.place if old is not None else change.source or change.place
    old_name = f"a/{left.path}" if change.before or old else "/dev/null"
    new_name = f"b/{name}" if change.after else "/dev/null"
    lines = [*head, f"--- {old_name}", f"+++ {new_name}"]
    for hunk in text_hunks(before, after):
        lines.append(hunk.header)
        lines.extend(hunk.lines)
    return _cut(lines, limit_bytes)


def _head(change: FileChange) -> list[str]:
    lines = [f"{change.kind.value} {change.place.path or '.'}"]
    if change.source is not None:
        lines.append(f"from {change.source.path}")
    if change.kind is not ChangeKind.CREATE and change.before is not None:
        lines.append(f"before: {_described(change.before, gone=change.after is None)}")
    if change.after is not None:
        lines.append(f"after:  {_described(change.after, gone=False)}")
    if change.parting:
        lines.append(change.parting)
    if change.hazards:
        lines.append("hazards: " + ", ".join(hazard.value for hazard in change.hazards))
    return lines


def _described(stamp: FileStamp, *, gone: bool) -> str:
    words = [stamp.type.value, f"mode {stamp.mode:04o}", f"owner {stamp.uid}:{stamp.gid}"]
    if stamp.type is FileType.FILE:
        words.append(f"{stamp.size_bytes} bytes")
        if stamp.digest and not stamp.digest.startswith("stat:"):
            words.append(f"sha256 {stamp.digest}")
    if stamp.type is FileType.DIRECTORY and gone:
        words.append(f"with {stamp.size_bytes} entries below")
    if stamp.type is FileType.SYMLINK:
        words.append(f"-> {stamp.link_target}")
    return ", ".join(words)


def _sides(root: StagedRoot, change: FileChange, limit_bytes: int) -> tuple[bytes | None, bytes | None]:
    """Return both sides; `b""` for a side without a file, None where a side is no short text."""
    sides: list[bytes | None] = []
    for stamp, read, known in (
        (change.before, read_host, change.before_text),
        (change.after, read_staged, change.after_text),
    ):
        if stamp is None:
            sides.append(b"")
        elif stamp.type is not FileType.FILE or stamp.size_bytes > limit_bytes:
            sides.append(None)
        elif known is not None:
            sides.append(known.encode())
        else:
            sides.append(as_text(read(root, change, limit_bytes).data))
    return sides[0], sides[1]


def as_text(data: bytes) -> bytes | None:
    """Return the bytes where they are a text (UTF-8 without NUL), else None."""
    if b"\0" in data:
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return data


def _cut(lines: list[str], limit_bytes: int) -> str:
    out: list[str] = []
    room = max(min(limit_bytes, SHOWN_LIMIT_BYTES), 4096)
    for line in _escaped(lines):
        room -= len(line) + 1
        if room < 0:
            out.append("… the rest of the diff is not shown")
            break
        out.append(line)
    return "\n".join(out) + "\n"


def _escaped(lines: list[str]) -> Iterator[str]:
    for whole in lines:
        for line in whole.split("\n"):
            shown = "".join(char if char.isprintable() or char == "\t" else _escape(char) for char in line)
            if len(shown) > LINE_LIMIT:
                shown = f"{shown[:LINE_LIMIT]}… ({len(shown) - LINE_LIMIT} more)"
            yield shown


def _escape(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
