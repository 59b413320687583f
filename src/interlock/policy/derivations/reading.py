"""A second reading of what a span says: characters, words, numbers. It shares no line with what finds.

Each reading answers one question: do these characters of this text, with what stands beside them, give this value?
"""

import unicodedata
from collections.abc import Callable

Reading = Callable[[str, str, int, int], bool]
"""Takes value, text, start and end."""
LEAST = 4
_GLUE = "-_./~+\\:@%$"
_MARKS = {
    "'": "\u2018\u2019\u201a",
    '"': "\u201c\u201d\u201e\u00ab\u00bb",
}
_PLAIN_QUOTE = {odd: mark for mark, odds in _MARKS.items() for odd in odds}


def shows_all(value: str) -> bool:
    """Say whether a value has no unseen characters; then it is what it looks like."""
    seen = [char for char in value if not char.isspace()]
    return bool(seen) and not any(unicodedata.category(char).startswith("C") for char in seen)


def unseen(char: str) -> bool:
    """Say whether a character hides in the word beside it: marks, format and control characters, lost bytes."""
    return char == "\ufffd" or (unicodedata.category(char)[0] in "CM" and not char.isspace())


def lower(text: str) -> str:
    """Return a text in lower case, each character by itself, each run of white space as one space."""
    return " ".join("".join(char.lower() for char in text).split())


def compatible(text: str) -> str:
    """Return a text in lower case and compatibility form, with plain quotes."""
    out = [_PLAIN_QUOTE.get(char) or unicodedata.normalize("NFKD", char).lower() for char in text]
    return " ".join("".join(out).split())


def _seen_as(char: str, *, compatibly: bool) -> str:
    if char.isascii() or not compatibly or char in _PLAIN_QUOTE:
        return char
    return unicodedata.normalize("NFKD", char)


def _within_word(char: str) -> bool:
    return char.isalnum() or char in _GLUE or unseen(char)


def stands_alone(text: str, start: int, end: int, *, compatibly: bool = False) -> bool:
    """Say whether a span is whole words: a full stop or colon may end a sentence, an `@` may point to it."""
    before = [_seen_as(char, compatibly=compatibly)[-1] for char in text[max(0, start - 2) : start]]
    if before and _within_word(before[-1]):
        pointed = before[-1] == "@"
        if not pointed or (len(before) > 1 and _within_word(before[0])):
            return False
    for char in text[end:]:
        following = _seen_as(char, compatibly=compatibly).lstrip(".:")
        if following:
            return not _within_word(following[0])
    return True


def _telling(value: str) -> bool:
    return sum(1 for char in value if char.isalnum()) >= LEAST


def _in_quotes(text: str, start: int, end: int) -> bool:
    if start == 0 or end == len(text):
        return False
    left, right = (_PLAIN_QUOTE.get(char, char) for char in (text[start - 1], text[end]))
    return left == right and left in "\"'`"


def phrase(value: str, text: str, start: int, end: int) -> bool:
    """Whole words in any prose where they tell enough; else in quotes, in capitals, or alone."""
    span = text[start:end]
    if (
        span != span.strip()
        or compatible(span) != compatible(value)
        or not stands_alone(text, start, end, compatibly=True)
    ):
        return False
    spelt = span == value.strip() and span[:1].isupper()
    return _telling(value) or spelt or span == text.strip() or _in_quotes(text, start, end)


def path(value: str, text: str, start: int, end: int) -> bool:
    """A path as the value has it, but for `./` and doubled slashes."""
    wanted = [part for part in value.split("/") if part not in ("", ".")]
    if ".." in wanted:
        wanted = value.split("/")
    span = text[start:end]
    given = (
        [part for part in span.split("/") if part not in ("", ".")] if ".." not in wanted else span.split("/")
    )
    rooted = value.startswith("/") == span.startswith("/")
    if not rooted or span != span.strip() or compatible("/".join(given)) != compatible("/".join(wanted)):
        return False
    begin = start
    for head in ("~/", "$HOME/", "./"):
        if text[:start][-len(head) :].lower() == head.lower():
            begin = start - len(head)
            break
    if not stands_alone(text, begin, end, compatibly=True):
        return False
    return len(wanted) > 1 or "." in value or _telling(value) or _in_quotes(text, start, end)


def email(value: str, text: str, start: int, end: int) -> bool:
    """The whole address; letters beyond ASCII keep their case."""
    span = text[start:end]
    local, at, domain = span.partition("@")
    labels = domain.split(".")
    if not (at and local and len(labels) > 1 and all(labels)):
        return False
    if not all(part_of_name(c) or c in ".+%-" for c in local) or not all(
        part_of_name(c) or c == "-" for c in "".join(labels)
    ):
        return False
    if not _same_address(span, " ".join(value.split())):
        return False
    return _address_alone(text, start, end)


def _address_alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 2]
    if before and (part_of_name(before) or before in ".+%@-" or unseen(before)):
        return False
    if after[:1] == ".":
        after = after[1:]
    elif after and unseen(after[0]):
        return False
    return not after or not (part_of_name(after[0]) or after[0] in "@-")


def _same_address(first: str, second: str) -> bool:
    if first.isascii() != second.isascii():
        return False
    return first.lower() == second.lower() if first.isascii() else first == second


def mail_domain(value: str, text: str, start: int, end: int) -> bool:
    """The domain of an address that the text names."""
    span = text[start:end]
    domain = span.rpartition("@")[2]
    return domain.lower() == value.lower() and email(span, text, start, end)


def part_of_name(char: str) -> bool:
    """Say whether a character is a letter, a digit or an underscore."""
    return char.isalnum() or char == "_"
