"""References: numbers for what may not be shown, so that the same can be known again."""

from collections.abc import Mapping

from interlock.model.records import dataclass

VALUE, PLACE, NAME = "value", "place", "name"
_ID = "id:"
_TYPES: Mapping[str, str] = {
    "text": "a text",
    "name": "a name",
    "email": "an email address",
    "url": "a URL",
    "host": "a host",
    "path": "a path",
    "iban": "an IBAN",
    "phone": "a phone number",
    "amount": "an amount",
    "date": "a date",
    "choice": "a choice",
    "flag": "a flag",
    "command": "a command",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One thing that is not shown. Takes: `family`, what is counted; `number`, from 1."""

    family: str
    number: int

    def __str__(self) -> str:
        return f"{self.family} #{self.number}"


class References:
    """Gives numbers in the order of first sight.

    Holds: equal texts of one family have equal numbers, others have others; a number tells nothing else.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def of(self, family: str, text: str) -> Reference:
        """Return the reference to a text."""
        numbers = self._numbers.setdefault(family, {})
        return Reference(family=family, number=numbers.setdefault(text, len(numbers) + 1))


def type_words(kind: str, names: frozenset[str]) -> str:
    """Return a value type in words. Takes: `names`, which the operator declares; other kinds of ids are not named."""
    found: list[str] = []
    for part in kind.split("|"):
        if part.startswith(_ID):
            what = part.removeprefix(_ID)
            found.append(f"an id of the kind {what}" if what in names else "an id")
        else:
            found.append(_TYPES.get(part, "a value"))
    return " or ".join(dict.fromkeys(found))
