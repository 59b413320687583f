"""The list of a review: deferred effects numbered in order, and folded by folder when there are many."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from heapq import heappop, heappush

from interlock.model.effects import Effect
from interlock.model.records import dataclass
from interlock.model.verdicts import Verdict
from interlock.oracle.shown import shown

_TERM = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A deferred effect with its number in the review, from 1.

    Takes: `moved`, what is said of a moved file; `tie`, how it stands to the calls that the model announced.
    """

    number: int
    effect: Effect
    verdict: Verdict
    moved: str = ""
    tie: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the list: one item, or a run of items that share a folder.

    Takes: `start`, `end`, positions in the list of items (end exclusive); `label`, the shared folder, or
    `""` for one item; `direct`, whether the items lie in the folder itself and not deeper.
    """

    start: int
    end: int
    label: str = ""
    direct: bool = False


def arrange(
    deferred: Sequence[tuple[Effect, Verdict]],
    moved: Mapping[str, str] | None = None,
    ties: Mapping[str, str] | None = None,
) -> tuple[Item, ...]:
    """Number the effects so that every folder's effects stand together, its own before its subfolders'.

    Takes: `moved`, effect id -> what is said of a file that was moved; `ties`, how it stands to the model's calls.
    """
    told, tied = moved or {}, ties or {}
    ordered = sorted(deferred, key=lambda pair: (_folders_last(pair[0].object), pair[0].id))
    return tuple(
        Item(
            number=number,
            effect=effect,
            verdict=verdict,
            moved=told.get(effect.id, ""),
            tie=tied.get(effect.id, ""),
        )
        for number, (effect, verdict) in enumerate(ordered, start=1)
    )


def fold(items: Sequence[Item], budget: int) -> list[Row]:
    """Fold the items into at most `budget` rows (at least one), opening the smallest folders first.

    Holds: every item lies in exactly one row; rows are in order.
    """
    paths = [item.effect.object.split("/") for item in items]
    if not items:
        return []
    rows: list[Row] = []
    # A node is (how many rows it would open into, start, end, depth of the shared folder, direct).
    heap = [_node(paths, 0, len(items), 0, direct=False)]
    count = 1
    while heap:
        cost, start, end, depth, direct = heappop(heap)
        if count + cost - 1 > budget:
            # The cheapest one does not fit, so no other does.
            heap.append((cost, start, end, depth, direct))
            break
        count += cost - 1
        if direct or end - start == 1:
            rows.extend(Row(start=index, end=index + 1) for index in range(start, end))
            continue
        for child in _children(paths, start, end, depth):
            heappush(heap, child)
    for _cost, start, end, depth, direct in heap:
        single = end - start == 1
        label = "" if single else "/".join(paths[start][:depth]) + ("/" if depth else "")
        rows.append(Row(start=start, end=end, label=label or ("" if single else "everywhere"), direct=direct))
    return sorted(rows, key=lambda row: row.start)


def select(text: str, items: Sequence[Item]) -> frozenset[int] | str:
    """Read `1,3-5` or a glob over objects into item numbers; a text instead says what is wrong."""
    chosen: set[int] = set()
    for raw in text.replace(",", " ").split():
        term = _TERM.fullmatch(raw)
        if term is None:
            if not set("*?[/") & set(raw):
                return f"no number, range or pattern: {raw}"
            matching = {item.number for item in items if fnmatchcase(item.effect.object, raw)}
            if not matching:
                return f"nothing here matches {raw} (patterns look like *.yml or workspace:docs/*)"
            chosen |= matching
            continue
        first = int(term[1])
        last = int(term[2] or term[1])
        if not 1 <= first <= last <= len(items):
            return f"no such number: {raw} (they go from 1 to {len(items)})"
        chosen.update(range(first, last + 1))
    return frozenset(chosen) if chosen else "say which: a number, a range such as 3-5, or a pattern"


def ranges(numbers: frozenset[int]) -> str:
    """Write numbers shortly, as `1, 3-5`; the inverse of `select`."""
    out: list[str] = []
    ordered = sorted(numbers)
    start = 0
    for index, number in enumerate(ordered):
        if index + 1 == len(ordered) or ordered[index + 1] != number + 1:
            first = ordered[start]
            out.append(str(first) if first == number else f"{first}-{number}")
            start = index + 1
    return ", ".join(out)


def kinds(items: Sequence[Item]) -> str:
    """Count why the items wait, the rarest first: one odd effect must not hide among thousands."""
    counts: Counter[str] = Counter()
    for item in items:
        counts.update(kinds_of(item) or ("not vouched",))
    rarest_first = sorted(counts.items(), key=lambda pair: (pair[1], pair[0]))
    return shown(", ".join(f"{count:,} {kind}" for kind, count in rarest_first))


def kinds_of(item: Item) -> tuple[str, ...]:
    """Return the item's facets and hazards by name, without repeats, and first whether it is a conflict."""
    change = item.effect.change
    names = ["conflict"] if change is not None and change.host_edit is not None else []
    names += [hazard.value for hazard in change.hazards] if change is not None else []
    names += [facet.kind for facet in item.effect.facets]
    return tuple(dict.fromkeys(names))


def _folders_last(path: str) -> tuple[tuple[int, str], ...]:
    *folders, leaf = path.split("/")
    return (*((1, name) for name in folders), (0, leaf))


_Node = tuple[int, int, int, int, bool]


def _node(paths: Sequence[Sequence[str]], start: int, end: int, depth: int, *, direct: bool) -> _Node:
    cost = end - start if direct else len(_cuts(paths, start, end, depth))
    return (cost, start, end, depth, direct)


def _children(paths: Sequence[Sequence[str]], start: int, end: int, depth: int) -> list[_Node]:
    cuts = _cuts(paths, start, end, depth)
    out = []
    for first, last in zip(cuts, [*cuts[1:], end], strict=True):
        direct = len(paths[first]) == depth + 1
        out.append(_node(paths, first, last, depth if direct else depth + 1, direct=direct))
    return out


def _cuts(paths: Sequence[Sequence[str]], start: int, end: int, depth: int) -> list[int]:
    """Return where the children of a folder begin: its own files as one, then each subfolder."""
    cuts = []
    previous: str | None = None
    for index in range(start, end):
        path = paths[index]
        # Own files come first in the order, and no subfolder can be named "/".
        key = "/" if len(path) == depth + 1 else path[depth]
        if key != previous:
            cuts.append(index)
            previous = key
    return cuts
