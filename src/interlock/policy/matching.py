"""Whether a text names a value: whole tokens after normalisation, never a part of a word.

Source: KAIROS, matching (lower case, white space); ours, token borders and spans.
"""

import re
from bisect import bisect_left
from functools import lru_cache

MIN_TOKEN_LENGTH = 6
"""Shorter tokens are too common to tell a secret by."""

_LONG = 4096
_FEW_TOKENS = 128
_TRIES = 64
_AROUND = 512

_INNER = frozenset("-_./~+\\:@%$")
_SPLIT = r"[\s\"'`=,;(){}\[\]<>|&]+"


def lowered(text: str) -> str:
    """Return a text with each character in lower case by itself: that of a sigma does not depend on its place."""
    return text.lower() if text.isascii() else text.replace("\u03a3", "\u03c3").lower()


def find_token(text: str, value: str, *, heads: tuple[str, ...] = ()) -> tuple[int, int] | None:
    """Find a value in a text as a whole token, whatever the case, each run of white space as one space.

    Takes: `heads`, what may stand directly before it and belong to it (`./`, `~/`).
    Returns: the span in `text`, end exclusive, of the first place; None where it is not there.
    """
    words = lowered(value).split()
    if not words:
        return None
    hay = lowered(text)
    needle = words[0]
    if len(words) == 1:
        at = hay.find(needle)
        end = at + len(needle)
    elif hay.find(needle) < 0:
        return None
    else:
        between = re.compile(r"\s+".join(map(re.escape, words)))
        at, end = _span(between.search(hay))
    while at >= 0:
        begin = at
        for head in heads:
            if hay.endswith(head, 0, at):
                begin = at - len(head)
                break
        if _border_before(hay, begin) and _border_after(hay, end):
            return (at, end) if len(hay) == len(text) else _raw_span(text, at, end)
        if len(words) == 1:
            at = hay.find(needle, at + 1)
            end = at + len(needle)
        else:
            at, end = _span(between.search(hay, at + 1))
    return None


def _span(found: re.Match[str] | None) -> tuple[int, int]:
    return found.span() if found is not None else (-1, -1)


def _raw_span(text: str, at: int, end: int) -> tuple[int, int]:
    """Return the span in a text of a span in its lower case: the dotted capital I alone becomes two characters."""
    dotted = [found.start() + shift for shift, found in enumerate(re.finditer("\u0130", text))]
    # The second character of the n-th one stands at `dotted[n] + 1`, and all behind it is shifted by n + 1.
    first, last = at - bisect_left(dotted, at), end - 1 - bisect_left(dotted, end - 1)
    return first, last + 1


def _part_of_word(char: str) -> bool:
    return char.isalnum() or char in _INNER or is_unseen(char)


def is_unseen(char: str) -> bool:
    """Say whether a character hides in the word beside it: a mark, a control or format character, a lost byte."""
    if char.isspace() or (char.isascii() and char.isprintable()):
        return False
    from unicodedata import category

    return char == "\ufffd" or category(char)[0] in "CM"


def _border_before(hay: str, at: int) -> bool:
    if at == 0 or not _part_of_word(hay[at - 1]):
        return True
    # `@AGENTS.md` is how agents are pointed to a file.
    return hay[at - 1] == "@" and (at == 1 or not _part_of_word(hay[at - 2]))


def _border_after(hay: str, at: int) -> bool:
    # A full stop or colon ends a sentence only where no word goes on after it.
    while at < len(hay) and hay[at] in ".:":
        at += 1
    return at == len(hay) or not _part_of_word(hay[at])


@lru_cache(maxsize=4)
def tokens_of(text: str) -> frozenset[str]:
    """Return the tokens of a text that are long enough to tell it by, normalised."""
    lowered = text.lower()
    found = {token.strip(".:/") for token in re.split(_SPLIT, lowered)}
    # An assignment may stand without a border of its own (`key:value`), so its parts count as well.
    found.update(part for token in tuple(found) for part in token.split(":"))
    return frozenset(token for token in found if len(token) >= MIN_TOKEN_LENGTH)


def holds_any(text: str, tokens: frozenset[str]) -> bool:
    """Say whether a text has one of these tokens: `not tokens_of(text).isdisjoint(tokens)`, faster for long texts.

    A request to a model repeats the whole conversation each time, and few secrets are known: they are searched for,
    and only the words around what is found are cut into tokens.
    """
    if len(text) < _LONG or len(tokens) > _FEW_TOKENS:
        return not tokens_of(text).isdisjoint(tokens)
    lowered = text.lower()
    for token in tokens:
        at = lowered.find(token)
        for _ in range(_TRIES):
            if at < 0:
                break
            begin, end = max(at - _AROUND, 0), at + len(token) + _AROUND
            before = re.split(_SPLIT, lowered[begin:at])[-1]
            after = re.split(_SPLIT, lowered[at + len(token) : end], maxsplit=1)[0]
            if len(before) == _AROUND or len(after) == _AROUND:
                return not tokens_of(text).isdisjoint(tokens)
            if token in tokens_of(before + token + after):
                return True
            at = lowered.find(token, at + 1)
        else:
            return not tokens_of(text).isdisjoint(tokens)
    return False
