"""The second reading of numbers: accounts, telephones, amounts, days and ids, none of which passes for another."""

from interlock.policy.derivations.reading import part_of_name, phrase, unseen

_DIGITS = "0123456789"
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


def iban(value: str, text: str, start: int, end: int) -> bool:
    """The account's letters and digits, in groups or not."""
    span = text[start:end]
    joined = "".join(value.split())
    letters = span == span.strip() and all(
        char.isascii() and (char.isdigit() or char.isupper() or char == " ") for char in span
    )
    return (
        letters
        and span.replace(" ", "") == joined
        and span == span.strip()
        and len(joined) >= 14
        and _free_of(text, start, end, "_")
    )


def phone(value: str, text: str, start: int, end: int) -> bool:
    """The same digits, and nothing but what a number is written with; no date."""
    span, given = text[start:end], " ".join(value.split())
    for each in (span, given):
        if any(char not in "+0123456789 ()./-" for char in each) or day_of(each):
            return False
    digits = "".join(char for char in span if char in "+" + _DIGITS)
    ends = span[:1] in tuple("+" + _DIGITS) and span[-1:] in tuple(_DIGITS)
    same = ends and digits == "".join(char for char in given if char in "+" + _DIGITS)
    before = text[start - 1 : start]
    return same and len(digits) > 6 and _free_of(text, start, end, "_") and before != "+"


def _free_of(text: str, start: int, end: int, more: str) -> bool:
    """Say whether no letter, digit or unseen character stands beside a span, nor one of `more`."""
    beside = text[start - 1 : start] + text[end : end + 1]
    return not any(char.isalnum() or char in more or unseen(char) for char in beside)


def number_of(text: str) -> tuple[bool, str, str] | None:
    """Return sign, whole part and fraction of a number, None where it is none."""
    negative, plain = text.startswith("-"), text.removeprefix("-")
    whole, point, part = plain.partition(".")
    groups = whole.split(",")
    if not groups[0] or (point and not part) or any(char not in _DIGITS for char in "".join(groups) + part):
        return None
    if len(groups) > 1 and (len(groups[0]) > 3 or any(len(group) != 3 for group in groups[1:])):
        return None
    whole, part = "".join(groups).lstrip("0"), part.rstrip("0")
    return (negative and bool(whole or part)), whole, part


def amount(value: str, text: str, start: int, end: int) -> bool:
    """The same number, that is no part of a date, a time, an id, a share in percent or another number."""
    number = number_of(text[start:end])
    if number is None or number != number_of(" ".join(value.split())):
        return False
    before, after = text[max(0, start - 40) : start], text[end : end + 40]
    if before and (part_of_name(before[-1]) or before[-1] in ".,/#-" or unseen(before[-1])):
        return False
    if before[-1:] == ":" and before[-2:-1] in tuple(_DIGITS):
        return False
    if after and (
        part_of_name(after[0]) or unseen(after[0]) or (after[0] in ".,/:-" and after[1:2] in tuple(_DIGITS))
    ):
        return False
    if after.startswith("%") or (after[:1].isspace() and after[1:2] == "%"):
        return False
    return not _in_date(before, text[start:end], after) and not _called_id(before)


def _in_date(before: str, number: str, after: str) -> bool:
    last = before.replace(",", " ").split()
    following = [word.rstrip(".,;:!?)").lower() for word in after.split()[:2]]
    if len(number) <= 2:
        then = following[1:] if following[:1] == ["of"] else following
        if before[-1:].isspace() and last and _is_month(_last_word(last[-1])):
            return True
        return after[:1].isspace() and bool(then) and _is_month(then[0])
    if len(number) != 4 or not last:
        return False
    if _is_month(_last_word(last[-1])):
        rest = last[:-1]
        if rest[-1:] == ["of"]:
            rest.pop()
        return bool(rest) and _day(_last_word(rest[-1]))
    return _day(last[-1]) and len(last) > 1 and _is_month(_last_word(last[-2]))


def _is_month(word: str) -> bool:
    word = word.lower().rstrip(".")
    return word == "sept" or any(word in (month, month[:3]) for month in _MONTHS)


def _day(word: str) -> bool:
    for ending in ("st", "nd", "rd", "th"):
        word = word.removesuffix(ending)
    return 1 <= len(word) <= 2 and all(char in _DIGITS for char in word)


def _called_id(before: str) -> bool:
    said = before.rstrip("\"'`").rstrip().rstrip("=:").rstrip()
    if said.lower().endswith((" is", "#is")):
        said = said[:-2].rstrip()
    return said.endswith("#") or _last_word(said).lower() in ("id", "no.", "number")


def _last_word(text: str) -> str:
    """Return the letters that a text ends with, and a full stop behind them."""
    cut = len(text) - text.endswith(".")
    while cut and part_of_name(text[cut - 1]):
        cut -= 1
    return text[cut:]


def date(value: str, text: str, start: int, end: int) -> bool:
    """The same day; one that could be two is equal to its own writing alone."""
    day = day_of(text[start:end])
    if day is None or day != day_of(value.strip()) or text[start:end] != text[start:end].strip():
        return False
    before, after = text[start - 1 : start], text[end : end + 2]
    if before and (part_of_name(before) or before in "./-" or unseen(before)):
        return False
    if after and (part_of_name(after[0]) or unseen(after[0])):
        return False
    return not (after[:1] in tuple("./-") and after[1:] in tuple(_DIGITS))


def date_words(value: str, text: str, start: int, end: int) -> bool:
    """What is more than a day (a time with it) as whole words."""
    return day_of(value.strip()) is None and phrase(value, text, start, end)


def day_of(text: str) -> tuple[int, int, int] | None:
    """Return year, month and day that a text is; of an ambiguous one the numbers as they stand, year last."""
    for mark in "-/.":
        parts = text.split(mark)
        if len(parts) == 3 and all(part and all(char in _DIGITS for char in part) for part in parts):
            lengths = [len(part) for part in parts]
            first, second, third = map(int, parts)
            if lengths[0] == 4 and max(lengths[1:]) <= 2:
                return _valid(first, second, third)
            if lengths[2] != 4 or max(lengths[:2]) > 2:
                return None
            if mark == "." or first > 12 or first == second:
                return _valid(third, second, first)
            if second > 12:
                return _valid(third, first, second)
            return first, second, third
    words = [word for word in text.lower().replace(",", " ").split() if word != "of"]
    if len(words) != 3 or not words[2].isdecimal() or len(words[2]) != 4:
        return None
    month, day = (words[0], words[1]) if _is_month(words[0]) else (words[1], words[0])
    if not _is_month(month) or not _day(day):
        return None
    number = next(at for at, name in enumerate(_MONTHS, 1) if name[:3] == month[:3])
    return _valid(int(words[2]), number, int("".join(char for char in day if char in _DIGITS)))


def _valid(year: int, month: int, day: int) -> tuple[int, int, int] | None:
    return (year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 and year else None


# --- ids ---

_LINKS = (
    "with",
    "the",
    "an",
    "a",
    "its",
    "whose",
    "has",
    "by",
    "of",
    "and",
    "or",
    "to",
    "for",
    "my",
    "this",
    "that",
)
_KINDS = """account booking calendar card channel client contact customer directory doc document email event file
folder guest hotel invoice issue item mail meeting message note order page payment person phone product project record
reservation room task ticket transaction user""".split()  # noqa: SIM905


def id_of(kind: str, value: str, text: str, start: int, end: int) -> bool:
    """The id as it is, called an id of this kind; of any kind where letters and digits make it unmistakable."""
    wanted = value.strip()
    if text[start:end] != wanted or not wanted:
        return False
    before, after = text[start - 1 : start], text[end : end + 2]
    if before and (part_of_name(before) or before in ".,/-" or unseen(before)):
        return False
    if after and (part_of_name(after[0]) or unseen(after[0])):
        return False
    if len(after) == 2 and after[0] in ".,/:-" and after[1].isascii() and after[1].isalnum():
        return False
    mixed = any(char.isdigit() for char in wanted) and any(char.isalpha() for char in wanted)
    return (mixed and len(wanted) >= 6) or _said_of_kind(kind, text[max(0, start - 80) : start])


def _said_of_kind(kind: str, before: str) -> bool:
    own = {kind, *kind.split("_")}
    own |= {word + "s" for word in own}
    said = before.lower()
    if said[-1:] in ("'", '"', "`"):
        said = said[:-1]
    said = said.rstrip()
    said = said[:-1].rstrip() if said[-1:] in (":", "=") else said
    if said.endswith(" is"):
        said = said[:-3].rstrip()
    if said.endswith("#"):
        marked, said = "#", said[:-1]
    else:
        cut = len(said)
        while cut and (
            (said[cut - 1].isascii() and (part_of_name(said[cut - 1])))
            or (cut == len(said) and said[-1] == ".")
        ):
            cut -= 1
        marked, said = said[cut:], said[:cut]
        if marked not in ("id", "ids", "number", "no."):
            return marked in own
    tokens = "".join(
        c if c == "_" or ("a" <= c <= "z") else f" {c} " if c in ".,;!?" else " " for c in said
    ).split()
    skipped = 0
    while tokens and tokens[-1] in _LINKS and skipped < 3:
        tokens.pop()
        skipped += 1
    last = tokens[-1] if tokens else ""
    if last in own:
        return True
    return marked not in ("number", "no.") and last.removesuffix("s") not in _KINDS
