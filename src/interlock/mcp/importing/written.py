"""A value of a settings file and where it stands in the text, so that a part can be changed and the rest stay."""

from __future__ import annotations

from typing import Any

from interlock.model.records import dataclass

MAX_DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A value as it is written. Takes: `start` and `end`, in characters; `members` of an object, `items` of a list."""

    data: Any
    start: int
    end: int
    members: tuple[Member, ...] = ()
    items: tuple[Written, ...] = ()

    def find(self, key: str) -> Written | None:
        """Return an object's value under a key, None where it has none."""
        return next((one.value for one in self.members if one.key == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A key and its value. Takes: `start` and `key_end`, of the key as written."""

    key: str
    start: int
    key_end: int
    value: Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Text that comes in the place of other text."""

    start: int
    end: int
    text: str


class UnreadableError(Exception):
    """The text is not of the format. Takes: what is wrong, and `at`, in characters."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.what = what
        self.at = at


def edited(text: str, edits: list[Edit]) -> str:
    """Return a text with edits made; none of them overlap."""
    for edit in sorted(edits, key=lambda one: (one.start, one.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text
