"""By what a sensitive text is known again: its telling words, those that tell it even inside others, and its phrases.

A word counts whole, between borders. One that chance hardly makes (`strong`) counts wherever it stands, with its
punctuation taken out. Phrases are words in a row, five or as many more as make twenty letters; of a long text a
winnowed part of them is kept, so that any copy that holds `WINDOW` of them holds one. Each counts backwards as well.
Source: KAIROS, sensitive tokens; Schleimer et al. 2003 (winnowing); the rest ours.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from zlib import crc32

from interlock.model.records import dataclass
from interlock.policy.sensitivity.folding import fold, squeeze, words_of
from interlock.policy.sensitivity.telling import is_strong, named_words, telling_words

PHRASE_WORDS = 5
WINDOW = 4
_PHRASE_LETTERS = 20
"""A digit counts for two: numbers say more than words."""
_FEW = 5
_WIDE = 4
_LEAF_LETTERS = 8
_LONGEST_LEAF = 200
"""A longer leaf is a text, known by its phrases."""
_MOST_WORDS = 12
_COLUMNS = 400
"""Of a table of more cells only the rows are known."""
_ROW_CELLS = 3
_LONG_ROW, _FEW_IN_ROW = 40, 3
"""A whole row of numbers says more than a phrase of few digits."""
_DIGITS = re.compile(r"\d(?:[ .\-]?\d){8,}")
_NAME = re.compile(r"(?m)^[ \t]*(?:export[ \t]+)?[A-Z][A-Z0-9_]*(?==)")
_KEY = re.compile(r"\"[a-z_][a-z_ -]*\"(?=\s*:)")
_CELL = re.compile(r"[,;\t|]")
_ARMOUR = re.compile(r"-----(?:BEGIN|END)[A-Z0-9 ]*-----")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What a sensitive text is known by.

    Takes: `words`, that count whole; `strong`, letters and digits that count anywhere; `phrases`, the letters and
    digits of words in a row, that count anywhere too.
    """

    words: frozenset[str] = frozenset()
    strong: frozenset[str] = frozenset()
    phrases: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Return how many marks there are."""
        return len(self.words) + len(self.strong) + len(self.phrases)

    def but(self, other: "Marks") -> "Marks":
        """Return the marks that are not in another."""
        return Marks(
            words=self.words - other.words,
            strong=self.strong - other.strong,
            phrases=self.phrases - other.phrases,
        )

    def and_also(self, other: "Marks") -> "Marks":
        """Return the marks of both."""
        return Marks(
            words=self.words | other.words,
            strong=self.strong | other.strong,
            phrases=self.phrases | other.phrases,
        )


@lru_cache(maxsize=4)
def marks_of(text: str) -> Marks:
    """Return what a sensitive text is known by.

    Holds: the names of environment variables, of JSON's members and of a table's columns, armour lines and names made
    of common words alone are no marks.
    """
    if "\0" in text:
        # UTF-16 that reads as UTF-8 has one between letters; elsewhere they end what stands before.
        text = text.replace("\0", "" if text.count("\0") * _WIDE > len(text) else "\n")
    bare = _ARMOUR.sub(" ", text)
    folded = fold(_NAME.sub("", bare))
    values = _without_head(_KEY.sub(" ", folded) if '"' in folded else folded)
    words = telling_words(values) | named_words(fold(bare))
    strong = {strong for token in words if is_strong(strong := squeeze(token))}
    strong.update(squeeze(digits) for digits in _DIGITS.findall(folded))
    phrases = _phrases(words_of(folded))
    phrases |= frozenset(filter(_says_enough, _down_columns(folded))) | frozenset(_bare_rows(folded, phrases))
    return Marks(words=words, strong=frozenset(strong), phrases=phrases)


def marks_of_leaves(leaves: Sequence[tuple[str, str]]) -> Marks:
    """Return what the leaves of sensitive fields are known by: all of them as one text, and each as a whole.

    Takes: `leaves`, key and text of each.
    Holds: a leaf of several words is known by all of them in a row, one of a single word where that has a digit.
    """
    marks = marks_of("\n".join(text for _key, text in leaves))
    words: set[str] = set()
    rows: set[str] = set()
    for key, text in dict.fromkeys(leaves):
        folded = fold(text)
        words.update(named_words(f"{fold(key)}: {folded}"))
        if len(parts := folded.split()) == 1:
            words.update(one for one in telling_words(folded) if any(map(str.isdigit, one)))
        elif parts and len(row := squeeze(folded)) <= _LONGEST_LEAF and _weight(row) >= _LEAF_LETTERS:
            rows.add(row)
    rows = {row for row in rows if len(set(row)) > _FEW}
    return marks.and_also(Marks(words=frozenset(words), phrases=frozenset(rows)))


def _without_head(folded: str) -> str:
    """Return a text without the line that names a table's columns."""
    head, _, rest = folded.lstrip().partition("\n")
    cells = _CELL.split(head)
    if (
        len(cells) < 2
        or any(map(str.isdigit, head))
        or len(_CELL.split(rest.partition("\n")[0])) != len(cells)
    ):
        return folded
    return rest if any(map(str.isdigit, rest)) else folded


def _phrases(words: list[str]) -> frozenset[str]:
    found = list(_phrases_in(words))
    if len(found) <= WINDOW:
        kept: Iterable[str] = found
    else:
        # One that is too short to tell anything is taken only where there is no other.
        order = [
            (not _says_enough(phrase), crc32(phrase.encode("utf-8", "surrogatepass"))) for phrase in found
        ]
        kept = (
            found[min(range(at, at + WINDOW), key=order.__getitem__)] for at in range(len(found) - WINDOW + 1)
        )
    return frozenset(filter(_says_enough, kept))


def _says_enough(phrase: str) -> bool:
    return _weight(phrase) >= _PHRASE_LETTERS and len(set(phrase)) > _FEW


def _weight(phrase: str) -> int:
    return len(phrase) + sum(map(str.isdigit, phrase))


def _down_columns(folded: str) -> Iterator[str]:
    """Yield every five cells of a column of a small table: one column is what a list is made of."""
    rows = [row for line in folded.splitlines() if len(row := _CELL.split(line)) > 1]
    if len(rows) < PHRASE_WORDS or len(rows) * len(rows[0]) > _COLUMNS or len({*map(len, rows)}) > 1:
        return
    for column in zip(*rows, strict=True):
        yield from _phrases_in([squeeze(cell) for cell in column])


def _bare_rows(folded: str, phrases: frozenset[str]) -> Iterator[str]:
    """Yield each whole row of a table in which no phrase was kept: by itself it would be known by nothing."""
    block: list[str] = []
    for line in (*folded.splitlines(), ""):
        if len(_CELL.split(line)) >= _ROW_CELLS:
            block.append(line)
            continue
        if len(block) >= PHRASE_WORDS:
            # The first names the columns.
            for row in block[1:]:
                whole = squeeze(row)
                told = phrases.intersection(_phrases_in(words_of(row)))
                if not told and len(whole) <= _LONGEST_LEAF and _tells_row(whole):
                    yield whole
        block.clear()


def _tells_row(row: str) -> bool:
    return _says_enough(row) or (_weight(row) >= _LONG_ROW and len(set(row)) > _FEW_IN_ROW)


def _phrases_in(words: list[str]) -> Iterator[str]:
    """Yield from each word on the words in a row, at least five of them, that say enough."""
    for at in range(len(words) - PHRASE_WORDS + 1):
        phrase = "".join(words[at : at + PHRASE_WORDS])
        if len(phrase) < _PHRASE_LETTERS:
            for more in words[at + PHRASE_WORDS : at + _MOST_WORDS]:
                if _weight(phrase) >= _PHRASE_LETTERS:
                    break
                phrase += more
        yield phrase
