"""The text of a conflict: what the host made of a place, and what the agent made of it, both from one base."""

from dataclasses import replace

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType, HostEdit
from interlock.model.errors import IntegrityError
from interlock.staging.hunks import TEXT_LIMIT_BYTES
from interlock.staging.roots import StagedRoot
from interlock.staging.sides import read_host, read_staged
from interlock.staging.textdiff import as_text, compared, unified_diff

_SAID = {
    HostEdit.EDITED: "the host changed it too",
    HostEdit.APPEARED: "the host made it too",
    HostEdit.GONE: "the host removed it",
    HostEdit.UNCERTAIN: "it cannot be told whether the host changed it too",
}


def three_sides(
    root: StagedRoot, change: FileChange, base: bytes | None, *, limit_bytes: int = TEXT_LIMIT_BYTES
) -> str:
    """Return what both sides made of a place, as lines of text, each under its heading.

    Takes: a `change` with a `host_edit`; `base`, the bytes that both began from, None where they were not kept.
    Returns: two unified diffs from the base, where the sides are texts; else what each is, with size and digest;
    without a base, the one difference from the host's side to the staged one. Escaped and cut as `unified_diff`'s.
    Raises: IntegrityError, where a side cannot be read.
    """
    assert change.host_edit is not None
    lines = [f"conflict: {_SAID[change.host_edit]}"]
    base_stamp = change.base
    if base_stamp is None and change.host_edit is not HostEdit.APPEARED:
        lines += ["base: not known", "theirs (host) -> ours (staged):"]
        return "\n".join(lines) + "\n" + unified_diff(root, change, limit_bytes=limit_bytes)
    try:
        theirs, ours = _host_text(root, change, limit_bytes), _staged_text(root, change, limit_bytes)
    except OSError as error:
        raise IntegrityError(
            f"`{change.place}` cannot be read: {error.strerror}", hint="list the changes again"
        ) from error
    old = b"" if base_stamp is None else None if base is None else as_text(base)
    told = [
        "base -> theirs (host):\n" + _shown(change, base_stamp, change.before, old, theirs),
        "base -> ours (staged):\n" + _shown(change, base_stamp, change.after, old, ours),
    ]
    return "\n".join([*lines, *told])


def _shown(
    change: FileChange, base: FileStamp | None, side: FileStamp | None, old: bytes | None, new: bytes | None
) -> str:
    kind = ChangeKind.MODIFY if base and side else ChangeKind.DELETE if base else ChangeKind.CREATE
    if base is None and side is None:
        return "nothing\n"
    made = replace(change, kind=kind, source=None, before=base, after=side, hazards=())
    if old is None or new is None:
        # a size below any limits the answer to what each side is
        return unified_diff(_NOWHERE, made, limit_bytes=-1)
    if old == new:
        return unified_diff(_NOWHERE, made, limit_bytes=-1) if base != side else "unchanged\n"
    return compared(made, old, new, head=())


_NOWHERE = StagedRoot(name="", lower="/nowhere", upper="/nowhere")


def _host_text(root: StagedRoot, change: FileChange, limit_bytes: int) -> bytes | None:
    if change.before is None:
        return b""
    if change.before.type is not FileType.FILE or change.before.size_bytes > limit_bytes:
        return None
    return as_text(read_host(root, change, limit_bytes).data)


def _staged_text(root: StagedRoot, change: FileChange, limit_bytes: int) -> bytes | None:
    if change.after is None:
        return b""
    if change.after.type is not FileType.FILE or change.after.size_bytes > limit_bytes:
        return None
    return as_text(read_staged(root, change, limit_bytes).data)
