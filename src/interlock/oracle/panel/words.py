"""The words of a panel: `all(A, B)`, `any(A, B)`, `majority(A, B, C)`, `first(A, B)`, of any oracles, nested."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from enum import Enum
from typing import NoReturn

from interlock.model.errors import InputError
from interlock.model.records import dataclass


class Kind(Enum):
    """How a panel comes from its members' answers to its own."""

    ALL = "all"
    ANY = "any"
    MAJORITY = "majority"
    FIRST = "first"


CHARACTERS = 4096
MEMBERS = 16
"""The most members of one panel."""
LEAVES = 32
"""The most oracles of a panel with those in it."""
DEPTH = 6

_CALL = re.compile(r"\s*([A-Za-z_-]+)\s*\(")
_PLAIN = re.compile(r"[^(),\"\\]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_ESCAPE = re.compile(r'\\(["\\])')
_EXAMPLE = "write it as in `all(visor:judge, human)`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One oracle of a panel. Takes: `text`, its own words; `at`, where they begin, from 0."""

    text: str
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A panel. Takes: `members`, in order; `at`, where it begins, from 0."""

    kind: Kind
    members: "tuple[Words | Leaf, ...]"
    at: int = 0

    def leaves(self) -> Iterator[Leaf]:
        """Return its oracles and those of the panels in it, in order."""
        for member in self.members:
            if isinstance(member, Leaf):
                yield member
            else:
                yield from member.leaves()


def is_panel(text: str) -> bool:
    """Say whether the words of `--oracle` mean a panel, rightly written or not; one oracle's never begin so."""
    return _CALL.match(text) is not None


def parse(text: str) -> Words:
    """Read a panel's words.

    Raises: InputError, with the place of the mistake and what may be meant.
    """
    if len(text) > CHARACTERS:
        raise InputError(f"`--oracle` has more than {CHARACTERS} characters", hint="name fewer oracles")
    odd = next((at for at, char in enumerate(text) if not char.isprintable()), None)
    if odd is not None:
        _fail(text, odd, "a character that cannot be seen", _EXAMPLE)
    reader = _Reader(text)
    words = reader.panel(1)
    reader.blank()
    if reader.at < len(text):
        _fail(text, reader.at, "something stands after the panel", "take it away")
    _check_leaves(text, words)
    return words


def written(words: Words | Leaf) -> str:
    """Return the words in their one canonical form; `parse` reads them back."""
    if isinstance(words, Words):
        return f"{words.kind.value}({', '.join(written(member) for member in words.members)})"
    text = words.text
    if _PLAIN.fullmatch(text) and text == text.strip():
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def blank(self) -> None:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1

    def panel(self, depth: int) -> Words:
        call = _CALL.match(self.text, self.at)
        assert call is not None
        begin = call.start(1)
        name = call[1]
        kinds = [kind.value for kind in Kind]
        if name not in kinds:
            near = get_close_matches(name.lower(), kinds, n=1, cutoff=0.5)
            guess = f"did you mean `{near[0]}(`? " if near else ""
            _fail(
                self.text, begin, f"there is no panel `{name}(`", f"{guess}the panels are {', '.join(kinds)}"
            )
        if depth > DEPTH:
            _fail(self.text, begin, f"panels stand in panels more than {DEPTH} deep", "make it flatter")
        self.at = call.end()
        members: list[Words | Leaf] = []
        while True:
            members.append(self._member(name, depth))
            self.blank()
            mark = self.text[self.at : self.at + 1]
            if mark not in {",", ")"}:
                what = "the panel does not end" if not mark else f"`{mark}` where `,` or `)` must stand"
                hint = (
                    f"close `{name}(` with `)`"
                    if not mark
                    else 'names with `(`, `)`, `,` or `"` go in quotes'
                )
                _fail(self.text, self.at, what, hint)
            self.at += 1
            if mark == ")":
                break
        return _bounded(self.text, Words(kind=Kind(name), members=tuple(members), at=begin))

    def _member(self, name: str, depth: int) -> Words | Leaf:
        self.blank()
        if _CALL.match(self.text, self.at):
            return self.panel(depth + 1)
        if self.text[self.at : self.at + 1] == '"':
            quoted = _QUOTED.match(self.text, self.at)
            if quoted is None:
                _fail(
                    self.text,
                    self.at,
                    "the quotes do not end",
                    'end it with `"`; write `\\"` for a quote in it',
                )
            leaf = Leaf(text=_ESCAPE.sub(r"\1", quoted[1]), at=self.at)
            self.at = quoted.end()
        else:
            plain = _PLAIN.match(self.text, self.at)
            leaf = Leaf(text=plain[0].strip() if plain else "", at=self.at)
            self.at = plain.end() if plain else self.at
        if not leaf.text.strip():
            _fail(self.text, leaf.at, f"a member of `{name}(` is missing", _EXAMPLE)
        return leaf


def _bounded(text: str, words: Words) -> Words:
    name, count = words.kind.value, len(words.members)
    least = 3 if words.kind is Kind.MAJORITY else 2
    if count < least:
        hint = "of two, `all` says the same" if count == 2 else "name the one oracle without a panel"
        _fail(text, words.at, f"`{name}(` has {count} of at least {least} members", hint)
    if count > MEMBERS:
        _fail(text, words.at, f"`{name}(` has more than {MEMBERS} members", "name fewer")
    return words


def _check_leaves(text: str, words: Words) -> None:
    seen: set[str] = set()
    for count, leaf in enumerate(words.leaves(), start=1):
        if leaf.text in seen:
            _fail(text, leaf.at, f"`{leaf.text}` is named twice", "it would say the same again: name it once")
        if count > LEAVES:
            _fail(text, leaf.at, f"more than {LEAVES} oracles", "name fewer")
        seen.add(leaf.text)


def _fail(text: str, at: int, message: str, hint: str) -> NoReturn:
    raise InputError(f"`--oracle`, character {at + 1} of {len(text)}: {message}", hint=hint)
