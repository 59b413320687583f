"""What is known of sensitive data: its marks by level, and what left for each destination before.

Source: KAIROS, sensitive values; the levels, the encodings and the trails, ours.
"""

from collections.abc import Iterable
from functools import lru_cache

from interlock.model.labels import Confidentiality
from interlock.model.records import changed, dataclass
from interlock.policy.matching import holds_any
from interlock.policy.sensitivity.marks import FEW, GRAM, Marks, fold, marks_of, phrases_in, squeeze, words_of
from interlock.policy.sensitivity.readings import readings_of

MAX_MARKS = 200_000
"""Of all sensitive texts; what comes later counts as present everywhere."""
MAX_TEXT = 16_384
"""What is longer is decoded once; an encoding inside of that counts as the highest level that is known."""
MAX_DECODED = 131_072
"""What is longer is not decoded: it counts as the highest level that is known. The monitor stands still while it
decodes."""
TRAIL_LENGTH = 2_048
PIECE_LENGTH = 512
MAX_TRAILS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """The small pieces that left for a destination, one stream for each way that a request has to carry them."""

    destination: str
    streams: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What sensitive data is known by, and what left before.

    Takes: `groups`, the highest level first; `trails`, the latest last.
    Holds: marks are only added; a trail never lowers what a text carries.
    """

    groups: tuple[tuple[Confidentiality, tuple[Marks, ...]], ...] = ()
    trails: tuple[Trail, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.groups)

    @property
    def highest(self) -> Confidentiality:
        """Return the highest level that is known."""
        return self.groups[0][0] if self.groups else Confidentiality.PUBLIC

    def with_text(self, level: Confidentiality, text: str) -> "Known | None":
        """Return what is known with a sensitive text, None where there is no room for it."""
        marks = marks_of(text)
        if not marks.size:
            return self
        groups = dict(self.groups)
        held = groups.get(level, ())
        if marks in held:
            return self
        if marks.size + sum(one.size for _level, all_of in self.groups for one in all_of) > MAX_MARKS:
            return None
        groups[level] = (*held, marks)
        return changed(self, groups=tuple(sorted(groups.items(), reverse=True)))

    def level_in(self, text: str, *, plainly: bool = False) -> Confidentiality:
        """Return the level of the sensitive data that a text holds, plain or encoded.

        Takes: `plainly`, whether encodings are left alone, for a destination that may hold all of it.
        Holds: errs upwards: what is encoded more deeply than it is followed counts as the highest level.
        """
        if not self.groups or not text:
            return Confidentiality.PUBLIC
        if plainly:
            return self._plain_level(text)
        return _level_in(self.groups, text)

    def level_in_parts(self, parts: Iterable[str], *, plainly: bool = False) -> Confidentiality:
        """Return the highest level in any of these texts, each read for itself."""
        level = Confidentiality.PUBLIC
        for part in parts:
            if level >= self.highest:
                break
            level = max(level, self.level_in(part, plainly=plainly))
        return level

    def _plain_level(self, text: str) -> Confidentiality:
        lowered = fold(text)
        for level, all_of in self.groups:
            if any(holds_any(lowered, marks.words) for marks in all_of):
                return level
        return Confidentiality.PUBLIC

    def trail_level(self, destination: str, pieces: Iterable[tuple[str, str]]) -> Confidentiality:
        """Return the level of what stands in these pieces together with those that left before for the same place."""
        if not self.groups:
            return Confidentiality.PUBLIC
        trail = next((one for one in self.trails if one.destination == destination), None)
        if trail is None:
            return Confidentiality.PUBLIC
        before = dict(trail.streams)
        level = Confidentiality.PUBLIC
        for way, piece in pieces:
            held = before.get(way, "")
            if held and piece and len(piece) <= PIECE_LENGTH and not _repeats(held, piece):
                level = max(level, self.level_in((held + "\n" + piece)[-TRAIL_LENGTH - PIECE_LENGTH :]))
        return level

    def with_pieces(self, destination: str, pieces: Iterable[tuple[str, str]]) -> "Known":
        """Return what is known when these pieces have left."""
        if not self.groups:
            return self
        trail = next((one for one in self.trails if one.destination == destination), None)
        streams = dict(trail.streams) if trail else {}
        before = dict(streams)
        for way, piece in pieces:
            held = streams.get(way, "")
            if piece and len(piece) <= PIECE_LENGTH and not _repeats(held, piece):
                streams[way] = (f"{held}\n{piece}" if held else piece)[-TRAIL_LENGTH:]
        if streams == before:
            return self
        made = Trail(destination=destination, streams=tuple(sorted(streams.items())))
        others = [one for one in self.trails if one.destination != destination]
        return changed(self, trails=(*others[-MAX_TRAILS + 1 :], made))


NOTHING = Known()


def _repeats(held: str, piece: str) -> bool:
    return piece in held.split("\n")


@lru_cache(maxsize=64)
def _level_in(groups: tuple[tuple[Confidentiality, tuple[Marks, ...]], ...], text: str) -> Confidentiality:
    """The one place where a text is searched: a request's parts repeat from one to the next, so it is remembered."""
    highest = groups[0][0]
    found = Confidentiality.PUBLIC
    if len(text) > MAX_DECODED:
        return highest
    readings = readings_of(text) if len(text) <= MAX_TEXT else readings_of(text, depth=1)
    for one in readings.texts:
        found = max(found, _in_one(groups, one, found))
        if found >= highest:
            return highest
    return found if readings.whole else highest


def _in_one(
    groups: tuple[tuple[Confidentiality, tuple[Marks, ...]], ...], text: str, above: Confidentiality
) -> Confidentiality:
    folded = fold(text)
    squeezed = squeeze(folded)
    words: list[str] | None = None
    for level, all_of in groups:
        if level <= above:
            break
        for marks in all_of:
            if holds_any(folded, marks.words) or _holds_strong(squeezed, marks.strong):
                return level
            if marks.phrases:
                words = words_of(folded) if words is None else words
                if not marks.phrases.isdisjoint(phrases_in(words)):
                    return level
    return Confidentiality.PUBLIC


def _holds_strong(squeezed: str, strong: frozenset[str]) -> bool:
    if len(strong) <= FEW:
        return any(word in squeezed or word[::-1] in squeezed for word in strong)
    grams = _grams_of(strong)
    for at in range(len(squeezed) - GRAM + 1):
        for word in grams.get(squeezed[at : at + GRAM], ()):
            if squeezed.startswith(word, at):
                return True
    return False


@lru_cache(maxsize=8)
def _grams_of(strong: frozenset[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for word in strong:
        for way in (word, word[::-1]):
            found.setdefault(way[:GRAM], []).append(way)
    return {gram: tuple(sorted(words)) for gram, words in found.items()}
