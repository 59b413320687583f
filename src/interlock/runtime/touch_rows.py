"""First touches and merged places as rows of the run folder's `touches` file."""

from interlock.model.effects import FileStamp, FileType
from interlock.model.places import Place
from interlock.staging.baseline import HostEntry, Touch


def of_touch(place: Place, touch: Touch, kept_at: int | None) -> list[object]:
    """Write a touch, and where in the run's file of kept bytes its bytes begin."""
    seen = touch.seen
    return [
        place.root, place.path, touch.sure, touch.read, kept_at, seen.ino, seen.mode, seen.uid, seen.gid,
        seen.size_bytes, seen.mtime_ns, seen.ctime_ns, seen.digest, seen.link_target,
    ]  # fmt: skip


def touches_from(rows: list[list[object]]) -> tuple[dict[Place, Touch], dict[Place, int]]:
    """Read what `of_touch` wrote: touches, and where kept bytes begin. Raises: ValueError, TypeError."""
    touches: dict[Place, Touch] = {}
    kept: dict[Place, int] = {}
    for root, path, sure, read, kept_at, *numbers, digest, target in rows:
        ino, mode, uid, gid, size, mtime, ctime = (_number(one) for one in numbers)
        seen = HostEntry(
            ino=ino, mode=mode, uid=uid, gid=gid, size_bytes=size, mtime_ns=mtime, ctime_ns=ctime,
            digest=str(digest), link_target=str(target),
        )  # fmt: skip
        place = Place(root=str(root), path=str(path))
        touches[place] = Touch(seen=seen, sure=bool(sure), read=bool(read))
        if kept_at is not None:
            kept[place] = _number(kept_at)
    return touches, kept


def of_merged(place: Place, stamp: FileStamp | None) -> list[object]:
    """Write what a merge put at a place, None where it removed what was there."""
    if stamp is None:
        return [place.root, place.path]
    return [
        place.root, place.path, stamp.type.value, stamp.mode, stamp.uid, stamp.gid, stamp.size_bytes, stamp.digest,
        stamp.link_target,
    ]  # fmt: skip


def merged_from(row: list[object]) -> tuple[Place, FileStamp | None]:
    """Read what `of_merged` wrote. Raises: ValueError, TypeError."""
    root, path, *rest = row
    place = Place(root=str(root), path=str(path))
    if not rest:
        return place, None
    kind, mode, uid, gid, size, digest, target = rest
    return place, FileStamp(
        type=FileType(kind), mode=_number(mode), uid=_number(uid), gid=_number(gid), size_bytes=_number(size),
        digest=str(digest), link_target=str(target),
    )  # fmt: skip


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError("no number")
    return value
