"""Which words of a sensitive text tell it by themselves, and which only in company.

A word of a language, a short number or a short code is no secret because a sensitive text holds it: a memo has hundreds
of them, and so has every other text. They count by themselves where the text holds few of them, so that one of them may
be what is secret about it, and behind a name that says so (`password: …`).
Source: ours.
"""

import re
from collections.abc import Iterator

from interlock.policy.matching import MIN_TOKEN_LENGTH, tokens_of

FEW_IN_PROSE = 12
FEW_LETTERS = 40
FEW_MIXED = 40
FEW_NUMBERS = 8
_STRONG_MIXED = 10
_STRONG_DIGITS = 9
_STRONG_LETTERS = 20
_RUNNING = 3
"""So many words in a row, with blanks alone between them, are running text."""
_FIELD = re.compile(r"[\n\r\t\"{}\[\]|<>=]|,(?=\S)|: ")
_PART = re.compile(r"[^\W_]+")
_DATE = re.compile(
    r"\d{4}[-/.]\d\d?[-/.]\d\d?(?:[t_]?\d\d(?::?\d\d){1,2}.*)?|\d\d?[-/.]\d\d?[-/.]\d{2,4}|\d\d(?::\d\d){1,2}"
)
_NAMED = re.compile(
    r"(?<![a-z])(?:pass(?:word|wort|wd|phrase|code)?|pwd|secret|token|(?:access|api|private|secret)[_-]?key|key|pin|code"
    r"|credentials?|auth)[\"']?(?:\s*[:=]\s*|\s+is\s+)[\"']?([^\s\"',;]{6,})"
)
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
    tokens total true type update updated uri url user userid username users utf value values version warning website
    window with write zone""".split()  # noqa: SIM905 - a list of them would be five times as long
)
"""Words that say nothing of whose they are: alone, or in a name made of nothing else (`access_token`)."""


def telling_words(folded: str) -> frozenset[str]:
    """Return the words of a folded text that tell it by themselves, whole."""
    tokens = {token for token in tokens_of(folded) if tells(token)}
    kinds: dict[str, set[str]] = {"letters": set(), "mixed": set(), "numbers": set()}
    kept = set()
    for token in tokens:
        if is_strong("".join(_PART.findall(token))) and not _DATE.fullmatch(token):
            kept.add(token)
        else:
            kinds[_kind(token)].add(token)
    letters = len(kinds["letters"])
    if letters <= FEW_IN_PROSE or (letters <= FEW_LETTERS and not _is_prose(folded)):
        kept |= kinds["letters"]
    if len(kinds["mixed"]) <= FEW_MIXED:
        kept |= kinds["mixed"]
    if len(kinds["numbers"]) <= FEW_NUMBERS:
        kept |= kinds["numbers"]
    return frozenset(kept)


def named_words(folded: str) -> frozenset[str]:
    """Return the words that stand behind a name that calls them secret."""
    return frozenset(token for found in _NAMED.findall(folded) for token in tokens_of(found) if tells(token))


def tells(token: str) -> bool:
    """Say whether a word tells something of the text that holds it, be it in company."""
    parts = _PART.findall(token)
    if not parts or len(token) < MIN_TOKEN_LENGTH or _DATE.fullmatch(token):
        return False
    if all(part.isdigit() for part in parts):
        return True
    return not all(part in _COMMON or (len(part) < 3 and part.isdigit()) for part in parts)


def is_strong(bare: str) -> bool:
    """Say whether letters and digits are hardly made by chance."""
    digits = sum(map(str.isdigit, bare))
    if digits == len(bare):
        return digits >= _STRONG_DIGITS and len(set(bare)) > 2
    return len(bare) >= (_STRONG_MIXED if digits else _STRONG_LETTERS)


def _kind(token: str) -> str:
    bare = "".join(_PART.findall(token))
    if bare.isdigit():
        return "numbers"
    return "mixed" if any(map(str.isdigit, bare)) else "letters"


def _is_prose(folded: str) -> bool:
    return len(set(_running(folded))) > FEW_IN_PROSE


def _running(folded: str) -> Iterator[str]:
    for field in _FIELD.split(folded):
        words = field.split()
        if len(words) >= _RUNNING:
            yield from (word for word in words if len(word) >= MIN_TOKEN_LENGTH)
