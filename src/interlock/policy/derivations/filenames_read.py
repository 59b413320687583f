"""The second reading of a file's name as people say it."""

from interlock.policy.derivations.reading import LEAST

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ARTICLES = ("the", "my", "our")
_NOUNS = ("file", "document", "doc", "spreadsheet", "sheet", "presentation")
_SPACES = " \t\n\r\f\v"
_MARKS = "\"'"


def file_words(name: str) -> tuple[str, ...]:
    """Return the words of a file's name without its extension, none where it is made of anything else."""
    whole = name.strip()
    stem, dot, extension = whole.rpartition(".")
    known = dot and 1 <= len(extension) <= 5 and extension.isascii() and extension.isalnum()
    return _words(stem if known and extension[:1].isalpha() else whole)


def _words(text: str) -> tuple[str, ...]:
    parts = text.replace("_", " ").replace("-", " ").split(" ")
    plain = all(part.isascii() and part.isalnum() for part in parts)
    return tuple(part.lower() for part in parts) if plain and sum(map(len, parts)) >= LEAST else ()


def file_stem(value: str, text: str, start: int, end: int) -> bool:
    """The words of the name stand between an article and a word for a file."""
    if not file_words(value) or _words(text[start:end]) != file_words(value):
        return False
    before, after = text[:start], text[end:]
    mark = before[-1:]
    if mark and mark in _MARKS:
        if after[:1] != mark:
            return False
        before, after = before[:-1], after[1:]
    if before[-1:] not in tuple(_SPACES) or after[:1] not in tuple(_SPACES):
        return False
    return _article(before.rstrip(_SPACES)) and _noun(after.lstrip(_SPACES))


def _article(before: str) -> bool:
    for word in _ARTICLES:
        if before[-len(word) :].lower() == word:
            ahead = before[: -len(word)][-1:]
            return ahead in ("", "(", *_MARKS, *_SPACES)
    return False


def _noun(after: str) -> bool:
    size = 0
    while size < len(after) and after[size].lower() in _LETTERS:
        size += 1
    behind = after[size : size + 2]
    ends = behind[:1] in ("", *",;:!?)", *_MARKS, *_SPACES) or (
        behind[0] == "." and behind[1:] in ("", *_SPACES)
    )
    return after[:size].lower() in _NOUNS and ends
