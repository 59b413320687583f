"""The hunks of a text's change: what a unified diff shows, numbered, and each of them to be had alone.

Lines are compared at the places where they are unique on both sides first, then by the shortest edit within what
is left. The effort is bounded by counting, so the same two texts have the same hunks on every machine, and a text
made to be slow is shown as one large hunk instead.
Source: Bram Cohen's patience diff; Myers, "An O(ND) difference algorithm" (1986); GNU diffutils, unified format.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from interlock.model.errors import InputError
from interlock.model.records import dataclass

CONTEXT_LINES = 3
TEXT_LIMIT_BYTES = 1 << 20
"""Larger files are compared as a whole."""
NO_NEWLINE = "\\ No newline at end of file"

_EDIT_LIMIT = 256
_EFFORT = 4_000_000
"""Lines looked at before the rest counts as replaced: about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One hunk of a unified diff.

    Takes: `number`, from 1, in the diff's order; `header`, its line that begins with `@@`; `lines`, each with its
    sign first, not yet safe for a terminal; `added` and `removed`, how many lines of each.
    """

    number: int
    header: str
    lines: tuple[str, ...]
    added: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A hunk's lines on both sides, ends exclusive, and the edits within: (start, end) old, (start, end) new."""

    old: tuple[int, int]
    new: tuple[int, int]
    edits: tuple[tuple[int, int, int, int], ...]


def text_hunks(before: bytes, after: bytes) -> tuple[Hunk, ...]:
    """Return the hunks that lead from one text to the other, as a unified diff shows them.

    Takes: UTF-8. Raises: UnicodeDecodeError.
    """
    old, new = _lines(before), _lines(after)
    return tuple(_hunk(number, span, old, new) for number, span in enumerate(_spans(old, new), start=1))


def with_hunks(before: bytes, after: bytes, chosen: Collection[int]) -> bytes:
    """Return `before` with the chosen hunks applied: their bytes as they are in `after`, and all others' kept.

    Takes: `chosen`, numbers as `text_hunks` gives them.
    Raises: InputError, where there is no such hunk.
    """
    old, new = _lines(before), _lines(after)
    spans = _spans(old, new)
    wanted = frozenset(chosen)
    for number in sorted(wanted):
        if not 1 <= number <= len(spans):
            count = len(spans)
            raise InputError(
                f"there is no hunk {number}", hint=f"the hunks go from 1 to {count}" if count else ""
            )
    out: list[bytes] = []
    at = 0
    for number, span in enumerate(spans, start=1):
        out += old[at : span.old[0]]
        out += new[slice(*span.new)] if number in wanted else old[slice(*span.old)]
        at = span.old[1]
    return b"".join([*out, *old[at:]])


def _lines(data: bytes) -> list[bytes]:
    """Split at newlines alone, each line with its own; a last one without is a line too."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _hunk(number: int, span: _Span, old: Sequence[bytes], new: Sequence[bytes]) -> Hunk:
    lines: list[str] = []
    added = removed = 0
    at = span.old[0]
    for old_start, old_end, new_start, new_end in span.edits:
        lines.extend(_signed(" ", old[at:old_start]))
        lines.extend(_signed("-", old[old_start:old_end]))
        lines.extend(_signed("+", new[new_start:new_end]))
        added += new_end - new_start
        removed += old_end - old_start
        at = old_end
    lines.extend(_signed(" ", old[at : span.old[1]]))
    header = f"@@ -{_range(*span.old)} +{_range(*span.new)} @@"
    return Hunk(number=number, header=header, lines=tuple(lines), added=added, removed=removed)


def _signed(sign: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        text = line.decode("utf-8")
        if text.endswith("\n"):
            yield sign + text[:-1]
        else:
            yield sign + text
            yield NO_NEWLINE


def _range(start: int, end: int) -> str:
    length = end - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _spans(old: Sequence[bytes], new: Sequence[bytes]) -> list[_Span]:
    """Group the edits: two with so few lines between them that their contexts meet are one hunk."""
    groups: list[list[tuple[int, int, int, int]]] = []
    for edit in _edits(old, new):
        if groups and edit[0] - groups[-1][-1][1] <= 2 * CONTEXT_LINES:
            groups[-1].append(edit)
        else:
            groups.append([edit])
    out: list[_Span] = []
    for group in groups:
        (old_start, _, new_start, _), (_, old_end, _, new_end) = group[0], group[-1]
        lead = min(CONTEXT_LINES, old_start)
        tail = min(CONTEXT_LINES, len(old) - old_end)
        out.append(
            _Span(
                old=(old_start - lead, old_end + tail),
                new=(new_start - lead, new_end + tail),
                edits=tuple(group),
            )
        )
    return out


def _edits(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int, int, int]]:
    """Return what differs, in order, as (start, end) in the old lines and (start, end) in the new ones."""
    numbers: dict[bytes, int] = {}
    left = [numbers.setdefault(line, len(numbers)) for line in old]
    right = [numbers.setdefault(line, len(numbers)) for line in new]
    edits: list[tuple[int, int, int, int]] = []
    old_at = new_at = 0
    for old_start, new_start, length in [*sorted(_Matching(left, right).matches()), (len(old), len(new), 0)]:
        if old_start > old_at or new_start > new_at:
            edits.append((old_at, old_start, new_at, new_start))
        old_at, new_at = old_start + length, new_start + length
    return edits


_Block = tuple[int, int, int, int]


class _Matching:
    """Finds the lines that stay. Lines are numbers, equal where the lines are."""

    def __init__(self, old: Sequence[int], new: Sequence[int]) -> None:
        self._old, self._new = old, new
        self._effort = _EFFORT

    def matches(self) -> list[tuple[int, int, int]]:
        """Return runs of lines that stay: (start in the old, start in the new, length), in no order."""
        out: list[tuple[int, int, int]] = []
        waiting: list[_Block] = [(0, len(self._old), 0, len(self._new))]
        while waiting:
            block = self._trim(waiting.pop(), out)
            old_start, old_end, new_start, new_end = block
            if old_start == old_end or new_start == new_end:
                continue
            self._effort -= old_end - old_start + new_end - new_start
            anchors = self._anchors(block) if self._effort > 0 else []
            if not anchors:
                out.extend((i, j, 1) for i, j in self._shortest(block))
                continue
            for i, j in anchors:
                waiting.append((old_start, i, new_start, j))
                out.append((i, j, 1))
                old_start, new_start = i + 1, j + 1
            waiting.append((old_start, old_end, new_start, new_end))
        return out

    def _trim(self, block: _Block, out: list[tuple[int, int, int]]) -> _Block:
        old, new = self._old, self._new
        old_start, old_end, new_start, new_end = block
        length = 0
        limit = min(old_end - old_start, new_end - new_start)
        while length < limit and old[old_start + length] == new[new_start + length]:
            length += 1
        if length:
            out.append((old_start, new_start, length))
        old_start, new_start, limit = old_start + length, new_start + length, limit - length
        length = 0
        while length < limit and old[old_end - 1 - length] == new[new_end - 1 - length]:
            length += 1
        if length:
            out.append((old_end - length, new_end - length, length))
        return old_start, old_end - length, new_start, new_end - length

    def _anchors(self, block: _Block) -> list[tuple[int, int]]:
        """Return lines that are unique on both sides, the most of them that are in order on both."""
        old_start, old_end, new_start, new_end = block
        old_counts = Counter(self._old[old_start:old_end])
        new_counts = Counter(self._new[new_start:new_end])
        places = {
            line: new_start + at
            for at, line in enumerate(self._new[new_start:new_end])
            if new_counts[line] == 1 and old_counts.get(line) == 1
        }
        pairs = [(i, places[self._old[i]]) for i in range(old_start, old_end) if self._old[i] in places]
        return _longest_in_order(pairs)

    def _shortest(self, block: _Block) -> list[tuple[int, int]]:
        """Return the lines that stay under the shortest edit; none where it is too long to be looked for."""
        old_start, old_end, new_start, new_end = block
        old, new = self._old, self._new
        rows, columns = old_end - old_start, new_end - new_start
        reached = {1: 0}
        trace: list[dict[int, int]] = []
        for cost in range(min(rows + columns, _EDIT_LIMIT) + 1):
            self._effort -= cost + 1
            if self._effort <= 0:
                return []
            trace.append(dict(reached))
            for k in range(-cost, cost + 1, 2):
                down = k == -cost or (k != cost and reached[k - 1] < reached[k + 1])
                x = reached[k + 1] if down else reached[k - 1] + 1
                start = x
                while x < rows and x - k < columns and old[old_start + x] == new[new_start + x - k]:
                    x += 1
                self._effort -= x - start
                reached[k] = x
                if x >= rows and x - k >= columns:
                    return [(old_start + i, new_start + j) for i, j in _walk_back(trace, rows, columns)]
        return []


def _walk_back(trace: Sequence[dict[int, int]], x: int, y: int) -> Iterator[tuple[int, int]]:
    """Follow the shortest edit from its end; yield the pairs of lines that stay."""
    for cost in range(len(trace) - 1, -1, -1):
        reached = trace[cost]
        k = x - y
        down = k == -cost or (k != cost and reached[k - 1] < reached[k + 1])
        came = k + 1 if down else k - 1
        old_x = reached[came]
        old_y = old_x - came
        while x > max(old_x, 0) and y > max(old_y, 0):
            x, y = x - 1, y - 1
            yield x, y
        x, y = old_x, old_y


def _longest_in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the most pairs whose second numbers rise; the first ones do already."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(j)
            at.append(index)
        else:
            ends[length], at[length] = j, index
    out: list[tuple[int, int]] = []
    index = at[-1] if at else -1
    while index >= 0:
        out.append(pairs[index])
        index = before[index]
    return out[::-1]
