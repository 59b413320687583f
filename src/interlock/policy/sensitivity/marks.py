"""By what a sensitive text is known again: its telling words, those that tell it even inside others, and its phrases.

A word counts whole, between borders. One that chance hardly makes (`strong`) counts wherever it stands, with its
punctuation taken out, and backwards. Phrases are five words in a row; of a long text a winnowed part of them is kept,
so that any copy of `PHRASE_WORDS + WINDOW - 1` words holds one.
Source: KAIROS, sensitive tokens; Schleimer et al. 2003 (winnowing); the rest ours.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from zlib import crc32

from interlock.model.records import dataclass
from interlock.policy.matching import MIN_TOKEN_LENGTH, tokens_of

PHRASE_WORDS = 5
WINDOW = 4
_PHRASE_LETTERS = 20
_STRONG_MIXED = 10
_STRONG_DIGITS = 9
_STRONG_LETTERS = 20
FEW = 64
"""So many strong words are searched for one by one; more of them by their grams."""
GRAM = 8
_WORD = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"\d(?:[ .\-]?\d){8,}")
_NAME = re.compile(r"(?m)^[ \t]*(?:export[ \t]+)?[A-Z][A-Z0-9_]*(?==)")
_ARMOUR = re.compile(r"-----(?:BEGIN|END)[A-Z0-9 ]*-----")
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
_LOOKS = str.maketrans("аеорсухіјѕԁһӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "aeopcyxijsdhlabezhikmnoptyxo")
"""Letters of other alphabets that look like Latin ones."""


def fold(text: str) -> str:
    """Return a text as it is compared: NFKC, without invisible characters, look-alikes as Latin letters, lower case."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text)
    text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return text.translate(_LOOKS).lower()


def squeeze(folded: str) -> str:
    """Return a folded text's letters and digits alone."""
    return "".join(_WORD.findall(folded))


def words_of(folded: str) -> list[str]:
    """Return the words of a folded text, in order."""
    return _WORD.findall(folded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What a sensitive text is known by.

    Takes: `words`, that count whole; `strong`, letters and digits that count anywhere; `phrases`.
    """

    words: frozenset[str] = frozenset()
    strong: frozenset[str] = frozenset()
    phrases: frozenset[tuple[str, ...]] = frozenset()

    @property
    def size(self) -> int:
        """Return how many marks there are."""
        return len(self.words) + len(self.strong) + len(self.phrases)


@lru_cache(maxsize=4)
def marks_of(text: str) -> Marks:
    """Return what a sensitive text is known by.

    Holds: the names of environment variables, armour lines and names made of common words alone are no marks.
    """
    folded = fold(_NAME.sub("", _ARMOUR.sub(" ", text)))
    words = {token for token in tokens_of(folded) if tells(token)}
    strong = {bare for token in words if is_strong(bare := squeeze(token))}
    strong.update(squeeze(digits) for digits in _DIGITS.findall(folded))
    return Marks(words=frozenset(words), strong=frozenset(strong), phrases=_phrases(words_of(folded)))


def tells(token: str) -> bool:
    """Say whether a word tells something of the text that holds it."""
    parts = _WORD.findall(token)
    return bool(parts) and len(token) >= MIN_TOKEN_LENGTH and not all(part in _COMMON for part in parts)


def is_strong(bare: str) -> bool:
    """Say whether letters and digits are hardly made by chance."""
    digits = sum(map(str.isdigit, bare))
    if digits == len(bare):
        return digits >= _STRONG_DIGITS and len(set(bare)) > 2
    return len(bare) >= (_STRONG_MIXED if digits else _STRONG_LETTERS)


def _phrases(words: list[str]) -> frozenset[tuple[str, ...]]:
    found = list(phrases_in(words))
    if len(found) <= WINDOW:
        kept: Iterable[tuple[str, ...]] = found
    else:
        order = [crc32(" ".join(phrase).encode("utf-8", "surrogatepass")) for phrase in found]
        kept = (
            found[min(range(at, at + WINDOW), key=order.__getitem__)] for at in range(len(found) - WINDOW + 1)
        )
    return frozenset(phrase for phrase in kept if sum(map(len, phrase)) >= _PHRASE_LETTERS)


def phrases_in(words: list[str]) -> Iterable[tuple[str, ...]]:
    """Yield every five words in a row."""
    return zip(*(words[at:] for at in range(PHRASE_WORDS)), strict=False)
