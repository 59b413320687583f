"""The text of one change for the review: a unified diff, safe for a terminal, bounded."""

import os
from collections.abc import Iterator

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType
from interlock.model.errors import IntegrityError
from interlock.model.places import path_bytes
from interlock.staging.roots import StagedRoot
from interlock.staging.stamps import open_file
from interlock.staging.syscalls import open_beneath

LINE_LIMIT = 400
"""Longer lines are cut in the diff; the whole text counts for what is merged."""


def unified_diff(root: StagedRoot, change: FileChange, *, limit_bytes: int = 65536) -> str:
    """Return what a change does, as lines of text.

    Takes: `limit_bytes`, the largest file that is compared line by line, and about the longest answer.
    Returns: lines ended by a newline; a text file's unified diff; else what each side is, with size and
    digest. Control characters and what is not UTF-8 are escaped, so nothing in a file can steer a terminal.
    Raises: IntegrityError, where a side cannot be read.
    """
    head = _head(change)
    try:
        before, after = _sides(root, change, limit_bytes)
    except OSError as error:
        raise IntegrityError(
            f"`{change.place}` cannot be read: {error.strerror}", hint="list the changes again"
        ) from error
    if before is None or after is None or (before == after):
        return _cut(head, limit_bytes)
    old, new = _lines(before), _lines(after)
    import difflib  # slow to load, and only a review needs it

    name = change.place.path
    old_name = f"a/{change.source.path if change.source else name}" if change.before else "/dev/null"
    new_name = f"b/{name}" if change.after else "/dev/null"
    body = difflib.unified_diff(old, new, old_name, new_name, lineterm="")
    return _cut([*head, *body], limit_bytes)


def _head(change: FileChange) -> list[str]:
    lines = [f"{change.kind.value} {change.place.path or '.'}"]
    if change.source is not None:
        lines.append(f"from {change.source.path}")
    if change.kind is not ChangeKind.CREATE and change.before is not None:
        lines.append(f"before: {_described(change.before, gone=change.after is None)}")
    if change.after is not None:
        lines.append(f"after:  {_described(change.after, gone=False)}")
    if change.hazards:
        lines.append("hazards: " + ", ".join(hazard.value for hazard in change.hazards))
    return lines


def _described(stamp: FileStamp, *, gone: bool) -> str:
    words = [stamp.type.value, f"mode {stamp.mode:04o}", f"owner {stamp.uid}:{stamp.gid}"]
    if stamp.type is FileType.FILE:
        words.append(f"{stamp.size_bytes} bytes")
        if stamp.digest:
            words.append(f"sha256 {stamp.digest}")
    if stamp.type is FileType.DIRECTORY and gone:
        words.append(f"with {stamp.size_bytes} entries below")
    if stamp.type is FileType.SYMLINK:
        words.append(f"-> {stamp.link_target}")
    return ", ".join(words)


def _sides(root: StagedRoot, change: FileChange, limit_bytes: int) -> tuple[str | None, str | None]:
    """Return both sides as text; "" for a side without a file, None where a side is no short text."""
    sides: list[str | None] = []
    for stamp, folder, place, known in (
        (change.before, root.lower, change.source or change.place, change.before_text),
        (change.after, root.upper, change.place, change.after_text),
    ):
        if stamp is None:
            sides.append("")
        elif stamp.type is not FileType.FILE or stamp.size_bytes > limit_bytes:
            sides.append(None)
        elif known is not None:
            sides.append(known)
        else:
            sides.append(_read(folder, os.fsdecode(path_bytes(place.path)), limit_bytes))
    return sides[0], sides[1]


def _read(folder: str, path: str, limit_bytes: int) -> str | None:
    parent, _, name = path.rpartition("/")
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fd = open_beneath(top, parent, os.O_PATH | os.O_DIRECTORY)
    finally:
        os.close(top)
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        file = open_file(fd, name, status, lend_mode=False)
    finally:
        os.close(fd)
    try:
        data = os.pread(file, limit_bytes, 0)
    finally:
        os.close(file)
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    """Split at newlines alone, and mark a last line without one, as a diff is used to."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _cut(lines: list[str], limit_bytes: int) -> str:
    out: list[str] = []
    room = max(limit_bytes, 4096)
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
