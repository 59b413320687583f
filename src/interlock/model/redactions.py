"""Redactions: what is cut out of a request before it leaves, and what is put in its place.

The core says which bytes; the boundary cuts exactly these, and sends nothing where they are not what the core saw.
"""

from collections.abc import Iterable
from hashlib import sha256

from interlock.model.effects import Effect
from interlock.model.records import dataclass

BODY, QUERY = "body", "query"
PARTS = (BODY, QUERY)
"""What of a request can be cut. Nothing else of it: the rest steers it, or frames it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One span that is replaced.

    Takes: `part`, `body` or `query`; `start`, `end`, in bytes of that part as the command wrote it, end exclusive;
    `digest`, SHA-256 in hex of what is cut; `put`, ASCII that stands there instead.
    """

    part: str
    start: int
    end: int
    digest: str
    put: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """All that is cut out of one request.

    Takes: `cuts`, by part, in order, apart from each other; `body_digest`, `body_size_bytes`, of the body that leaves.
    """

    cuts: tuple[Cut, ...]
    body_digest: str
    body_size_bytes: int

    def of(self, part: str) -> tuple[Cut, ...]:
        """Return the cuts in one part."""
        return tuple(cut for cut in self.cuts if cut.part == part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A request as it leaves redacted. Takes: `before`, as it was proposed; `effect`, the changed one, same id."""

    before: Effect
    effect: Effect
    redaction: Redaction


def cut_of(part: str, data: bytes, start: int, end: int, put: str) -> Cut:
    """Return the cut of a span."""
    return Cut(part=part, start=start, end=end, digest=sha256(data[start:end]).hexdigest(), put=put)


def with_cuts(data: bytes, cuts: Iterable[Cut]) -> bytes:
    """Return a part as it leaves.

    Raises: ValueError, where a span is not there, not in order, or does not hold what was to be cut.
    """
    made: list[bytes] = []
    at = 0
    for cut in cuts:
        if not at <= cut.start < cut.end <= len(data):
            raise ValueError("a cut is not in its part, or not in order")
        if sha256(data[cut.start : cut.end]).hexdigest() != cut.digest:
            raise ValueError("what is to be cut is not what was decided on")
        made += (data[at : cut.start], cut.put.encode("ascii"))
        at = cut.end
    return b"".join((*made, data[at:]))
