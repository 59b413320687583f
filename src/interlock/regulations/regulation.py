"""A regulation's text, as provisions."""

import json
from hashlib import sha256

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """As much of an article as is shown at once. Takes: `id`, as one cites it; `title`, of the article."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegulationText:
    """A regulation. Takes: `id`, by which a policy names it. Holds: no two provisions have the same id."""

    id: str
    title: str
    source: str
    licence: str
    provisions: tuple[Provision, ...]

    @property
    def digest(self) -> str:
        """Return SHA-256 in hex of what a judge may be shown of it: ids, titles and texts, in order."""
        rows = [[one.id, one.title, one.text] for one in self.provisions]
        text = json.dumps([self.id, self.title, rows], ensure_ascii=False, separators=(",", ":"))
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
