"""What a policy declares of regulation: who the sender is, who may be told, and which data is whose, on what terms.

Source: KNOX §4.1 and §4.2, the regulation guard; that roles and terms are declared and never asked of the agent, ours.
"""

import re
from enum import Enum
from urllib.parse import urlsplit

from interlock.model.places import Place
from interlock.model.records import dataclass
from interlock.policy.globs import matcher

CONSENT_BASES = ("consent", "explicit consent", "authorization")
"""Legal bases that hold only where somebody said yes."""
_APART = re.compile(r"[,;\n]")
_NOT_ONE = re.compile(r"[\s<>\"()\x00-\x1f]")
"""What an address never holds: a text with one of these is more than an address."""
_NAMED = re.compile(r'[^<>@,;"]*<([^<>@\s]+@[^<>@\s]+)>')
"""An address behind a name."""


class Consent(Enum):
    """What is known of the consent of whom the data is about."""

    GIVEN = "consent given"
    WITHHELD = "no consent"
    NOT_NEEDED = "no consent needed"
    UNSAID = "consent not declared"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentField:
    """A field of the same record that says whether there is consent. Takes: `means`, its values that mean yes."""

    field: str
    means: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegulatedParty:
    """Somebody who may be told something.

    Takes: `match`, globs over the values that name them: addresses, hosts, `tool:NAME`; `receives`, the types of
    information that they may be told, None where nothing is said of it; `basis` and `purpose`, `""` where the data's
    own count.
    """

    name: str
    role: str
    match: tuple[str, ...]
    receives: tuple[str, ...] | None = None
    basis: str = ""
    purpose: str = ""

    def is_named(self, value: str) -> bool:
        """Say whether a value is this party's. Holds: a list of several addresses names nobody."""
        return matcher(self.match, wide=False).fullmatch(value) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegulatedData:
    """Data that a regulation may cover, by where it comes from.

    Takes: `type` of information and `subject`, whom it is about, by role; exactly one of `tool` (whose answers hold
    it), `place` with `root`, `host`, and `arguments` (`TOOL.ARGUMENT`, whatever is given there); `fields`, which alone
    hold it, empty for all of it; `consent`, as declared, or where the record says so.
    """

    type: str
    subject: str
    tool: str = ""
    place: str = ""
    root: str = ""
    host: str = ""
    arguments: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    basis: str = ""
    purpose: str = ""
    consent: Consent | ConsentField = Consent.UNSAID

    def is_at(self, place: Place) -> bool:
        """Say whether a place holds it."""
        return (
            bool(self.place)
            and self.root in ("*", place.root)
            and matcher((self.place,), wide=True).fullmatch(place.path) is not None
        )

    def is_from(self, host: str) -> bool:
        """Say whether a host's answers hold it."""
        return bool(self.host) and matcher((self.host,), wide=False).fullmatch(host) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regulation:
    """The key `regulation` of a policy.

    Takes: `apply`, ids of the regulations; `sender`, name and role in one text; `asks_unknown`, whether a disclosure to
    somebody whom no party matches is judged, and not refused at once.
    """

    apply: tuple[str, ...]
    sender: str
    parties: tuple[RegulatedParty, ...] = ()
    data: tuple[RegulatedData, ...] = ()
    asks_unknown: bool = False

    def covers(self, place: Place) -> bool:
        """Say whether data of this place counts."""
        return any(one.is_at(place) for one in self.data)

    def party_of(self, value: str) -> RegulatedParty | None:
        """Return the first party that a value names, None where it names none."""
        return next((one for one in self.parties if one.is_named(value)), None)


def addresses_in(text: str) -> tuple[str, ...]:
    """Return the values in a text that may each name a party, in lower case; `""` for one that names nobody plainly.

    Holds: a glob never sees a part of something longer: two addresses in one, or words around one, name nobody.
    """
    return tuple(dict.fromkeys(_plainly(part.strip().lower()) for part in _APART.split(text) if part.strip()))


def _plainly(value: str) -> str:
    if "://" in value:
        try:
            return urlsplit(value).hostname or ""
        except ValueError:
            return ""
    named = _NAMED.fullmatch(value)
    value = named.group(1) if named else value
    return "" if "@" in value and (_NOT_ONE.search(value) or value.count("@") > 1) else value
