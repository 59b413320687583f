"""What of a review stands or falls together: a change cannot be merged without the changes that it needs."""

from collections.abc import Iterable, Mapping, Sequence

from interlock.model.dependencies import requirements
from interlock.model.effects import ChangeKind, FileChange, FileType
from interlock.model.records import dataclass
from interlock.oracle.listing import Item

Needs = Mapping[int, tuple[int, ...]]
"""Number of an item -> the numbers of those that it needs directly."""

_PAIRS_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """What can be accepted of a choice.

    Takes: `added`, needed by the chosen; `fallen`, chosen, with the one that they lack.
    """

    accepted: frozenset[int]
    added: frozenset[int] = frozenset()
    fallen: Mapping[int, int]


def needs_of(items: Sequence[Item]) -> Needs:
    """Return what each item needs of the others."""
    files = [(item.number, item.effect.change) for item in items if item.effect.change is not None]
    needed = requirements([change for _, change in files])
    return {
        number: tuple(files[index][0] for index in needs)
        for (number, _), needs in zip(files, needed, strict=True)
        if needs
    }


def close(chosen: frozenset[int], needs: Needs, barred: frozenset[int]) -> Closed:
    """Take along what the chosen need, at any depth; drop those that need what is barred."""
    fallen: dict[int, int] = {}
    accepted: set[int] = set()
    state: dict[int, int] = {}  # number -> the barred one that it leads to, 0 for none
    for number in sorted(chosen):
        wall = _wall(number, needs, barred, state)
        if wall:
            fallen[number] = wall
        else:
            accepted.add(number)
            accepted |= _below(number, needs, accepted)
    return Closed(accepted=frozenset(accepted), added=frozenset(accepted) - chosen, fallen=fallen)


def _below(number: int, needs: Needs, known: set[int]) -> set[int]:
    found: set[int] = set()
    waiting = [number]
    while waiting:
        for need in needs.get(waiting.pop(), ()):
            if need not in found and need not in known:
                found.add(need)
                waiting.append(need)
    return found


def _wall(number: int, needs: Needs, barred: frozenset[int], state: dict[int, int]) -> int:
    """Return the first barred item that a number is, or leads to; 0 for none."""
    if number in state:
        return state[number]
    seen = {number}
    waiting = [number]
    while waiting:
        at = waiting.pop()
        if at in barred:
            state[number] = at
            return at
        for need in needs.get(at, ()):
            if state.get(need) == 0 or need in seen:
                continue
            seen.add(need)
            waiting.append(need)
    for one in seen:
        state[one] = 0
    return 0


def need_lines(closed: Closed, needs: Needs, items: Sequence[Item]) -> list[str]:
    """Say what comes along with the accepted, what falls with the refused, and which move would lose a file."""
    lines: list[str] = []
    for what, found in _by_kind(closed.added, items).items():
        count = f"{len(found):,} {what}{'s' if len(found) > 1 else ''}"
        pairs = [
            f"{number} needs {need}"
            for number in sorted(closed.accepted)
            for need in needs.get(number, ())
            if need in found
        ]
        lines.append(f"with {count}: {_some(pairs)}")
    drops: dict[int, list[int]] = {}
    for number, need in closed.fallen.items():
        drops.setdefault(need, []).append(number)
    for need, numbers in sorted(drops.items()):
        lines.append(f"refusing {need} drops {_some(map(str, numbers))} with it")
    lines.extend(
        f"{removal} and {made} look like one move: with {removal} alone the file is gone"
        for removal, made in _half_moves(closed.accepted, items)[:_PAIRS_SHOWN]
    )
    return lines


def unmarked_lines(gone: frozenset[int], marked: frozenset[int], needs: Needs) -> list[str]:
    """Say which of those that were just unmarked are still needed by what is marked."""
    users: dict[int, list[int]] = {}
    for number, found in needs.items():
        for need in found:
            users.setdefault(need, []).append(number)
    upward = {number: tuple(found) for number, found in users.items()}
    lines: list[str] = []
    for number in sorted(gone):
        takers = sorted(_below(number, upward, set()) & marked)
        if takers and len(lines) < _PAIRS_SHOWN:
            verb = "needs" if len(takers) == 1 else "need"
            lines.append(f"{_some(map(str, takers))} {verb} {number}: unmark too, or {number} comes along")
    return lines


def _by_kind(numbers: Iterable[int], items: Sequence[Item]) -> dict[str, set[int]]:
    out: dict[str, set[int]] = {}
    for number in sorted(numbers):
        change = items[number - 1].effect.change
        if change is not None:
            out.setdefault(_what(change), set()).add(number)
    return out


def _what(change: FileChange) -> str:
    match change.kind:
        case ChangeKind.DELETE:
            return "removal"
        case ChangeKind.RENAME:
            return "moved folder"
        case ChangeKind.REPLACE:
            return "replaced file"
        case _:
            return "new folder"


def _half_moves(accepted: frozenset[int], items: Sequence[Item]) -> list[tuple[int, int]]:
    """Find removals whose content would be made elsewhere by something that is refused: files lost half way."""
    kept: set[str] = set()
    refused: dict[str, int] = {}
    for item in items:
        change = item.effect.change
        if change is not None and change.after is not None and change.after.type is FileType.FILE:
            digest = change.after.digest
            if item.number in accepted:
                kept.add(digest)
            elif digest and change.after.size_bytes:
                refused.setdefault(digest, item.number)
    out: list[tuple[int, int]] = []
    for item in items:
        change = item.effect.change
        if item.number not in accepted or change is None or change.kind is not ChangeKind.DELETE:
            continue
        digest = change.before.digest if change.before is not None else ""
        if digest in refused and digest not in kept:
            out.append((item.number, refused[digest]))
    return out


def _some(texts: Iterable[str]) -> str:
    every = list(texts)
    more = f" and {len(every) - _PAIRS_SHOWN:,} more" if len(every) > _PAIRS_SHOWN else ""
    return ", ".join(every[:_PAIRS_SHOWN]) + more
