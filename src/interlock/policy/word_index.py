"""Which pieces of many texts hold a word: append-only, so that a look-up reads a few kilobytes and never all of them.

A text is cut at white space into blocks of about `BLOCK` characters (short texts lie in one block together). Of each
block the words, runs of letters and digits in lower case, go into sorted arrays of numbers: a hash of the word, and the
block. What a look-up finds is a superset, in the order of the texts; the caller looks itself.
The hash is the interpreter's: it differs from run to run, so that nobody can write a text whose words collide, and no
answer depends on it.
Source: ours, after signature files and log-structured merging.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from interlock.policy.matching import lowered

Span = tuple[int, int]
BLOCK = 1024
MOST_TEXTS = 64
"""So many short texts lie in one block."""
_BLOCK_BITS = 20
MAX_BLOCKS = 1 << _BLOCK_BITS
_HASH = ((1 << 53) - 1) ^ (MAX_BLOCKS - 1)
"""A key is a whole number below 2^53, kept as a float: these sort in half the time, and take no more room."""
_SEGMENT = 1 << 18
_LARGEST = 1 << 20
"""Keys of a segment: smaller ones are merged, so that there are few."""
_FEW = 2
_MOST_WORDS = 6
_OFTEN = 16
_FOLDED = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
_WORDS = re.compile(r"[^\W_]+")
GAP = re.compile(r"[\s\"]+")
"""Where a text may be cut: no value that is compared by its words goes on behind one, but by its own gaps."""


def words_of(value: str) -> tuple[str, ...]:
    """Return the words by which a value is looked up, the longest first; none where its spelling may vary."""
    if not value.isascii():
        from unicodedata import is_normalized

        if not is_normalized("NFKC", value) or not is_normalized("NFKC", lowered(value)):
            return ()
    return tuple(sorted(dict.fromkeys(_WORDS.findall(lowered(value))), key=len, reverse=True)[:_MOST_WORDS])


def _words_in(text: str) -> set[str]:
    if text.isascii():
        return set(text.translate(_FOLDED).split())
    from unicodedata import normalize

    return {*_WORDS.findall(lowered(text)), *_WORDS.findall(lowered(normalize("NFKC", text)))}


class WordIndex:
    """The words of texts, by block.

    Holds: `texts` is how many texts it knows; a block is a piece of one text, or several whole ones.
    """

    def __init__(self) -> None:
        self.texts = 0
        self._first = array("L")
        self._upto = array("L")
        self._begin = array("Q")
        self._end = array("Q")
        self._segments: list[tuple[int, int, array[float]]] = []
        """Of each segment: how many texts and blocks there are up to its end, and its keys."""

    def copied(self, texts: int) -> "WordIndex":
        """Return an index of the first texts alone, or of fewer: whole segments are shared."""
        copy = WordIndex()
        copy._segments = [segment for segment in self._segments if segment[0] <= texts]
        if copy._segments:
            copy.texts, blocks, _ = copy._segments[-1]
            for name in ("_first", "_upto", "_begin", "_end"):
                setattr(copy, name, getattr(self, name)[:blocks])
        return copy

    @property
    def size_bytes(self) -> int:
        """Return what the index takes beside the texts."""
        a_block = sum(each.itemsize for each in (self._first, self._upto, self._begin, self._end))
        return a_block * len(self._first) + sum(8 * len(keys) for _, _, keys in self._segments)

    def add(self, texts: Sequence[str]) -> None:
        """Index more texts, which follow those that are known; beyond `MAX_BLOCKS` it takes no more."""
        keys: list[float] = []
        number = self.texts
        upto = number + len(texts)
        while number < upto:
            if len(self._first) + 1 >= MAX_BLOCKS:
                break
            text = texts[number - self.texts]
            if len(text) >= BLOCK:
                if len(self._first) + 1 + len(text) // BLOCK >= MAX_BLOCKS:
                    break
                for begin, end in _pieces(text):
                    self._put((number, number + 1), (begin, end), _words_in(text[begin:end]), keys)
                number += 1
            else:
                first, words, room = number, set[str](), BLOCK
                while number < upto and number - first < MOST_TEXTS:
                    text = texts[number - self.texts]
                    if len(text) > room:
                        break
                    room -= len(text)
                    words |= _words_in(text)
                    number += 1
                self._put((first, number), (0, 0), words, keys)
            if len(keys) >= _SEGMENT:
                self._seal(number, keys)
                keys = []
        if keys or (self._segments and self._segments[-1][0] < number):
            self._seal(number, keys)
        self.texts = number

    def _put(
        self, texts: tuple[int, int], piece: tuple[int, int], words: set[str], keys: list[float]
    ) -> None:
        block = len(self._first)
        self._first.append(texts[0])
        self._upto.append(texts[1])
        self._begin.append(piece[0])
        self._end.append(piece[1])
        keys += [float(code & _HASH | block) for code in map(hash, words)]

    def _seal(self, texts: int, keys: list[float]) -> None:
        segments = self._segments
        while (
            segments
            and len(segments[-1][2]) <= 2 * len(keys)
            and len(segments[-1][2]) + len(keys) <= _LARGEST
        ):
            keys = [*segments.pop()[2], *keys]
        keys.sort()
        segments.append((texts, len(self._first), array("d", keys)))

    def candidates(
        self, words: Sequence[str], *, apart: int, only: int | None = None
    ) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield the blocks that may hold all the words together, in order.

        Takes: `words`, at least one; `apart`, how many blocks away from the first one's the others may lie; `only`, a
        text, where no other is of interest.
        Returns: the word that is rarest around there, first text, the one behind the last, begin and end of the piece
        (both 0 for whole texts).
        """
        bases = [(float(hash(word) & _HASH), word) for word in words]
        begin, end = (0, len(self._first)) if only is None else self._blocks_of(only)
        start = 0
        for _, blocks, keys in self._segments:
            low, high = max(begin, start), min(end, blocks)
            start = blocks
            if low < high:
                for block in _together(keys, bases, low, high, apart):
                    begins, ends = self._begin[block], self._end[block]
                    yield bases[0][1], self._first[block], self._upto[block], begins, ends

    def _blocks_of(self, text: int) -> tuple[int, int]:
        return bisect_right(self._upto, text), bisect_right(self._first, text)


def _together(
    keys: "array[float]", bases: list[tuple[float, str]], low: int, high: int, apart: int
) -> list[int]:
    """Return the blocks of a segment that may hold all words; the rarest goes to the front for the next segment.

    A text lies in one segment, so what stands together is found together.
    """
    size = len(keys)
    rarest: tuple[int, int, int] | None = None
    for index, (base, _) in enumerate(bases):
        at = bisect_left(keys, base + low)
        beyond = base + high
        if at == size or keys[at] >= beyond:
            bases.insert(0, bases.pop(index))
            return []
        few = at + _FEW >= size or keys[at + _FEW] >= beyond
        upto = bisect_left(keys, beyond, at, min(at + _FEW, size) if few else size)
        if rarest is None or upto - at < rarest[2] - rarest[1]:
            rarest = index, at, upto
        if few:
            break
    assert rarest is not None
    index, at, upto = rarest
    bases.insert(0, bases.pop(index))
    base = bases[0][0]
    found = list(dict.fromkeys([int(key - base) for key in keys[at:upto]]))
    if len(found) > _FEW:
        for other, _ in bases[1:]:
            found = [block for block in found if _is_near(keys, other, block, apart)]
    return found


def _is_near(keys: "array[float]", base: float, block: int, apart: int) -> bool:
    at = bisect_left(keys, base + max(block - apart, 0))
    return at < len(keys) and keys[at] <= base + min(block + apart, MAX_BLOCKS - 1)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Cut a text behind gaps, so that no word and no gap is in two pieces."""
    begin = 0
    while begin < len(text):
        gap = GAP.search(text, begin + BLOCK)
        end = gap.end() if gap is not None else len(text)
        yield begin, end
        begin = end


def places(text: str, word: str, begin: int, end: int) -> list[Span] | None:
    """Return where in a part of a text a word stands, None where that cannot be told or is often."""
    part = text[begin:end]
    if not part.isascii():
        from unicodedata import is_normalized

        if "\u0130" in part or not is_normalized("NFKC", part):
            return None
    part = lowered(part)
    found: list[Span] = []
    at = part.find(word)
    while at >= 0:
        if len(found) == _OFTEN:
            return None
        found.append((begin + at, begin + at + len(word)))
        at = part.find(word, at + 1)
    return found


def window(text: str, begin: int, end: int, pieces: int, *, least: int = 0) -> Span:
    """Return where a text may be cut around a part of it, with so many whole pieces more on each side.

    Takes: `least`, so many characters more at the least.
    """
    return _cut_before(text, begin, pieces + 1, begin - least), _cut_behind(
        text, end, pieces + 1, end + least
    )


def _cut_behind(text: str, at: int, pieces: int, least: int) -> int:
    gap = GAP.search(text, max(at, least - 1))
    # Nearly always so many characters hold so many pieces.
    if gap is not None and len(text[at : gap.end()].split()) > pieces:
        return gap.end()
    for gap in GAP.finditer(text, at):
        pieces -= 1
        if pieces <= 0 and gap.end() >= least:
            return gap.end()
    return len(text)


def _cut_before(text: str, at: int, pieces: int, most: int) -> int:
    low = max(most - BLOCK, 0)
    near = max(text.rfind(" ", low, most), text.rfind("\n", low, most)) + 1 if most > 0 else 0
    if near and len(text[near:at].split()) > pieces:
        return near
    reach = max(at - most, 0) + 48 * pieces
    while at > 0:
        low = max(at - reach, 0)
        left = pieces
        # Backwards: what is looked for is near the end.
        for gap in GAP.finditer(text[low:at][::-1]):
            left -= 1
            if left <= 0 and at - gap.start() <= most:
                return at - gap.start()
        if not low:
            break
        reach *= 4
    return 0
