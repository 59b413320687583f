"""Whether a text names a value: whole tokens after normalisation, never a part of a word.

Source: KAIROS, matching (lower case, white space); ours, token borders and spans.
"""

import re
from functools import lru_cache

MIN_TOKEN_LENGTH = 6
"""Shorter tokens are too common to tell a secret by."""

_LONG = 4096
_FEW_TOKENS = 128
_TRIES = 64
_AROUND = 512

_INNER = frozenset("-_./~+\\:@%$")
_SPLIT = r"[\s\"'`=,;(){}\[\]<>|&]+"


@lru_cache(maxsize=64)
def normalise(text: str) -> tuple[str, tuple[int, ...] | None]:
    """Return the text in lower case with each run of white space as one space, and where each character was.

    Returns: None for the places where every character kept its own.
    """
    if text.isascii() and not re.search(r"\s\s|[^\S ]", text):
        return text.lower(), None
    out: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        if char.isspace():
            if not out or out[-1] != " ":
                out.append(" ")
                places.append(place)
            continue
        for lower in char.lower():
            out.append(lower)
            places.append(place)
    return "".join(out), tuple(places)


def find_token(text: str, value: str, *, heads: tuple[str, ...] = ()) -> tuple[int, int] | None:
    """Find a value in a text as a whole token.

    Takes: `heads`, what may stand directly before it and belong to it (`./`, `~/`).
    Returns: the span in `text`, end exclusive, of the first place; None where it is not there.
    """
    needle = normalise(value.strip())[0].strip()
    if not needle:
        return None
    hay, places = normalise(text)
    at = hay.find(needle)
    while at >= 0:
        end = at + len(needle)
        begin = at
        for head in heads:
            if hay.endswith(head, 0, at):
                begin = at - len(head)
                break
        if _border_before(hay, begin) and _border_after(hay, end):
            if places is None:
                return at, end
            return places[at], places[end - 1] + 1
        at = hay.find(needle, at + 1)
    return None


def _part_of_word(char: str) -> bool:
    return char.isalnum() or char in _INNER


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
