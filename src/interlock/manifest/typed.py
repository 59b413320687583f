"""Types of what a hole takes. The names are those by which a policy types the arguments of tools.

Holds: a type says only what a value looks like; what vouches for a value of a hole with a source is that it stands
there.
"""

import json
import re

from interlock.model.manifest import Hole

TYPES = (
    "text",
    "name",
    "filename",
    "email",
    "url",
    "host",
    "path",
    "iban",
    "phone",
    "amount",
    "date",
    "choice",
    "flag",
)
ID_PREFIX = "id:"
MAX_LONGEST = 1 << 20
_SHORT = 1000
"""Characters of any value that is no text."""
_FORMS = {
    "email": r"[^\s@<>,;:\"()\[\]]{1,64}@[^\s@<>,;:/\"()\[\]]{1,253}",
    "url": r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s<>\"]+",
    "host": r"[^\s/@?#\\]{1,253}",
    "iban": r"[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]){10,34}",
    "phone": r"\+?[0-9(][0-9 ()./-]{3,30}",
    "amount": r"[^\s0-9+-]{0,4} ?[+-]?[0-9][0-9.,' ]{0,30} ?[^\s0-9]{0,4}",
    "date": r"[0-9A-Za-z][0-9A-Za-z ,.:/+-]{1,60}",
}
_LINE = frozenset(("name", "filename", "path", "choice"))


def is_type(text: str) -> bool:
    """Return whether a text names a type, or several as `iban|name`."""
    return bool(text) and all(
        part in TYPES or (part.startswith(ID_PREFIX) and part.removeprefix(ID_PREFIX).isidentifier())
        for part in text.split("|")
    )


def text_of(value: object) -> str | None:
    """Return a leaf as text, as the leaves of an answer are written; None for what is no leaf."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else None


def fits(hole: Hole, value: object) -> bool:
    """Return whether a value is of a hole's type and within its length."""
    text = text_of(value)
    if text is None or len(text) > hole.longest:
        return False
    return any(_is_of(kind, value, text) for kind in hole.type.split("|"))


def _is_of(kind: str, value: object, text: str) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == "flag":
        return isinstance(value, bool) or text.lower() in ("true", "false", "yes", "no")
    if isinstance(value, bool) or not text.strip() or len(text) > _SHORT:
        return False
    if kind in _LINE or kind.startswith(ID_PREFIX):
        return text.isprintable()
    form = _FORMS.get(kind)
    return form is not None and re.fullmatch(form, text) is not None
