"""What came in of the data that a policy declares for the regulation guard, and whether a text gives it on.

It is known again as sensitive data is, and also by plain values that are too common to be sensitive by themselves: what
one record calls `diabetes` is a diagnosis in whatever text it stands.
"""

from collections.abc import Iterable, Sequence

from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.records import changed, dataclass
from interlock.policy.regulation import Consent, ConsentField, RegulatedData, Regulation
from interlock.policy.sensitive_fields import covers, keys_of, pattern_of
from interlock.policy.sensitivity import NOTHING, Known
from interlock.policy.sensitivity.folding import fold
from interlock.policy.structured import read_leaves
from interlock.policy.tools.leaves import Leaf, leaves_of, record_of

_SOME = Confidentiality.SECRET
"""Any level above public: here it tells present from absent."""
_SHORTEST_WORD = 3
MAX_VALUES_LENGTH = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What came in of one declared kind of data, under one state of consent.

    Takes: `entry`, its number in the policy; `values`, folded texts of its fields; `known`, its marks; `lost`, whether
    some of it is not known: then it counts as present in every disclosure.
    """

    entry: int
    consent: Consent
    values: frozenset[str] = frozenset()
    known: Known = NOTHING
    lost: bool = False

    def is_in(self, texts: Sequence[str]) -> bool:
        """Say whether texts that have nothing to do with each other hold any of it."""
        if self.lost:
            return True
        folded = [fold(text) for text in texts]
        return (
            any(text.strip() in self.values for text in folded)
            or any(_stands_in(value, text) for text in folded for value in self.values)
            or any(self.known.level_in(text) for text in texts)
        )


def with_tool_answer(
    regulation: Regulation, held: tuple[Held, ...], tool: str, text: str | None, *, structured: bool
) -> tuple[Held, ...]:
    """Return what is known after a tool's answer."""
    bare = tool.rpartition("/")[2]
    for number, entry in enumerate(regulation.data):
        if entry.tool and entry.tool in (tool, bare):
            leaves = leaves_of(text) if structured and text is not None else None
            held = _with(held, number, entry, text, leaves)
    return held


def with_reads(regulation: Regulation, held: tuple[Held, ...], reads: Iterable[FileRead]) -> tuple[Held, ...]:
    """Return what is known after files were read."""
    for read in reads:
        for number, entry in enumerate(regulation.data):
            if entry.is_at(read.place):
                leaves = None if read.text is None else read_leaves(read.place.path, read.text)
                held = _with(held, number, entry, read.text, leaves)
    return held


def with_answer(
    regulation: Regulation, held: tuple[Held, ...], host: str, text: str | None
) -> tuple[Held, ...]:
    """Return what is known after a host's answer."""
    for number, entry in enumerate(regulation.data):
        if entry.is_from(host):
            held = _with(held, number, entry, text, None if text is None else leaves_of(text))
    return held


def with_unseen(regulation: Regulation, held: tuple[Held, ...]) -> tuple[Held, ...]:
    """Return what is known where files may have been read unseen: all that lies in declared places may be known."""
    for number, entry in enumerate(regulation.data):
        if entry.place:
            held = _with(held, number, entry, None, None)
    return held


def _with(
    held: tuple[Held, ...],
    number: int,
    entry: RegulatedData,
    text: str | None,
    leaves: tuple[Leaf, ...] | None,
) -> tuple[Held, ...]:
    if text == "":
        return held
    if text is None:
        return _added(held, number, _said(entry, None), None)
    if leaves is None:
        # What cannot be read as a structure counts whole: which of it is the field nobody can say.
        return _added(held, number, _said(entry, None), (("", text),))
    found: dict[Consent, list[tuple[str, str]]] = {}
    patterns = [pattern_of(field) for field in entry.fields]
    says = _consents(entry, leaves)
    for leaf in leaves:
        keys = keys_of(leaf)
        if not patterns or any(covers(one, keys) for one in patterns):
            consent = _said(entry, _nearest(says, leaf))
            found.setdefault(consent, []).append((keys[-1] if keys else "", leaf.text))
    for consent, values in found.items():
        held = _added(held, number, consent, tuple(values))
    return held


def _said(entry: RegulatedData, field: str | None) -> Consent:
    """Return the state of consent. Takes: `field`, what the record's field says, None where it has none."""
    if not isinstance(entry.consent, ConsentField):
        return entry.consent
    said = field is not None and field.strip().lower() in {one.strip().lower() for one in entry.consent.means}
    return Consent.GIVEN if said else Consent.WITHHELD


def _consents(entry: RegulatedData, leaves: tuple[Leaf, ...]) -> dict[str, str | None]:
    """Return what the consent field of each record says, by the record's pointer; None where it says two things."""
    if not isinstance(entry.consent, ConsentField):
        return {}
    pattern = pattern_of(entry.consent.field)
    said: dict[str, str | None] = {}
    for leaf in leaves:
        keys = keys_of(leaf)
        if len(keys) >= len(pattern) and covers(pattern, keys[-len(pattern) :]):
            record = record_of(leaf)
            said[record] = leaf.text if record not in said else None
    return said


def _nearest(says: dict[str, str | None], leaf: Leaf) -> str | None:
    """Return what the nearest record around a leaf says of consent."""
    record = record_of(leaf)
    while True:
        if record in says:
            return says[record]
        if not record:
            return None
        record = record.rpartition("/")[0]


def _added(
    held: tuple[Held, ...], number: int, consent: Consent, values: tuple[tuple[str, str], ...] | None
) -> tuple[Held, ...]:
    """Add values of an entry under a state of consent, None where they are not known."""
    at = next((at for at, one in enumerate(held) if (one.entry, one.consent) == (number, consent)), len(held))
    one = held[at] if at < len(held) else Held(entry=number, consent=consent)
    if one.lost:
        return held
    known = None if values is None else one.known.with_leaves(_SOME, values)
    texts = one.values | {folded for _key, text in values or () if (folded := fold(text).strip())}
    if known is None or sum(map(len, texts)) > MAX_VALUES_LENGTH:
        one = Held(entry=number, consent=consent, lost=True)
    else:
        one = changed(one, values=texts, known=known)
    return (*held[:at], one, *held[at + 1 :])


def _stands_in(value: str, text: str) -> bool:
    """Say whether a value stands in a text between borders of words."""
    if len(value) < _SHORTEST_WORD:
        return False
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        before = at == 0 or not (text[at - 1].isalnum() and value[0].isalnum())
        after = end == len(text) or not (text[end].isalnum() and value[-1].isalnum())
        if before and after:
            return True
        at = text.find(value, at + 1)
    return False
