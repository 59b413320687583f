"""Dates as texts write them, each as one form; a writing that two people read differently is equal to itself alone."""

import re
from collections.abc import Iterator

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_NUMBERS = r"[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\2[0-9]{4}"
_WORDS = rf"{MONTH}\s+{_DAY}(?:,?\s+[0-9]{{4}})?|{_DAY}(?:\s+of)?\s+{MONTH}(?:,?\s+[0-9]{{4}})?"
DATED = re.compile(rf"(?<![\w./-])(?:{_NUMBERS}|{_WORDS})(?!\w|[./-][0-9])", re.IGNORECASE)
"""A date in a text, also one without its year."""

NEAR_DATE = re.compile(rf"(?<![A-Za-z])(?:{_NUMBERS}|{_WORDS})", re.IGNORECASE)
"""What has the numbers of a date in it, whatever it stands beside."""


def dates_in(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the whole dates of a text: form, start and end."""
    for each in DATED.finditer(text):
        form = date_form(each.group())
        if form:
            yield form, each.start(), each.end()


def date_form(text: str) -> str:
    """Return a whole date as `YYYY-MM-DD`, `""` where it is none; an ambiguous one (`05/06/2024`) as itself."""
    text = text.strip()
    if DATED.fullmatch(text) is None:
        return ""
    numbers = [int(each) for each in re.findall(r"[0-9]+", text)]
    named = re.search(r"[a-z]{3}", re.sub(r"[0-9]+(?:st|nd|rd|th)|\bof\b", "", text.lower()))
    if named:
        if len(numbers) != 2:
            return ""
        return _form(numbers[1], _MONTHS.index(named.group()) + 1, numbers[0])
    first, second, third = numbers
    if first > 31:
        return _form(first, second, third)
    if "." in text or first > 12 or first == second:
        return _form(third, second, first)
    if second > 12:
        return _form(third, first, second)
    return f"?{first}/{second}/{third}"


def _form(year: int, month: int, day: int) -> str:
    return f"{year:04}-{month:02}-{day:02}" if 1 <= month <= 12 and 1 <= day <= 31 and year else ""
