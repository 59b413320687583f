"""The texts that vouch for values, in the order in which they came; which of them names a value costs no walk."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from interlock.model.records import dataclass
from interlock.policy.indexed import Found, Indexed

if TYPE_CHECKING:
    from interlock.policy.derivations import typed

__all__ = ["FILE", "MAX_SOURCE_LENGTH", "NET", "TASK", "Found", "Named", "Source", "Sources"]

MAX_SOURCE_LENGTH = 4_000_000
"""A longer text vouches for nothing."""
TASK = "task"
FILE = "file"
NET = "net"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text that vouches for the values in it.

    Takes: `kind`, `task`, `file` or `net`; `node`, the ledger node that holds it; `offset`, where it begins in that
    node's text (the texts of a node's reads, in order, each followed by one newline); `pointer`, where it is one leaf
    of a structured text: where that stands in the node, with an offset of 0.
    """

    kind: str
    node: int
    offset: int
    text: str
    pointer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Where a source names a value: how, and the span in its text. Takes: `number`, of the source."""

    number: int
    source: Source
    found: "typed.Found"


_VARIED = frozenset(("amount", "phone", "iban", "date"))
"""Types of which the same value is written in many ways."""


class Sources(Indexed[Source]):
    """The trusted texts of a trajectory."""

    __slots__ = ()

    def with_source(self, source: Source) -> "Sources":
        """Return these sources and one more."""
        more = self.with_item(source)
        assert isinstance(more, Sources)
        return more

    def naming(self, kind: str, value: str) -> Named | None:
        """Return the first source that names a value of a type, or of one of several (`iban|name`), and where."""
        from interlock.policy.derivations import typed

        best: Named | None = None
        for one in kind.split("|") if typed.plain(value) else ():
            found = self._naming(one, value) if one in _VARIED else self._spelling(one, value)
            if found is not None and (best is None or found.number < best.number):
                best = found
        return best

    def _naming(self, kind: str, value: str) -> Named | None:
        from interlock.policy.derivations import typed
        from interlock.policy.derivations.dates import date_form

        form = typed.same_form(kind, value)
        if kind == "date" and not date_form(value):
            return self._spelling(kind, value)
        at = self.first_form(kind, form, partial(typed.forms_in, kind))
        if at is None:
            return None
        there = typed.Found(form=kind, start=at.start, end=at.end)
        return Named(number=at.number, source=at.item, found=there)

    def _spelling(self, kind: str, value: str) -> Named | None:
        from interlock.policy.derivations import typed

        how = ""

        def find(text: str) -> tuple[int, int] | None:
            nonlocal how
            found = typed.find_typed(kind, value, text)
            how = found.form if found is not None else ""
            return (found.start, found.end) if found is not None else None

        at = self.first(find, _spelt(kind, value))
        if at is None:
            return None
        return Named(
            number=at.number, source=at.item, found=typed.Found(form=how, start=at.start, end=at.end)
        )

    def of_task(self) -> Iterator[Source]:
        """Yield the principal's own words, which come before all else."""
        for source in self:
            if source.kind != TASK:
                return
            yield source


def _spelt(kind: str, value: str) -> str:
    """Return what of a value stands letter by letter wherever a text names it: not its scheme."""
    if kind == "filename":
        from interlock.policy.derivations.filenames import spoken

        return spoken(value) or value
    if kind not in ("url", "host"):
        return value
    address = value.partition("://")[2] or value
    if kind == "url":
        return address
    from interlock.policy.naming import plain_labels

    return ".".join(plain_labels("host", address.rstrip("/").lower()))
