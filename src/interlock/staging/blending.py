"""What reaches the host of a text file that is released in part, or together with the host's own edit.

Both are made from three things that are checked first: the host's bytes are those of the change's `before`, the
staged ones those of its `after`, and the base's those of its `base`. A file with several names is never blended:
the other names would keep the old content, or get one that nobody saw.

What is released in part has the mode, owner and xattrs of the staged copy. What is merged keeps the host's where the
agent did not change them, and the host's xattrs always: what they were before is not kept, so it cannot be told who
changed them.
"""

import hashlib
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from interlock.model.effects import ChangeKind, FileChange, FileStamp, FileType, HostEdit
from interlock.model.errors import InputError, IntegrityError
from interlock.staging.errors import ConflictError
from interlock.staging.hunks import TEXT_LIMIT_BYTES, Hunk, text_hunks, with_hunks
from interlock.staging.merge_plan import Substitute
from interlock.staging.roots import StagedRoot
from interlock.staging.sides import Side, read_host, read_staged
from interlock.staging.textdiff import as_text, compared
from interlock.staging.three_way import merge_three

BLEND_LIMIT_BYTES = 16 << 20
_WHOLE = "release it whole, or refuse it"
_KINDS = {
    ChangeKind.DELETE: "it is removed",
    ChangeKind.RENAME: "it is moved",
    ChangeKind.REPLACE: "its type changes",
    ChangeKind.ATTRIBUTES: "only its attributes change",
}
_KEEP = "keep the host's version, or change one side by hand"


def hunks_of(
    root: StagedRoot, change: FileChange, *, limit_bytes: int = TEXT_LIMIT_BYTES
) -> tuple[Hunk, ...]:
    """Return the hunks of a change that can be released one by one, as `unified_diff` shows them.

    Returns: none for anything but a new or changed text file of at most `limit_bytes` with one name, which the
    host did not change too. A new file is one hunk.
    Raises: IntegrityError, where a side cannot be read or is not what was listed; ConflictError, where the host
    changed since.
    """
    if _no_hunks(change, limit_bytes):
        return ()
    try:
        host, staged = _sides(root, change, limit_bytes)
    except InputError:
        return ()
    return text_hunks(host.data, staged.data)


def merged_diff(root: StagedRoot, change: FileChange, *, base: bytes | None) -> str:
    """Return what the merge of both sides changes on the host, as `unified_diff` does.

    Takes: `change`, a conflict; `base`, what the agent began from, None where that was not kept.
    Raises: as `blend`.
    """
    side, merged = _merge(root, change, base)
    host = side.data
    head = [f"merge {change.place.path}"]
    if merged == host:
        return "\n".join([*head, "the host has all of it already", ""])
    return compared(change, host, merged, head=head)


def blend(
    root: StagedRoot,
    change: FileChange,
    *,
    hunks: Collection[int] = (),
    merge: bool = False,
    base: bytes | None = None,
    into: str,
) -> Substitute:
    """Make the content that is released of a change, and write it into a file of the folder `into`.

    Takes: either `hunks`, numbers as `hunks_of` gives them, or `merge`, with `base` as in `merged_diff`.
    Raises: InputError, with the reason, where it cannot be had; IntegrityError, where the staged side or the
    base is not what was listed; ConflictError, where the host changed since; OSError, where the file cannot
    be written.
    """
    if bool(hunks) == merge:
        raise InputError(f"`{change.place}` is either merged or released by hunks", hint=_WHOLE)
    after: FileStamp | None = change.after
    xattrs: Mapping[str, bytes] | None = None
    if merge:
        side, data = _merge(root, change, base)
        after, xattrs = _merged_attributes(change), side.xattrs
    else:
        why = _no_hunks(change, TEXT_LIMIT_BYTES)
        if why:
            raise InputError(f"`{change.place}` has no hunks: {why}", hint=_WHOLE)
        host, staged = _sides(root, change, TEXT_LIMIT_BYTES)
        try:
            data = with_hunks(host.data, staged.data, hunks)
        except InputError as error:
            raise InputError(f"`{change.place}`: {error.message}", hint=error.hint) from error
    assert after is not None
    after = replace(after, size_bytes=len(data), digest=hashlib.sha256(data).hexdigest())
    path = _written(into, str(change.place), data)
    return Substitute(place=change.place, path=path, after=after, xattrs=xattrs)


def _merged_attributes(change: FileChange) -> FileStamp:
    """Return the staged stamp with the host's mode and owner where only the host can have changed them."""
    host, staged, base = change.before, change.after, change.base
    assert host is not None
    assert staged is not None
    return replace(
        staged,
        mode=host.mode if base is None or staged.mode == base.mode else staged.mode,
        uid=host.uid if base is None or staged.uid == base.uid else staged.uid,
        gid=host.gid if base is None or staged.gid == base.gid else staged.gid,
    )


def _no_hunks(change: FileChange, limit_bytes: int) -> str:
    """Say what keeps a change from being released in part; "" where nothing does."""
    if change.host_edit is not None:
        return "the host changed it too"
    if change.kind not in (ChangeKind.CREATE, ChangeKind.MODIFY):
        return _KINDS[change.kind]
    return _no_text(change.before, limit_bytes) or _no_text(change.after, limit_bytes)


def _no_text(stamp: FileStamp | None, limit_bytes: int) -> str:
    if stamp is None:
        return ""
    if stamp.type is not FileType.FILE:
        return f"it is a {stamp.type.value}"
    if stamp.size_bytes > limit_bytes:
        return f"it is larger than {limit_bytes >> 20} MiB" if limit_bytes >> 20 else "it is too large"
    return "" if stamp.digest and not stamp.digest.startswith("stat:") else "its content was not read"


def _merge(root: StagedRoot, change: FileChange, base: bytes | None) -> tuple[Side, bytes]:
    """Return the host's side and the merged bytes."""
    why = _no_merge(change)
    if not why and base is None:
        why = "what the agent began from was not kept"
    if why:
        raise InputError(f"`{change.place}` cannot be merged: {why}", hint=_KEEP)
    assert base is not None
    if change.base is not None and change.base.digest:
        found = Side(data=base, names=1)
        if found.digest != change.base.digest:
            raise IntegrityError(
                f"what was kept of `{change.place}` is not what the agent began from", hint=_KEEP
            )
    if as_text(base) is None:
        raise InputError(f"`{change.place}` cannot be merged: it was no text before", hint=_KEEP)
    host, staged = _sides(root, change, BLEND_LIMIT_BYTES)
    merged = merge_three(base, host.data, staged.data)
    if merged.conflicts:
        count = "1 place" if merged.conflicts == 1 else f"{merged.conflicts} places"
        raise InputError(
            f"`{change.place}` cannot be merged: both sides changed {count} differently", hint=_KEEP
        )
    return host, merged.data


def _no_merge(change: FileChange) -> str:
    if change.host_edit is None:
        return "the host did not change it"
    if change.host_edit is HostEdit.APPEARED or change.host_edit is HostEdit.GONE:
        made = change.host_edit is HostEdit.APPEARED
        return "both sides made it anew" if made else "the host removed it"
    if change.before is None or change.after is None:
        return "one side removed it"
    return _no_text(change.before, BLEND_LIMIT_BYTES) or _no_text(change.after, BLEND_LIMIT_BYTES)


def _sides(root: StagedRoot, change: FileChange, limit_bytes: int) -> tuple[Side, Side]:
    """Read the host's and the staged side, and see that they are what was listed."""
    assert change.after is not None
    host = Side(data=b"", names=1)
    try:
        if change.before is not None:
            host = read_host(root, change, limit_bytes + 1)
            if host.digest != change.before.digest:
                raise ConflictError(
                    f"the host changed since the changes were listed: `{change.place}`",
                    places=(change.place,),
                    hint="look at both sides, then list the changes again; nothing was merged",
                )
            _check_names(change, host)
        staged = read_staged(root, change, limit_bytes + 1)
    except OSError as error:
        raise IntegrityError(
            f"`{change.place}` cannot be read: {error.strerror}", hint="list the changes again"
        ) from error
    if staged.digest != change.after.digest:
        raise IntegrityError(
            f"the staged copy of `{change.place}` is not what was listed",
            hint="something still writes to it; list the changes again",
        )
    _check_names(change, staged)
    for side in (host, staged):
        if as_text(side.data) is None:
            raise InputError(
                f"`{change.place}` is no text", hint=_WHOLE if change.host_edit is None else _KEEP
            )
    return host, staged


def _check_names(change: FileChange, side: Side) -> None:
    if side.names > 1:
        raise InputError(
            f"`{change.place}` is a file with {side.names} names, and all of them are one",
            hint=_WHOLE if change.host_edit is None else _KEEP,
        )


def _written(into: str, place: str, data: bytes) -> str:
    path = os.path.join(into, hashlib.sha256(place.encode()).hexdigest())
    with suppress(FileNotFoundError):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
    return path
