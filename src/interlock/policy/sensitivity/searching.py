"""Whether a text holds any of many marks, in a time that hardly grows with their number.

A mark that counts anywhere is at least `STEP + GRAM - 1` long, so a copy of it holds one of its first grams at a place
that is a multiple of `STEP`: only those of the text are looked up.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from interlock.model.records import dataclass
from interlock.policy.sensitivity.folding import squeeze
from interlock.policy.sensitivity.marks import Marks

GRAM = 7
STEP = 3
_FEW = 24
"""So many marks are searched for one by one."""
_PIECE = re.compile(r"[\w\-]+")
_BORDERS = bytes(byte if bytes((byte,)).isalnum() or byte in b"_-" else 32 for byte in range(256))


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Marks as they are searched for.

    Takes: `whole`, words without a border in them; `parted`, the others, each with its pieces; `anywhere`; `grams`, the
    first ones of `anywhere`, each with those that begin so; `longest`, how long a mark is at most.
    """

    whole: frozenset[str]
    parted: tuple[tuple[str, frozenset[str]], ...]
    anywhere: tuple[str, ...]
    grams: Mapping[str, tuple[str, ...]]
    longest: int


@lru_cache(maxsize=128)
def index_of(marks: Marks) -> Index:
    """Return marks as they are searched for."""
    words = marks.words | {word[::-1] for word in marks.words}
    anywhere = marks.strong | marks.phrases
    parted = []
    whole = []
    for word in sorted(words):
        pieces = _PIECE.findall(word)
        if pieces == [word]:
            whole.append(word)
        else:
            parted.append((word, frozenset(pieces)))
    grams: dict[str, tuple[str, ...]] = {}
    for word in sorted(anywhere):
        for at in range(STEP):
            gram = word[at : at + GRAM]
            grams[gram] = (*grams.get(gram, ()), word)
    return Index(
        whole=frozenset(whole),
        parted=tuple(parted),
        anywhere=tuple(sorted(anywhere)),
        grams=grams,
        longest=max(map(len, words | anywhere), default=0),
    )


class Searched:
    """A text as it is searched; each form of it is made once, and only where it is needed.

    Takes: `text`, as it looks (`folding.plain`).
    """

    def __init__(self, text: str) -> None:
        self._folded = text.lower()
        self._squeezed = ""
        self._pieces: frozenset[str] | None = None
        self._grams: tuple[frozenset[str], ...] = ()

    def holds(self, index: Index) -> bool:
        """Say whether the text holds a mark."""
        return self.holds_word(index) or self._holds_anywhere(index)

    def holds_word(self, index: Index) -> bool:
        """Say whether the text holds one of the words, plain and between borders."""
        if len(index.whole) + len(index.parted) <= _FEW:
            return any(
                _stands(self._folded, word) for word in (*index.whole, *(word for word, _ in index.parted))
            )
        pieces = self._split()
        if not index.whole.isdisjoint(pieces):
            return True
        return any(parts <= pieces and _stands(self._folded, word) for word, parts in index.parted)

    def _split(self) -> frozenset[str]:
        if self._pieces is None:
            if self._folded.isascii():
                spaced = self._folded.encode("ascii").translate(_BORDERS).decode("ascii")
                self._pieces = frozenset(spaced.split())
            else:
                self._pieces = frozenset(_PIECE.findall(self._folded))
        return self._pieces

    def _holds_anywhere(self, index: Index) -> bool:
        if not index.anywhere:
            return False
        self._squeezed = self._squeezed or squeeze(self._folded)
        ways = (self._squeezed, self._squeezed[::-1])
        if len(index.anywhere) <= _FEW:
            return any(word in way for word in index.anywhere for way in ways)
        if not self._grams:
            self._grams = tuple(
                frozenset(way[at : at + GRAM] for at in range(0, len(way), STEP)) for way in ways
            )
        for way, grams in zip(ways, self._grams, strict=True):
            seen = grams.intersection(index.grams)
            if any(word in way for word in {word for gram in seen for word in index.grams[gram]}):
                return True
        return False


def _stands(folded: str, word: str) -> bool:
    """Say whether a word stands somewhere between borders."""
    at = folded.find(word)
    while at >= 0:
        end = at + len(word)
        if not (at and _is_inner(folded[at - 1])) and not (end < len(folded) and _is_inner(folded[end])):
            return True
        at = folded.find(word, at + 1)
    return False


def _is_inner(char: str) -> bool:
    return char in "-_" or char.isalnum()
