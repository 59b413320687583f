"""Which provisions speak of a flow: BM25 over words, the same for the same text and question everywhere.

Source: Robertson and Zaragoza 2009 (BM25); the words and the order of equals, ours.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from interlock.regulations.regulation import Provision, RegulationText

K1, B = 1.5, 0.75
_TITLE_WEIGHT = 2
_WORD = re.compile(r"[a-z0-9]+")
_ENDINGS = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ies",
    "ied",
    "ers",
    "ors",
    "es",
    "ed",
    "er",
    "or",
    "s",
    "y",
)
_STEM = 4
_COMMON = frozenset(
    """
    a about after all also an and any are as at be been before but by can did do does for from had has have if in into
    is it its may more must no nor not of on only or other out shall should so some such than that the their them then
    there these they this those to under up upon was were what when where which who whom will with would you
    article section paragraph part subpart legal basis purpose none declared
    """.split()  # noqa: SIM905 - as words they can be read
)


def words_in(text: str) -> list[str]:
    """Return the words of a text as they are compared: folded, without common ones, cut to a stem."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON and len(word) > 1]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            return word[: -len(ending)]
    return word


def find(
    texts: Sequence[RegulationText], question: str, count: int
) -> tuple[tuple[RegulationText, Provision], ...]:
    """Return the provisions that fit a question best, best first, equals in the order of the texts.

    Holds: of several regulations each has its share: the best of one are not crowded out by another's.
    """
    wanted = tuple(sorted(Counter(words_in(question)).items()))
    ranked = [[(text, text.provisions[number]) for number in _ranked(text, wanted)[:count]] for text in texts]
    found: list[tuple[RegulationText, Provision]] = []
    for place in range(count):
        found += [one[place] for one in ranked if place < len(one)]
    return tuple(found[:count])


@lru_cache(maxsize=256)
def _ranked(text: RegulationText, wanted: tuple[tuple[str, int], ...]) -> tuple[int, ...]:
    counts, frequency, average = _index(text)
    total = len(counts)
    scores: list[tuple[float, int]] = []
    for number, words in enumerate(counts):
        length = words.total()
        score = 0.0
        for word, times in wanted:
            here = words[word]
            if here:
                rarity = math.log(1 + (total - frequency[word] + 0.5) / (frequency[word] + 0.5))
                score += times * rarity * here * (K1 + 1) / (here + K1 * (1 - B + B * length / average))
        if score > 0:
            # The last digits of a sum depend on nothing here but the order, which is fixed; rounded to be sure.
            scores.append((-round(score, 9), number))
    return tuple(number for _score, number in sorted(scores))


@lru_cache(maxsize=16)
def _index(text: RegulationText) -> tuple[tuple["Counter[str]", ...], "Counter[str]", float]:
    counts = []
    for one in text.provisions:
        counts.append(Counter(words_in(one.text) + words_in(one.title) * _TITLE_WEIGHT))
    frequency: Counter[str] = Counter(word for words in counts for word in words)
    average = sum(words.total() for words in counts) / max(1, len(counts))
    return tuple(counts), frequency, average or 1.0
