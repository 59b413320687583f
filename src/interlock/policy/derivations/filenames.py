"""A file called by its name as people say it: `the team plan file` for `team-plan.docx`."""

import re
from functools import lru_cache

_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_WORDS = re.compile(r"[A-Za-z0-9]+(?:[ _-][A-Za-z0-9]+)*")
LEAST = 4
"""So many letters and digits a name needs."""


def spoken(name: str) -> str:
    """Return the words of a file's name in small letters: no extension, a space for each hyphen and underscore; `""`
    where it is made of anything else."""
    stem = _EXTENSION.sub("", name.strip())
    if not _WORDS.fullmatch(stem) or sum(char.isalnum() for char in stem) < LEAST:
        return ""
    return re.sub("[_-]", " ", stem).lower()


def find_spoken(name: str, text: str) -> tuple[int, int] | None:
    """Return where a text names a file by these words, with an article before them and a word for a file behind.

    Both belong to it: else `plan-2024.docx` would be meant by `the team plan 2024 file`.
    """
    words = spoken(name)
    found = _pattern(words).search(text) if words else None
    return found.span(2) if found is not None else None


@lru_cache(maxsize=64)
def _pattern(words: str) -> re.Pattern[str]:
    said = "[ _-]".join(words.split(" "))
    return re.compile(
        rf"(?<![^\s\"'(])(?:the|my|our)\s+([\"']?)({said})\1\s+"
        r"(?:file|document|doc|spreadsheet|sheet|presentation)(?=[\s,;:!?)\"']|\.?(?:\s|\Z))",
        re.IGNORECASE | re.ASCII,
    )
