"""A listing of a root of which not every place counts: what of it is kept, and the folders that it needs."""

from collections.abc import Callable, Iterator

from interlock.model.effects import ChangeKind, FileChange, FileType


def only_kept(
    changes: Iterator[FileChange],
    keeps: Callable[[str], object],
    thrown: Callable[[str], None] = lambda _path: None,
) -> Iterator[FileChange]:
    """Leave out what is thrown away.

    Takes: `changes`, in the order of a listing; `keeps`, whether a place counts; `thrown`, told of each place whose new
    content is left out.
    Returns: the changes at places that count, each after the new folders that it lies in. A folder that took the
    place of a file that does not count is thrown away with all below it, and so is a move from or to elsewhere: what is
    gone, and lives on only where nothing is kept (`needs`), stays on the host.
    """
    waiting: list[FileChange] = []
    lost = ""
    for change in changes:
        path = change.place.path
        if lost and path.startswith(lost):
            if _holds_content(change):
                thrown(path)
            continue
        while waiting and not path.startswith(waiting[-1].place.path + "/"):
            waiting.pop()
        is_folder = change.after is not None and change.after.type is FileType.DIRECTORY
        is_kept = keeps(path) and (change.source is None or keeps(change.source.path))
        if is_kept and not _loses(change, keeps):
            yield from waiting
            waiting.clear()
            yield change
        elif is_folder and change.kind is ChangeKind.CREATE:
            waiting.append(change)
        elif is_folder and change.kind in (ChangeKind.REPLACE, ChangeKind.RENAME):
            lost = path + "/"
        elif _holds_content(change):
            thrown(path)


def _loses(change: FileChange, keeps: Callable[[str], object]) -> bool:
    """Say whether the content of what is gone, or of a file below it, would be kept nowhere."""
    if not change.needs or change.before is None:
        return False
    kept = [bool(keeps(path)) for path in change.needs]
    return not all(kept) if change.before.type is FileType.DIRECTORY else not any(kept)


def _holds_content(change: FileChange) -> bool:
    return (
        change.after is not None
        and change.after.type is not FileType.DIRECTORY
        and change.kind is not ChangeKind.ATTRIBUTES
    )
