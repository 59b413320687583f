"""Where a text names a value of a call, and what stands in a text that is carried."""

from collections.abc import Iterator

from interlock.policy.derivations.typed import EMAIL, IBAN, PHONE, URL, alone, bare_url, find_typed, same_form

__all__ = ["Span", "acting", "find_value", "held", "same_form"]

Span = tuple[int, int]
SHAPES = {"email": EMAIL, "url": URL, "iban": IBAN, "phone": PHONE}
_ACTING = (("email", EMAIL, ("@",)), ("url", URL, ("://", "www.")), ("iban", IBAN, ("",)))
"""What is looked for, and what each of them holds."""


def acting(text: str) -> tuple[tuple[str, str], ...]:
    """Return the addresses and links in a text that is carried: type and value, each once."""
    lower = text.lower()
    found = [
        (kind, _bare(kind, each.group()))
        for kind, shape, marks in _ACTING
        if any(mark in lower for mark in marks)
        for each in shape.finditer(text)
    ]
    return tuple(dict.fromkeys(found))


def held(kind: str, text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the values of a type that a text holds, as they are compared, each with its span; of a type without a
    shape of its own, none."""
    for one in kind.split("|"):
        shape = SHAPES.get(one)
        for each in shape.finditer(text) if shape is not None else ():
            bare = _bare(one, each.group())
            form, start, end = same_form(one, bare), each.start(), each.start() + len(bare)
            if form:
                # Beside something unseen it is a value that nobody asks for, and still one.
                yield (form if alone(text, start, end) else f"?{form}"), start, end


def find_value(kind: str, value: str, text: str) -> Span | None:
    """Return the first span where a text names a value of a type (or of one of several, `iban|name`)."""
    found = find_typed(kind, value, text)
    return (found.start, found.end) if found is not None else None


def _bare(kind: str, text: str) -> str:
    return bare_url(text) if kind == "url" else text
