"""What each wire tells the audit: how its answers are read, asked for again, spliced and ended."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Protocol

from interlock.boundary.lens.calls import GATHERED_CHARS
from interlock.boundary.lens.sheet import Sheet

Told = Sequence[tuple[str, bool]]
"""What stands as the result of each call, in order: the text, and whether the call was refused."""
Document = dict[str, Any]


class Fate(Enum):
    """What becomes of a slice. `WAIT`: it waits for the next one, which shows whether it belongs to a call."""

    PASS = auto()
    WAIT = auto()
    HOLD = auto()


class Answer(Protocol):
    """One answer of the provider, read slice by slice.

    Holds: `usage` and `model` as the answer tells them; `ended`, whether it says that it is whole; `note`, what was
    odd.
    """

    sheet: Sheet
    usage: Document
    model: str
    ended: bool
    note: str

    def take(self, document: Document, name: str) -> Fate:
        """Read a slice's document. Takes: `name`, of its event."""
        ...

    def end(self) -> None:
        """Take the mark by which a stream ends (`[DONE]`)."""
        ...

    def again(self, body: Document, told: Told) -> Document | None:
        """Return the request's body with this answer and the results of its calls added, None where that cannot be."""
        ...

    def tokens(self) -> tuple[int, int]:
        """Return the tokens of the prompt and of the answer."""
        ...


class Shown(Protocol):
    """What the agent was shown of its answer, which may be made of several answers of the provider.

    Holds: `renamed`, under which id the provider keeps what the agent knows by another one.
    """

    before: Document
    renamed: dict[str, str]

    def passed(self, document: Document, name: str) -> None:
        """Take a document that the agent was shown as it came."""
        ...

    def turn(self, before: Document) -> None:
        """Begin another answer of the provider behind what was shown. Takes: `before`, the usage of all before it."""
        ...

    def spliced(self, document: Document, name: str, answer: Answer) -> list[Document]:
        """Return what to show of a later answer's document, and take it as shown."""
        ...

    def ending(self, text: str, usage: Document, answer: Answer, request: Document) -> list[Document | str]:
        """Return the documents that end a stream with a text; a `str` is data that is no JSON.

        Takes: `usage`, of all answers.
        """
        ...

    def whole(self, document: Document) -> Document:
        """Return a later answer that does not stream, with the usage of all."""
        ...

    def whole_ending(self, text: str, usage: Document, answer: Answer, request: Document) -> Document:
        """Return an answer that does not stream and holds a text alone."""
        ...


class Gathering:
    """Texts of an answer, bounded. Holds: `lost` once they are not all there, and the answer cannot be told again."""

    def __init__(self) -> None:
        self.lost = False
        self._chars = 0

    def takes(self, value: str) -> bool:
        """Say whether a text may be kept."""
        self._chars += len(value)
        self.lost = self.lost or self._chars > GATHERED_CHARS
        return not self.lost


def index_of(value: Any) -> int | None:
    """Return a number that may be an index, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 100_000 else None


def added(first: Any, second: Any) -> Any:
    """Add up two usages: numbers are added, what else differs is told as the second tells it."""
    if isinstance(first, dict) and isinstance(second, dict):
        return {key: added(first.get(key), second.get(key)) for key in {**first, **second}}
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (first, second))
    if numbers:
        return first + second
    return first if second is None else second


def count(value: Any) -> int:
    """Return a number of tokens, 0 for anything that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def present(value: Document) -> Document:
    """Return an object without the fields that hold null: requests take no null where answers give one."""
    return {key: inner for key, inner in value.items() if inner is not None}
