"""Texts in the order in which they came, of which one can ask which is the first that names a value.

A snapshot is the shared log and a length, so that it costs nothing to keep an old one. The answer is that of a walk
over all texts, the same text and the same span, without the walk.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar, overload

from interlock.model.records import dataclass
from interlock.policy.word_index import GAP, WordIndex, places, window, words_of

Span = tuple[int, int]
Find = Callable[[str], Span | None]
Forms = Callable[[str], Iterable[tuple[str, int, int]]]
"""The values of one type that a text holds, as they are compared, in order, each with its span."""

MOST_WALKED = 16
MOST_WALKED_LENGTH = 16_384
"""So much of the newest texts is walked: few runs have more, and they index nothing."""
MAX_FORMS = 1_000_000
"""Of each type; the texts behind are walked."""
_REMEMBERED = 16
_CONTEXT = 2
_CONTEXT_LENGTH = 128
"""What may be looked at beside a value: so many pieces and characters."""


class HasText(Protocol):
    """What can be looked up."""

    @property
    def text(self) -> str:
        """The text in which values are looked for."""


T = TypeVar("T", bound=HasText)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T]):
    """Where a text names a value. Takes: `number`, of the text."""

    number: int
    item: T
    start: int
    end: int


class _Log(Generic[T]):
    """What all snapshots of one history share: it only grows."""

    def __init__(self, items: list[T], words: WordIndex) -> None:
        self.items = items
        self.words = words
        self.numbers: dict[str, int] = {}
        self.numbered = 0
        self.forms: dict[str, _FormIndex] = {}
        self.recent: dict[tuple[object, ...], Found[T] | None] = {}

    def index(self) -> None:
        """Index what is not yet."""
        self.words.add([item.text for item in self.items[self.words.texts :]])


class _FormIndex:
    """The first text and span of each form of one type; `texts` is how many texts it knows."""

    def __init__(self) -> None:
        self.texts = 0
        self.first: dict[str, tuple[int, int, int]] = {}


class Indexed(Generic[T]):
    """Texts, frozen; `with_item` gives one more.

    Holds: two histories that go on from one snapshot do not see each other.
    """

    __slots__ = ("_length", "_log")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._log: _Log[T] = _Log(list(items), WordIndex())
        self._length = len(self._log.items)

    def with_item(self, item: T) -> "Indexed[T]":
        """Return these texts and one more."""
        log = self._log
        if len(log.items) == self._length:
            log.items.append(item)
        if log.items[self._length] is not item:
            # Another history went on from here first.
            log = _Log([*log.items[: self._length], item], log.words.copied(self._length))
        more: Indexed[T] = Indexed.__new__(type(self))
        more._log, more._length = log, self._length + 1
        return more

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        items = self._log.items
        return (items[number] for number in range(self._length))

    @overload
    def __getitem__(self, number: int) -> T: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[T, ...]: ...
    def __getitem__(self, number: int | slice) -> T | tuple[T, ...]:
        if isinstance(number, slice):
            return tuple(self._log.items[each] for each in range(*number.indices(self._length)))
        return self._log.items[range(self._length)[number]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Indexed):
            return NotImplemented
        same = self._log is other._log and self._length == other._length
        return same or self[:] == other[:]

    def __hash__(self) -> int:
        return hash(self[:])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"

    @property
    def index_size_bytes(self) -> int:
        """Return what the index of words takes, beside the texts."""
        return self._log.words.size_bytes

    def has_text(self, text: str) -> bool:
        """Say whether exactly this text is one of them."""
        log = self._log
        while log.numbered < self._length:
            log.numbers.setdefault(log.items[log.numbered].text, log.numbered)
            log.numbered += 1
        return log.numbers.get(text, self._length) < self._length

    def first(self, find: Find, value: str, *key: str) -> Found[T] | None:
        """Return the first of `every`.

        Takes: `key`, by which the answer is remembered: an effect asks for the same value more than once.
        """
        if not key:
            return next(self.every(find, value), None)
        recent, question = self._log.recent, (self._length, *key)
        if question not in recent:
            if len(recent) >= _REMEMBERED:
                recent.clear()
            recent[question] = next(self.every(find, value), None)
        return recent[question]

    def every(self, find: Find, value: str, *, only: int | None = None) -> Iterator[Found[T]]:
        """Yield where each text that names a value names it first, in the order of the texts.

        Takes: `find`, which gives the first span in a text; it is asked about parts of a text, cut at white space or a
        quote, with at least two words and 128 characters to spare. `value`: its words, runs of letters and digits,
        whatever the case, stand as whole words wherever `find` finds it, in the text itself or in its compatibility
        form (NFKC); `""` where they need not, then all texts are walked. `only`, one text's number.
        """
        log = self._log
        upto = self._length if only is None else min(only + 1, self._length)
        words = words_of(value)
        number = only or 0
        if words:
            self._make_ready()
            if number < log.words.texts:
                yield from self._looked_up(find, value, words, only)
                number = max(number, log.words.texts)
        for each in range(number, upto):
            span = find(log.items[each].text)
            if span is not None:
                yield Found(number=each, item=log.items[each], start=span[0], end=span[1])

    def first_form(self, kind: str, form: str, forms: Forms) -> Found[T] | None:
        """Return where a value of a type stands first, by its form; nothing has an empty one.

        Takes: `forms`, the same for the same `kind` each time.
        """
        if not form:
            return None
        log = self._log
        index = log.forms.setdefault(kind, _FormIndex())
        while index.texts < self._length and len(index.first) < MAX_FORMS:
            for each, start, end in forms(log.items[index.texts].text):
                index.first.setdefault(each, (index.texts, start, end))
            index.texts += 1
        known = index.first.get(form)
        if known is not None:
            number, start, end = known
            if number >= self._length:
                return None
            return Found(number=number, item=log.items[number], start=start, end=end)
        for number in range(index.texts, self._length):
            for each, start, end in forms(log.items[number].text):
                if each == form:
                    return Found(number=number, item=log.items[number], start=start, end=end)
        return None

    def _make_ready(self) -> None:
        log = self._log
        new = self._length - log.words.texts
        if new <= 0:
            return
        if new > MOST_WALKED or sum(len(item.text) for item in log.items[log.words.texts : self._length]) > (
            MOST_WALKED_LENGTH
        ):
            log.index()

    def _looked_up(
        self, find: Find, value: str, words: Sequence[str], only: int | None
    ) -> Iterator[Found[T]]:
        items = self._log.items
        # A quote that is none of ASCII's may stand for one, where texts are cut.
        gaps = len(GAP.findall(value)) + (0 if value.isascii() else len(value))
        done = -1
        for word, first, upto, begin, end in self._log.words.candidates(words, apart=gaps, only=only):
            if first >= self._length:
                return
            if end:
                if first == done:
                    continue
                span = _in_block(find, items[first].text, word, (begin, end), gaps)
                if span is not None:
                    done = first
                    yield Found(number=first, item=items[first], start=span[0], end=span[1])
                continue
            for number in range(first, min(upto, self._length)):
                if only is None or number == only:
                    span = find(items[number].text)
                    if span is not None:
                        yield Found(number=number, item=items[number], start=span[0], end=span[1])


def _in_block(find: Find, text: str, word: str, block: Span, gaps: int) -> Span | None:
    if gaps:
        # What begins in the block may end behind it, and the other way round.
        block = window(text, *block, gaps)
    around = places(text, word, *block)
    for begin, end in (block,) if around is None else around:
        low, high = window(text, begin, end, gaps + _CONTEXT, least=_CONTEXT_LENGTH)
        span = find(text[low:high])
        if span is not None:
            return low + span[0], low + span[1]
    return None
