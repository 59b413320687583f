"""Whether a task asks for a kind of effect: a word of the policy's in the imperative, not merely somewhere."""

import re
from collections.abc import Iterator
from functools import lru_cache

_BEFORE = frozenset(("please", "to", "and", "then", "also", "you", "or", "just", "kindly", "ahead"))
_NOT = frozenset(("not", "never", "n't", "without"))
_WORD = re.compile(r"[A-Za-z][\w'’-]*")
# `and to each of them write …`
_ASIDE = re.compile(
    r"(?:^|[.,;:!?]|\band|\bthen)\s*(?:to|for|with|from|in|on)\s+(?:each|every|all|the|my|our)(?:\s+\w+){1,3}\s*$",
    re.IGNORECASE,
)
_END = re.compile(r"[.!?;\n]+(?:\s|$)")


@lru_cache(maxsize=64)
def find_ask(text: str, phrases: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the span of the first word by which a text asks for one of these: the phrase's first word stands in the
    imperative, its other words in the same sentence."""
    return next(((start, end) for start, end, _ in _asking(text, phrases)), None)


@lru_cache(maxsize=64)
def asked_parts(text: str, phrases: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Return the spans that each word by which a text asks for one of these begins, up to the end of its sentence."""
    return tuple((start, over) for start, _, over in _asking(text, phrases))


def _asking(text: str, phrases: tuple[str, ...]) -> Iterator[tuple[int, int, int]]:
    """Yield each asking word: where it begins and ends, and where its sentence does."""
    at = 0
    for end in [*(each.end() for each in _END.finditer(text)), len(text)]:
        words = [(each.group().lower(), at + each.start()) for each in _WORD.finditer(text[at:end])]
        known = {word for word, _ in words}
        for index, (word, start) in enumerate(words):
            for phrase in phrases:
                first, *rest = phrase.split()
                if word == first and known.issuperset(rest) and _asks(text, words, index):
                    yield start, start + len(word), end
        at = end


def _asks(text: str, words: list[tuple[str, int]], index: int) -> bool:
    start = words[index][1]
    if index == 0:
        return True
    before, place = words[index - 1]
    if before in _NOT or before.endswith(("n't", "n’t")):
        return False
    if re.search(r"[,:;)\]\d-]\s*$|\n\s*$", text[place + len(before) : start]):
        return True
    return before in _BEFORE or _ASIDE.search(text, 0, start) is not None
