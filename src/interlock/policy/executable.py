"""Executable effects: which changes run, or steer something that runs."""

import re
from dataclasses import replace
from functools import lru_cache

from interlock.model.effects import Brought, ChangeKind, Facet, FileChange, FileStamp, FileType
from interlock.model.places import GIT_PREFIX, WORKSPACE, Place
from interlock.policy import contents
from interlock.policy.declaration import full_path
from interlock.policy.executable_table import (
    LINK,
    LOSS_WORDS,
    OTHER_KINDS,
    TABLE,
    UNJUDGED,
    UNSAVED,
    VENDORED,
    Entry,
)
from interlock.policy.globs import translate, union

_WILD = re.compile(r"[*?\[]")


@lru_cache(maxsize=1)
def _index() -> dict[str, tuple[int, ...]]:
    """Return the table's literal parts (`.git`, `*.pth`), each with the entries that it stands in.

    A path that shares no part with it cannot match; this is what keeps 100,000 changes quick, and an entry's
    patterns are made only for a path that may match.
    """
    index: dict[str, list[int]] = {}
    for number, entry in enumerate(TABLE):
        for glob in entry.globs:
            parts = glob.casefold().split("/")
            literal = next((part for part in parts if not _WILD.search(part)), "")
            if not literal:
                # Such a glob must be `*.ext` or `name.*`; a test holds the table to it.
                literal = parts[-1]
            for part in {literal, *([parts[0]] if len(parts) > 1 and not _WILD.search(parts[0]) else [])}:
                index.setdefault(part, []).append(number)
    return {part: tuple(sorted(set(numbers))) for part, numbers in index.items()}


@lru_cache(maxsize=len(TABLE))
def _pattern(number: int) -> re.Pattern[str]:
    globs = (glob.casefold() for glob in TABLE[number].globs)
    return union(("(?:.*/)?" + translate(glob) for glob in globs), ignore_case=False)


@lru_cache(maxsize=len(TABLE))
def _folders(number: int) -> re.Pattern[str]:
    """Return the folders that hold such places: one moved there, or a link put there, brings its content along."""
    folders: list[str] = []
    for glob in TABLE[number].globs:
        parts = glob.casefold().split("/")
        folders.extend("(?:.*/)?" + translate("/".join(parts[:depth])) for depth in range(1, len(parts)))
    return union(folders, ignore_case=False)


@lru_cache(maxsize=len(TABLE))
def _inert(globs: tuple[str, ...]) -> re.Pattern[str]:
    return union(("(?:.*/)?" + translate(glob.casefold()) for glob in globs), ignore_case=False)


def _candidates(parts: list[str]) -> list[int]:
    index = _index()
    numbers: set[int] = set()
    if not index.keys().isdisjoint(parts):
        for part in parts:
            numbers.update(index.get(part, ()))
    base = parts[-1]
    dot = base.find(".")
    while dot >= 0:
        numbers.update(index.get("*" + base[dot:], ()))
        numbers.update(index.get(base[:dot] + ".*", ()))
        dot = base.find(".", dot + 1)
    return sorted(numbers)


def entries_at(path: str, *, folder: bool = False) -> list[Entry]:
    """Return the entries that a path falls under.

    Takes: `path`, as `full_path` writes it; `folder`, whether what lies there brings files along (a folder
    that is moved, a link to a folder).
    """
    folded = path.casefold()
    parts = folded.split("/")
    candidates = _candidates(parts)
    found: list[Entry] = []
    if not candidates:
        return found
    vendored = any(part in VENDORED for part in parts[:-1])
    for number in candidates:
        entry = TABLE[number]
        if vendored and not entry.vendored:
            continue
        if not _pattern(number).fullmatch(folded) and not (folder and _folders(number).fullmatch(folded)):
            continue
        if entry.inert and _inert(entry.inert).fullmatch(folded):
            continue
        found.append(entry)
    return found


def judges_content(path_text: str) -> bool:
    """Return whether the executable facets of this path depend on its content."""
    return any(entry.judge for entry in entries_at(path_text))


def facets_of(change: FileChange) -> tuple[Facet, ...]:
    """Return why a change is more than data; total: what cannot be judged says so in a facet of its own."""
    try:
        return tuple(dict.fromkeys([*_facets(change), *_losses(change), *_brought(change)]))
    except Exception:  # noqa: BLE001 - hostile content may fail a parser in any way; it must not pass
        return (Facet(kind=UNJUDGED, reason="Interlock failed to judge the content of this change"),)


def _facets(change: FileChange) -> list[Facet]:
    facets: list[Facet] = []
    after = change.after
    moved = change.kind is ChangeKind.RENAME
    plain_folder = after is not None and after.type is FileType.DIRECTORY and not moved
    path = full_path(change.place)
    if change.kind is ChangeKind.DELETE:
        return _removals(
            change.place, folder=change.before is None or change.before.type is FileType.DIRECTORY
        )
    if not plain_folder:
        brings = after is None or after.type is not FileType.FILE
        for entry in entries_at(path, folder=brings):
            found = _judged(entry, change)
            if found is not None:
                facets.append(Facet(kind=entry.kind, reason=_sentence(entry, found)))
    if change.before is not None and change.kind is ChangeKind.REPLACE:
        facets.extend(_removals(change.place, folder=change.before.type is FileType.DIRECTORY))
    if moved and change.source is not None:
        facets.extend(_removals(change.source, folder=after is None or after.type is FileType.DIRECTORY))
    if after is not None and after.type is FileType.SYMLINK:
        target = _followed(path, after.link_target)
        facets.extend(
            Facet(kind=LINK, reason=f"the link leads to a place of kind `{entry.kind}`: {entry.reason}")
            for entry in entries_at(target, folder=True)
        )
    return facets


def _losses(change: FileChange) -> list[Facet]:
    if not change.unsaved:
        return []
    back = change.after is not None and change.after.size_bytes > 0 and change.kind is ChangeKind.MODIFY
    how = "Git's version comes back over them" if back else "they are taken away"
    return [Facet(kind=UNSAVED, reason=f"work of yours that no commit holds: {how}")]


def _brought(change: FileChange) -> list[Facet]:
    facets = [
        Facet(kind=facet.kind, reason=f"a commit that it brings changes `{one.path}`: {facet.reason}")
        for one in change.brings
        for facet in _facets(change_of(change, one))
    ]
    if change.brings_unknown:
        facets.append(Facet(kind=UNJUDGED, reason="it cannot be told what the commits that it brings hold"))
    return facets


def change_of(branch: FileChange, one: Brought) -> FileChange:
    """Return the change that a brought path is, once Git writes it into the worktree."""
    # the root of a repository's own folder is no place of a worktree
    root = WORKSPACE if branch.place.root.startswith(GIT_PREFIX) else branch.place.root
    old = FileStamp(type=FileType.FILE, mode=0o644, uid=0, gid=0, size_bytes=0)
    new = replace(old, type=one.type, link_target=one.link_target)
    return FileChange(
        kind=one.kind,
        place=Place(root=root, path=one.path),
        before=None if one.kind is ChangeKind.CREATE else old,
        after=None if one.kind is ChangeKind.DELETE else new,
        before_text=one.before_text,
        after_text=one.after_text,
    )


def may_run(path_text: str, type_: FileType) -> bool:
    """Return whether a change of this path, to a thing of this type, can be more than data."""
    return type_ is FileType.SYMLINK or bool(entries_at(path_text, folder=type_ is not FileType.FILE))


def _removals(place: Place, *, folder: bool) -> list[Facet]:
    return [
        Facet(kind=entry.kind, reason=f"{entry.reason}; here it is taken away")
        for entry in entries_at(full_path(place), folder=folder)
        if entry.removal
    ]


def _judged(entry: Entry, change: FileChange) -> str | None:
    """Return what the entry's judge found, `""` where every change counts, None where this one does not."""
    after = change.after
    if not entry.judge or after is None:
        return ""
    if after.type is not FileType.FILE:
        return "it is no plain file"
    if change.kind is ChangeKind.ATTRIBUTES:
        return None
    before_text: str | None = ""
    if change.kind is ChangeKind.MODIFY:
        before_text = change.before_text
    judge: contents.Judge = getattr(contents, entry.judge)
    found = judge(before_text, change.after_text)
    return found or None


def _sentence(entry: Entry, found: str) -> str:
    return f"{entry.reason}: {found}" if found else entry.reason


def _followed(path: str, target: str) -> str:
    """Return where a link leads, by its text alone; an absolute target keeps its own parts."""
    parts = [] if target.startswith("/") else path.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


@lru_cache(maxsize=1)
def _own_names() -> re.Pattern[str]:
    globs = (glob for entry in TABLE if entry.by_name for glob in entry.globs if "/" not in glob)
    return union((translate(glob.casefold()) for glob in globs), ignore_case=False)


def named_by_base(kind: str, path: str) -> bool:
    """Return whether the base name alone, found in the task, names this place.

    True where the name alone makes the file what it is (`Makefile`, `AGENTS.md`), not where its folder does.
    """
    base = path.rpartition("/")[2].casefold()
    return any(entry.kind == kind and entry.by_name for entry in TABLE) and bool(_own_names().fullmatch(base))


def cues_of(kind: str) -> tuple[str, ...]:
    """Return the words that, beside the base name, name a place of this kind."""
    if kind == UNSAVED:
        return LOSS_WORDS
    return tuple(dict.fromkeys(cue for entry in TABLE if entry.kind == kind for cue in entry.cues))


def asks_in_words(kind: str) -> bool:
    """Return whether even a path in full names such a place only with one of the kind's cues beside it."""
    return kind == UNSAVED


def kinds() -> tuple[str, ...]:
    """Return every kind of facet."""
    return tuple(dict.fromkeys([entry.kind for entry in TABLE] + [kind for kind, _ in OTHER_KINDS]))
