"""What is known of sensitive data: its marks by level, and what left for each destination before.

Source: KAIROS, sensitive values; the levels, the encodings and the trails, ours.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from interlock.model.labels import Confidentiality
from interlock.model.records import changed, dataclass
from interlock.policy.sensitivity.decoding import GAP
from interlock.policy.sensitivity.folding import plain
from interlock.policy.sensitivity.marks import Marks, marks_of, marks_of_leaves
from interlock.policy.sensitivity.readings import layers_of
from interlock.policy.sensitivity.searching import Searched, index_of

MAX_MARKS = 200_000
"""Of all sensitive texts; what comes later counts as present everywhere."""
_JOINED = 262_144
"""Short texts are read together up to so many characters: reading one has a cost of its own."""
_AROUND = 512
_MOST_AROUND = 16_384
Groups = tuple[tuple[Confidentiality, tuple[Marks, ...]], ...]
TRAIL_LENGTH = 2_048
PIECE_LENGTH = 512
MAX_TRAILS = 256
_LETTERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """The small pieces that left for a destination, one stream for each way that a request has to carry them."""

    destination: str
    streams: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What sensitive data is known by, and what left before.

    Takes: `groups`, the highest level first, the marks of each in parts, of which a later one is less than half of the
    one before; `trails`, the latest last.
    Holds: marks are only added; a trail never lowers what a text carries.
    """

    groups: Groups = ()
    trails: tuple[Trail, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.groups)

    @property
    def highest(self) -> Confidentiality:
        """Return the highest level that is known."""
        return self.groups[0][0] if self.groups else Confidentiality.PUBLIC

    def with_text(self, level: Confidentiality, text: str) -> "Known | None":
        """Return what is known with a sensitive text, None where there is no room for it."""
        return self._with_marks(level, marks_of(text))

    def with_leaves(self, level: Confidentiality, leaves: Sequence[tuple[str, str]]) -> "Known | None":
        """Return what is known with sensitive leaves, key and text of each; None where there is no room for them."""
        return self._with_marks(level, marks_of_leaves(leaves))

    def _with_marks(self, level: Confidentiality, marks: Marks) -> "Known | None":
        groups = dict(self.groups)
        held = groups.get(level, ())
        for one in held:
            marks = marks.but(one)
        if not marks.size:
            return self
        if marks.size + sum(one.size for _level, all_of in self.groups for one in all_of) > MAX_MARKS:
            return None
        # As much as was added is made ready for the search again, however many texts come.
        while held and held[-1].size < 2 * marks.size:
            marks = held[-1].and_also(marks)
            held = held[:-1]
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
        """Return the highest level in any of these texts, which have nothing to do with each other."""
        level = Confidentiality.PUBLIC
        for part in _gathered(parts):
            if level >= self.highest:
                break
            level = max(level, self.level_in(part, plainly=plainly))
        return level

    def _plain_level(self, text: str) -> Confidentiality:
        searched = Searched(plain(text))
        for level, all_of in self.groups:
            if any(searched.holds_word(index_of(marks)) for marks in all_of):
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
    # Of a value that is dealt out letter by letter a letter may come again.
    return len(piece) > _LETTERS and piece in held.split("\n")


def _gathered(parts: Iterable[str]) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for part in parts:
        if size + len(part) > _JOINED and held:
            yield GAP.join(held)
            held, size = [], 0
        held.append(part)
        size += len(part)
    yield GAP.join(held)


@lru_cache(maxsize=64)
def _level_in(groups: Groups, text: str) -> Confidentiality:
    """The one place where a text is searched: a request's parts repeat from one to the next, so it is remembered."""
    highest = groups[0][0]
    longest = max(index_of(marks).longest for _level, all_of in groups for marks in all_of)
    found = Confidentiality.PUBLIC
    for layer, whole in layers_of(text, min(max(_AROUND, 3 * longest), _MOST_AROUND)):
        if layer:
            searched = Searched(layer)
            for level, all_of in groups:
                if level <= found:
                    break
                if any(searched.holds(index_of(marks)) for marks in all_of):
                    found = level
        if found >= highest or not whole:
            return highest
    return found
