"""Where a text names a value, by the value's type: whole words, addresses and numbers, never a part of one."""

import re

from interlock.policy.matching import find_token
from interlock.policy.tools.roles import ID_PREFIX

Span = tuple[int, int]
EMAIL = re.compile(r"(?<![\w.+%@-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+(?![\w@-])")
URL = re.compile(r"(?<![\w@.])(?:[a-zA-Z][a-zA-Z0-9+.-]*://[^\s\"'<>()]+|www\.[^\s\"'<>()]+)")
IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}[A-Z0-9]{10,30}(?![A-Za-z0-9])")
NUMBER = re.compile(r"(?<![\w.,/-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|[.,/-]\d)")
_DATE = re.compile(r"\d{4}([-./ ])\d{2}\1\d{2}|\d{2}([-./])\d{2}\2\d{4}")
PHONE = re.compile(r"(?<![\w+])\+?\d[\d ()./-]{5,20}\d(?!\w)")
MIN_TEXT = 4
MIN_NAME = 2
_ID_WORD = r"\b(?:id|ID|Id|no\.|number|#)\s*(?:is|=|:)?\s*[\"'`]?"
_ACTING = (("email", EMAIL), ("url", URL), ("iban", IBAN))


def acting(text: str) -> tuple[tuple[str, str], ...]:
    """Return the addresses and links in a text that is carried: type and value, each once."""
    found = [(kind, _bare(kind, each.group())) for kind, shape in _ACTING for each in shape.finditer(text)]
    return tuple(dict.fromkeys(found))


def candidates(kind: str, text: str) -> tuple[str, ...]:
    """Return the different values of a type that a text holds, as they are compared."""
    shape = {"email": EMAIL, "url": URL, "iban": IBAN, "phone": PHONE}.get(kind)
    if shape is None:
        return ()
    return tuple(dict.fromkeys(same_form(kind, _bare(kind, each.group())) for each in shape.finditer(text)))


def same_form(kind: str, value: str) -> str:
    """Return a value as it is compared with others of its type."""
    text = " ".join(value.split())
    if kind == "url":
        return _url_form(text)
    if kind == "phone":
        # What is beside the digits may say where it goes.
        return re.sub(r"[^\d+]", "", text) if PHONE.fullmatch(text) and not _DATE.fullmatch(text) else ""
    if kind == "iban":
        return text.replace(" ", "")
    if kind == "amount":
        return _number(text)
    if kind.startswith(ID_PREFIX):
        return text
    # Folding beyond ASCII makes one of two addresses that are different (`ß`, `ſ`, the Kelvin sign).
    return text.lower() if text.isascii() else text


def _url_form(text: str) -> str:
    """Return a URL without its web scheme, its host in lower case: a path's case may tell two pages apart."""
    host, slash, rest = re.sub(r"^https?://", "", text, flags=re.IGNORECASE).partition("/")
    return ((host.lower() if host.isascii() else host) + slash + rest).rstrip("/")


def find_value(kind: str, value: str, text: str) -> Span | None:
    """Return the first span where a text names a value of a type (or of one of several, `iban|name`)."""
    for one in kind.split("|"):
        span = _find(one, value, text)
        if span is not None:
            return span
    return None


def _find(kind: str, value: str, text: str) -> Span | None:
    shape = {"email": EMAIL, "url": URL, "iban": IBAN, "phone": PHONE, "amount": NUMBER}.get(kind)
    if shape is not None:
        wanted = same_form(kind, value)
        for each in shape.finditer(text) if wanted else ():
            bare = _bare(kind, each.group())
            if same_form(kind, bare) == wanted:
                return each.start(), each.start() + len(bare)
        if kind != "url":
            return None
        # Only a bare host: what is behind a `/` has its own case.
        bare_host = "." in value and not set("/?#") & set(value) and len(value) >= MIN_TEXT
        return find_token(text, value) if bare_host else None
    if kind.startswith(ID_PREFIX):
        # A short id stands in many a date or price: only what is called an id names one.
        found = re.search(_ID_WORD + rf"({re.escape(value)})(?!\w)", text) if value.strip() else None
        return found.span(1) if found else None
    if kind == "flag":
        return None
    least = MIN_NAME if kind in ("name", "choice") else MIN_TEXT
    if sum(char.isalnum() for char in value) < least:
        return None
    return find_token(text, value)


def _bare(kind: str, text: str) -> str:
    return text.rstrip(".,;:!?)]}") if kind == "url" else text


def _number(text: str) -> str:
    if not re.fullmatch(r"-?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?", text):
        return ""
    plain = text.replace(",", "")
    whole, _, part = plain.partition(".")
    return f"{int(whole)}.{part.rstrip('0')}".rstrip(".")
