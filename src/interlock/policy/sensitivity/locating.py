"""Where in a text the sensitive data stands: the stretches that tell it, found by the very search that tells them.

A stretch is the smallest run of units (words, escapes, single characters) in which the search finds something. So all
that the search knows is found where it stands: plain, encoded, backwards, or a phrase of words of which none tells
anything. Whoever cuts asks the search again afterwards.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from interlock.model.labels import Confidentiality
from interlock.model.records import changed
from interlock.policy.sensitivity.folding import plain
from interlock.policy.sensitivity.known import Known
from interlock.policy.sensitivity.searching import Searched, index_of

MAX_TEXT = 262_144
"""A longer text is not looked through."""
_WORK = 3_000_000
"""So many characters are searched in all, each search counting for `_EACH` more: a few seconds at most."""
_EACH = 600
_PLAINLY = 12
"""A search that decodes nothing costs so much less."""
_FIRST = 8
UNIT = re.compile(
    r"\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}"
    r"|\\u\{[0-9A-Fa-f]{1,6}\}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}|\\[0-3][0-7]{2}|\\."
    r"|%[0-9A-Fa-f]{2}|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
    r"|[\w\-\u0300-\u036f]+|.",
    re.S,
)
"""What is never cut in two: a word, an escape, any other character."""
_LINE_END = r"(?:\r?\n|(?:\\r)?\\n)"
_DIGITS = re.compile(
    rf"[A-Za-z0-9+/_\-]{{8,}}={{0,2}}(?:{_LINE_END}[A-Za-z0-9+/_\-]{{16,}}={{0,2}})*(?:{_LINE_END}[A-Za-z0-9+/_\-]+=+)?"
)
"""A run of digits of some base, over line ends."""

Span = tuple[int, int]


class TooMuch(Exception):
    """There is more than can be looked through."""


class Above:
    """The search for what is above a level, within a bound for all that is asked of it.

    Takes: `known`; `clearance`, the level that may stand in a text.
    """

    def __init__(self, known: Known, clearance: Confidentiality) -> None:
        groups = tuple((level, marks) for level, marks in known.groups if level > clearance)
        self._known = changed(known, groups=groups, trails=())
        self._left = _WORK

    def holds(self, text: str) -> bool:
        """Say whether a text holds anything above the level, plain or encoded. Raises: TooMuch."""
        if not text or not self._known:
            return False
        self._work(len(text) + _EACH)
        return self._known.level_in(text) > Confidentiality.PUBLIC

    def spans(self, text: str) -> list[Span]:
        """Return the stretches of a text that hold something above the level, in order, apart from each other.

        Raises: TooMuch.
        Holds: each begins and ends between two units.
        """
        if len(text) > MAX_TEXT:
            raise TooMuch
        if not self.holds(text):
            return []
        units = [match.span() for match in UNIT.finditer(text)]
        found = _joined(self._smallest(text, units, self._holds_plainly))
        # What stands there plainly is taken out first: it is found at a fraction of the cost.
        rest = _blanked(text, found)
        if self.holds(rest):
            encoded = self._smallest(rest, units, self.holds)
            found = _joined([*found, *encoded, *_whole_runs(text, units, encoded)])
        return found

    def _holds_plainly(self, text: str) -> bool:
        self._work((len(text) + _EACH) // _PLAINLY)
        searched = Searched(plain(text))
        return any(
            searched.holds(index_of(marks)) for _level, all_of in self._known.groups for marks in all_of
        )

    def _work(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise TooMuch

    def _smallest(self, text: str, units: list[Span], search: Callable[[str], bool]) -> list[Span]:
        """Return the smallest stretches in which a search finds something, from the first to the last."""
        found: list[Span] = []
        count = len(units)
        at = 0

        def holds(first: int, end: int) -> bool:
            return search(text[units[first][0] : units[end - 1][1]])

        while at < count:
            # The least end: the steps double, so that what is near costs little.
            below, end, step = at, min(at + _FIRST, count), _FIRST
            while not holds(at, end):
                if end == count:
                    return found
                below, step = end, 2 * step
                end = min(end + step, count)
            while end - below > 1:
                middle = (below + end) // 2
                below, end = (below, middle) if holds(at, middle) else (middle, end)
            # The greatest begin.
            first, beyond, step = end - 1, end, 1
            while first > at and not holds(first, end):
                beyond, step = first, 2 * step
                first = max(end - step, at)
            while beyond - first > 1:
                middle = (first + beyond) // 2
                first, beyond = (middle, beyond) if holds(middle, end) else (first, middle)
            found.append((units[first][0], units[end - 1][1]))
            # What begins in its second half, and ends behind it, is found next; what begins before is cut into.
            at = first + max((end - first) // 2, 1)
        return found


def _blanked(text: str, spans: list[Span]) -> str:
    """Return a text of the same length with nothing in these stretches, and nothing that joins what is beside them."""
    made: list[str] = []
    at = 0
    for begin, end in spans:
        made += (text[at:begin], "\0" * (end - begin))
        at = end
    return "".join((*made, text[at:]))


def _whole_runs(text: str, units: list[Span], spans: list[Span]) -> list[Span]:
    """Return the runs of digits that reach into these stretches, between units: their rest is of the same data."""
    if not spans:
        return []
    runs = [match.span() for match in _DIGITS.finditer(text)]
    ends = [end for _begin, end in runs]
    starts = [begin for begin, _end in units]
    made: list[Span] = []
    for begin, end in spans:
        at = bisect_right(ends, begin)
        while at < len(runs) and runs[at][0] < end:
            first = bisect_right(starts, runs[at][0]) - 1
            last = bisect_left(starts, runs[at][1]) - 1
            made.append((units[first][0], units[last][1]))
            at += 1
    return made


def _joined(spans: list[Span]) -> list[Span]:
    made: list[Span] = []
    for begin, end in sorted(spans):
        if made and begin <= made[-1][1]:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((begin, end))
    return made
