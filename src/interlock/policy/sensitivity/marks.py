"""By what a sensitive text is known again: its telling words, those that tell it even inside others, and its phrases.

A word counts whole, between borders. One that chance hardly makes (`strong`) counts wherever it stands, with its
punctuation taken out. Phrases are five words in a row; of a long text a winnowed part of them is kept, so that any copy
of `PHRASE_WORDS + WINDOW - 1` words holds one. Each counts backwards as well.
Source: KAIROS, sensitive tokens; Schleimer et al. 2003 (winnowing); the rest ours.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from zlib import crc32

from interlock.model.records import dataclass
from interlock.policy.matching import MIN_TOKEN_LENGTH, tokens_of
from interlock.policy.sensitivity.folding import fold, squeeze, words_of

PHRASE_WORDS = 5
WINDOW = 4
_PHRASE_LETTERS = 20
_STRONG_MIXED = 10
_STRONG_DIGITS = 9
_STRONG_LETTERS = 20
_DIGITS = re.compile(r"\d(?:[ .\-]?\d){8,}")
_NAME = re.compile(r"(?m)^[ \t]*(?:export[ \t]+)?[A-Z][A-Z0-9_]*(?==)")
_ARMOUR = re.compile(r"-----(?:BEGIN|END)[A-Z0-9 ]*-----")
_PART = re.compile(r"[^\W_]+")
_COMMON = frozenset(
    """access account address admin admins application auth begin bearer bucket certificate client cluster
    comment config connect connection console content create created critical customer customers data
    database debug default delete description desc development disable disabled domain duration email enable enabled
    encrypted endpoint environment error example export external false file filename folder general github gitlab
    global group header hidden host hostname http https import include info information internal json key keyid
    language latest level library licence license limit local localhost login machine mailto main manager master
    message method mysql name network node number openssh option options organisation organization owner password
    path person phone policy port postgres postgresql prefix private product production program project protocol
    public python read readonly redis refresh region registry release remote repository request response result
    root running salary schema script secret secrets section server service session setting settings source
    staging standard start status storage string street system table target test testing text timeout title token
    tokens total true type update updated uri url user userid username users value values version warning website
    window with write zone""".split()  # noqa: SIM905 - a list of them would be five times as long
)
"""Words that say nothing of whose they are: alone, or in a name made of nothing else (`access_token`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What a sensitive text is known by.

    Takes: `words`, that count whole; `strong`, letters and digits that count anywhere; `phrases`, the letters and
    digits of five words in a row, that count anywhere too.
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

    Holds: the names of environment variables, armour lines and names made of common words alone are no marks.
    """
    folded = fold(_NAME.sub("", _ARMOUR.sub(" ", text)))
    words = {token for token in tokens_of(folded) if tells(token)}
    strong = {strong for token in words if is_strong(strong := squeeze(token))}
    strong.update(squeeze(digits) for digits in _DIGITS.findall(folded))
    return Marks(words=frozenset(words), strong=frozenset(strong), phrases=_phrases(words_of(folded)))


def tells(token: str) -> bool:
    """Say whether a word tells something of the text that holds it."""
    parts = _PART.findall(token)
    return bool(parts) and len(token) >= MIN_TOKEN_LENGTH and not all(part in _COMMON for part in parts)


def is_strong(bare: str) -> bool:
    """Say whether letters and digits are hardly made by chance."""
    digits = sum(map(str.isdigit, bare))
    if digits == len(bare):
        return digits >= _STRONG_DIGITS and len(set(bare)) > 2
    return len(bare) >= (_STRONG_MIXED if digits else _STRONG_LETTERS)


def _phrases(words: list[str]) -> frozenset[str]:
    found = list(_phrases_in(words))
    if len(found) <= WINDOW:
        kept: Iterable[str] = found
    else:
        # One that is too short to tell anything is taken only where there is no other.
        order = [
            (len(phrase) < _PHRASE_LETTERS, crc32(phrase.encode("utf-8", "surrogatepass")))
            for phrase in found
        ]
        kept = (
            found[min(range(at, at + WINDOW), key=order.__getitem__)] for at in range(len(found) - WINDOW + 1)
        )
    return frozenset(phrase for phrase in kept if len(phrase) >= _PHRASE_LETTERS and len(set(phrase)) > 5)


def _phrases_in(words: list[str]) -> Iterator[str]:
    """Yield every five words in a row."""
    return map("".join, zip(*(words[at:] for at in range(PHRASE_WORDS)), strict=False))
