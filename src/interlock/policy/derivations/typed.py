"""Where a text names a value, by the value's type: whole words, addresses and numbers, never a part of one.

A number is an amount, a date, a telephone number or an id, and never two of these: `13` in `June 13` is no file's id.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from interlock.model.records import dataclass
from interlock.policy.derivations import names
from interlock.policy.derivations.dates import MONTH, NEAR_DATE, date_form, dates_in
from interlock.policy.derivations.filenames import find_spoken
from interlock.policy.derivations.sentences import parted
from interlock.policy.naming import find_named

ID_PREFIX = "id:"
MIN_PHRASE = 4
"""So many letters or digits make a phrase that prose does not hold by chance."""
EMAIL = re.compile(r"(?<![\w.+%@-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+(?!\.?[\w@-])")
URL = re.compile(r"(?<![\w@.])(?:[a-zA-Z][a-zA-Z0-9+.-]*://[^\s\"'<>()]+|(?i:www)\.[^\s\"'<>()]+)")
IBAN = re.compile(
    r"(?<!\w)[A-Z]{2}[0-9]{2}"
    r"(?:[A-Z0-9]{10,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)(?!\w)"
)
NUMBER = re.compile(
    r"(?<![\w.,/#-])(?<![0-9]:)(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?!\w|[.,/:-][0-9]|\s?%)"
)
PHONE = re.compile(r"(?<![\w+])\+?[0-9][0-9 ()./-]{5,20}[0-9](?!\w)")
_NUMBERED = re.compile(r"(?:\b(?:id|no\.|number)|#)\s*(?:is\b|[=:]*)?\s*[\"'`]*\s*\Z", re.IGNORECASE)
_AFTER_MONTH = re.compile(rf"\b{MONTH}\s+\Z", re.IGNORECASE)
_IN_LINK = re.compile(r"(?:://|(?i:www)\.)[^\s\"'<>()]*\Z")
_SPACED = re.compile(r"\s\s|[^\S ]")
_INNER = frozenset("-_./~+\\:@%$")
_QUOTES = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201a": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u00ab": '"',
    "\u00bb": '"',
}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UPGRADES = (("http", "http"), ("https", "https"), ("http", "https"))
_ID_WORD = re.compile(
    r"(?:\b(?P<mark>ids?|number|no\.)|#|(?P<bare>\b[a-z][a-z_]*))\s*(?:is|=|:)?\s*[\"'`]?\Z", re.IGNORECASE
)
_SMALL = frozenset(
    (
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
)
_OTHER_KINDS = frozenset(
    re.findall(
        "[a-z]+",
        "account booking calendar card channel client contact customer directory doc document email event file folder "
        "guest hotel invoice issue item mail meeting message note order page payment person phone product project "
        "record reservation room task ticket transaction user",
    )
)
"""What else has ids: where one of these words stands before an id, it is an id of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a text names a value. Takes: `form`, how; `start`, `end`, the span, end exclusive."""

    form: str
    start: int
    end: int


def find_typed(kind: str, value: str, text: str) -> Found | None:
    """Return the first place where a text names a value of a type, or of the first of several (`iban|name`)."""
    if not plain(value):
        return None
    for one in kind.split("|"):
        found = _find(one, value, text)
        if found is None and one in ("email", "url") and (apart := parted(text)) is not text:
            found = _find(one, value, apart)
        if found is not None:
            return found
    return None


def plain(text: str) -> bool:
    """Say whether a value shows all that it holds: no control, format or unassigned characters, and some other."""
    if text.isprintable():
        return bool(text.strip())
    return bool(text.strip()) and all(
        char in "\t\n\r" or char.isprintable() or unicodedata.category(char)[0] == "Z" for char in text
    )


def joins(char: str) -> bool:
    """Say whether a character belongs to the word beside it: unseen ones, combining marks, undecodable bytes."""
    if char.isascii():
        return (char < " " or char == "\x7f") and not char.isspace()
    return char == "\ufffd" or (unicodedata.category(char)[0] in "CM" and not char.isspace())


def same_form(kind: str, value: str) -> str:
    """Return a value as it is compared with others of its type, `""` where it is none of that type."""
    text = " ".join(value.split())
    if kind == "url":
        return _url_form(text)
    if kind == "phone":
        # What is beside the digits may say where it goes.
        digits = "".join(char for char in text if char in "+0123456789")
        return digits if PHONE.fullmatch(text) and not date_form(text) else ""
    if kind == "iban":
        return text.replace(" ", "")
    if kind == "amount":
        return _number(text)
    if kind == "date":
        return date_form(text) or text
    if kind.startswith(ID_PREFIX):
        return text
    # Folding beyond ASCII makes one of two addresses that are different (the Kelvin sign, the long s).
    return text.lower() if text.isascii() else text


def same_value(kind: str, value: str, given: str) -> bool:
    """Say whether a leaf that is given vouches for a value of a type."""
    form = same_form(kind, value)
    if kind == "url":
        return bool(form) and same_url(" ".join(value.split()), " ".join(given.split()))
    return bool(form) and same_form(kind, given) == form


def forms_in(kind: str, text: str) -> Iterator[tuple[str, int, int]]:
    """Yield what a text holds of a type whose spelling varies (amount, phone, date, iban): form, start and end."""
    if kind == "date":
        yield from (each for each in dates_in(text) if alone(text, each[1], each[2]))
        return
    if kind == "amount":
        yield from _amounts(text)
        return
    shape = {"phone": PHONE, "iban": IBAN}[kind]
    for each in shape.finditer(text):
        form = same_form(kind, each.group())
        if form and alone(text, each.start(), each.end()):
            yield form, each.start(), each.end()


def _amounts(text: str) -> Iterator[tuple[str, int, int]]:
    dated: list[tuple[int, int]] | None = None
    for each in NUMBER.finditer(text):
        start, end = each.span()
        if dated is None:
            dated = [one.span() for one in NEAR_DATE.finditer(text)]
        if any(begin < end and start < over for begin, over in dated):
            continue
        before = text[max(0, start - 24) : start]
        if (
            (end - start <= 2 and _AFTER_MONTH.search(before))
            or _NUMBERED.search(before)
            or not alone(text, start, end)
        ):
            continue
        yield _number(each.group()), start, end


def alone(text: str, start: int, end: int) -> bool:
    """Say whether no unseen character stands beside a span."""
    return not (joins(text[start - 1 : start] or " ") or joins(text[end : end + 1] or " "))


def _find(kind: str, value: str, text: str) -> Found | None:
    if kind in ("amount", "phone", "iban"):
        return _by_form(kind, value, text)
    if kind == "date":
        return _by_form(kind, value, text) if date_form(value) else _phrase(value, text)
    if kind == "email":
        wanted = same_form(kind, value)
        for each in _emails(text, wanted):
            if same_form(kind, each.group()) == wanted and alone(text, *each.span()):
                return Found(form=names.EMAIL, start=each.start(), end=each.end())
        return None
    if kind == "url":
        return _url(value, text)
    if kind == "host":
        return _host(value, text)
    if kind == "path":
        return _path(value, text)
    if kind.startswith(ID_PREFIX):
        return _id(kind.removeprefix(ID_PREFIX), value, text)
    if kind == "filename":
        spoken = None if (whole := _phrase(value, text)) is not None else find_spoken(value, text)
        return whole if spoken is None else Found(form=names.FILE_STEM, start=spoken[0], end=spoken[1])
    return None if kind == "flag" else _phrase(value, text)


def _emails(text: str, wanted: str) -> Iterator[re.Match[str]]:
    """Yield the addresses in a text among which a wanted one is found, if there is one."""
    if not text.isascii():
        yield from EMAIL.finditer(text)
        return
    low = text.lower()
    at = low.find(wanted) if wanted else -1
    while at >= 0:
        each = EMAIL.match(text, at)
        if each is not None:
            yield each
        at = low.find(wanted, at + 1)


def _by_form(kind: str, value: str, text: str) -> Found | None:
    wanted = same_form(kind, value)
    if not wanted:
        return None
    form = {"amount": names.AMOUNT, "phone": names.PHONE, "iban": names.IBAN, "date": names.DATE}[kind]
    for given, start, end in forms_in(kind, text):
        if given == wanted:
            return Found(form=form, start=start, end=end)
    return None


def _number(text: str) -> str:
    if not re.fullmatch(r"-?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?", text):
        return ""
    whole, _, part = text.replace(",", "").partition(".")
    sign = "-" if whole.startswith("-") else ""
    number = f"{whole.removeprefix('-').lstrip('0') or '0'}.{part.rstrip('0')}".rstrip(".")
    return number if number == "0" else sign + number


# --- addresses ---


def same_url(value: str, given: str) -> bool:
    """Say whether a URL that is given vouches for a value: the same, or the same over TLS; never the other way."""
    (scheme, rest), (other, there) = _url_parts(value), _url_parts(given)
    return rest == there and (
        scheme == other or not scheme or not other or (other, scheme) == ("http", "https")
    )


def _url_parts(text: str) -> tuple[str, str]:
    """Return the scheme, and the rest with its host in lower case: a path's case may tell two pages apart."""
    scheme, colon, rest = text.partition("://")
    if not colon:
        scheme, rest = "", text
    host, slash, path = rest.partition("/")
    return scheme.lower(), ((host.lower() if host.isascii() else host) + slash + path).rstrip("/")


def _url_form(text: str) -> str:
    scheme, rest = _url_parts(text)
    return rest if scheme in ("", "https") else f"{scheme}://{rest}"


def bare_url(text: str) -> str:
    """Return a URL without the punctuation of the sentence that it ends."""
    return text.rstrip(".,;:!?)]}")


def _url(value: str, text: str) -> Found | None:
    for each in URL.finditer(text):
        bare = bare_url(each.group())
        if same_url(value, bare) and _link_alone(text, each.start(), each.start() + len(bare)):
            return Found(form=names.URL, start=each.start(), end=each.start() + len(bare))
    # Only a bare host: what is behind a `/` has its own case.
    named = "." in value and not set("/?#@") & set(value)
    return _phrase(value, text) if named else None


def _link_alone(text: str, start: int, end: int) -> bool:
    return alone(text, start, end) and _IN_LINK.search(text[max(0, start - 4096) : start]) is None


def _host(value: str, text: str) -> Found | None:
    parts = re.fullmatch(r"(?:(https?)://)?([^/?#@\s]+)/?", value)
    if parts is None:
        return None
    scheme, host = parts[1] or "", parts[2].lower()
    if scheme:
        for each in URL.finditer(text):
            link = bare_url(each.group())
            given, _, rest = link.partition("://")
            end = each.start() + len(link)
            same = (
                re.split(r"[/?#]", rest, maxsplit=1)[0].lower() == host
                and (given.lower(), scheme) in _UPGRADES
            )
            if same and _link_alone(text, each.start(), end):
                return Found(form=names.ORIGIN, start=each.start(), end=end)
        return None
    span = find_named(text, "host", host)
    if span is not None:
        form = names.URL_HOST if _SCHEME.match(text, span[0]) else names.HOST
        return Found(form=form, start=span[0], end=span[1])
    for each in EMAIL.finditer(text):
        if each.group().rpartition("@")[2].lower() == host and alone(text, *each.span()):
            return Found(form=names.MAIL_DOMAIN, start=each.start(), end=each.end())
    return None


# --- names ---


@lru_cache(maxsize=64)
def _folded(text: str) -> tuple[str, tuple[int, ...] | None]:
    """Return a text in compatibility form and lower case, with plain quotes and one space for each white space."""
    if text.isascii() and not _SPACED.search(text):
        return text.lower(), None
    out: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        for each in _QUOTES.get(char) or unicodedata.normalize("NFKD", char).lower():
            if not each.isspace():
                out.append(each)
                places.append(place)
            elif not out or out[-1] != " ":
                out.append(" ")
                places.append(place)
    return "".join(out), tuple(places)


def _part_of_word(char: str) -> bool:
    return char.isalnum() or char in _INNER or joins(char)


def _occurrences(value: str, text: str, heads: tuple[str, ...] = ()) -> Iterator[tuple[int, int, bool]]:
    """Yield each place where a text holds a value as whole words, and whether it stands in quotes."""
    needle = _folded(value.strip())[0].strip()
    hay, places = _folded(text)
    at = hay.find(needle) if needle else -1
    while at >= 0:
        end = at + len(needle)
        begin = next((at - len(head) for head in heads if hay.endswith(head, 0, at)), at)
        whole = places is None or (
            (at == 0 or places[at - 1] != places[at]) and (end == len(hay) or places[end] != places[end - 1])
        )
        if whole and _opens(hay, begin) and _closes(hay, end):
            quoted = begin > 0 and hay[begin - 1] in "\"'`" and hay[end : end + 1] == hay[begin - 1]
            yield (at, end, quoted) if places is None else (places[at], places[end - 1] + 1, quoted)
        at = hay.find(needle, at + 1)


def _opens(hay: str, at: int) -> bool:
    if at == 0 or not _part_of_word(hay[at - 1]):
        return True
    return hay[at - 1] == "@" and (at == 1 or not _part_of_word(hay[at - 2]))


def _closes(hay: str, at: int) -> bool:
    # A full stop or colon ends a sentence only where no word goes on after it.
    while at < len(hay) and hay[at] in ".:":
        at += 1
    return at == len(hay) or not _part_of_word(hay[at])


def _phrase(value: str, text: str) -> Found | None:
    telling = sum(char.isalnum() for char in value) >= MIN_PHRASE
    for start, end, quoted in _occurrences(value, text):
        spelt = text[start:end]
        if telling or quoted or (spelt == value.strip() and spelt[0].isupper()) or spelt == text.strip():
            return Found(form=names.PHRASE, start=start, end=end)
    return None


def _path(value: str, text: str) -> Found | None:
    path = re.sub(r"/{2,}", "/", value)
    while path.startswith("./"):
        path = path[2:]
    if any(part == ".." for part in path.split("/")):
        path = value
    for each in (path, path.rstrip("/"), value):
        telling = "/" in each.strip("/") or "." in each or sum(char.isalnum() for char in each) >= MIN_PHRASE
        for start, end, quoted in _occurrences(each, text, ("~/", "$home/", "./")):
            if telling or quoted:
                return Found(form=names.PATH, start=start, end=end)
    return None


def _id(kind: str, value: str, text: str) -> Found | None:
    wanted = value.strip()
    unmistakable = len(wanted) >= 6 and any(c.isdigit() for c in wanted) and any(c.isalpha() for c in wanted)
    own = {kind, *kind.split("_")}
    own |= {f"{word}s" for word in own}
    for each in re.finditer(rf"(?<![\w.,/-]){re.escape(wanted)}(?![\w]|[.,/:-][0-9A-Za-z])", text):
        start, end = each.span()
        if alone(text, start, end) and (unmistakable or _called(own, text[max(0, start - 80) : start])):
            return Found(form=names.ID, start=start, end=end)
    return None


def _called(own: set[str], before: str) -> bool:
    """Say whether the words before a number call it an id, and of no other kind."""
    mark = _ID_WORD.search(before)
    if mark is None:
        return False
    if mark["bare"]:
        return mark["bare"].lower() in own
    words = re.findall(r"[a-z_]+|[.,;!?]", before[: mark.start()].lower())
    at = len(words) - 1
    while at >= 0 and words[at] in _SMALL and len(words) - at <= 3:
        at -= 1
    last = words[at] if at >= 0 else ""
    fits = last in own
    if mark["mark"] and mark["mark"].lower().startswith("n"):
        # a number of what, it has to say
        return fits
    return fits or last.removesuffix("s") not in _OTHER_KINDS
