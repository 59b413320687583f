"""TOML read together with where each key and value stands; what the values are, `tomllib` says.

Source: TOML 1.0.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from interlock.mcp.importing.written import MAX_DEPTH, Member, UnreadableError, Written
from interlock.model.records import changed, dataclass

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^\s,\]}#]+(?: [0-9][^\s,\]}#]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A `[table]`. Takes: `start` and `end`, of what stands in the brackets."""

    path: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A `key = value`. Takes: `path`, of the table and the key together; `member`, whose key is the last part."""

    path: tuple[str, ...]
    member: Member


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlText:
    """A document: what it says, and its headers and lines in the order of the text."""

    data: dict[str, Any]
    headers: tuple[Header, ...]
    lines: tuple[Line, ...]


def read_toml(text: str) -> TomlText:
    """Return the document. Raises: UnreadableError."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnreadableError("it is no TOML", 0) from error
    reader = _Reader(text)
    headers: list[Header] = []
    lines: list[Line] = []
    table: tuple[str, ...] = ()
    while not reader.is_done():
        if (header := reader.header()) is not None:
            headers.append(header)
            table = header.path
        else:
            path, member = reader.line()
            lines.append(Line(path=(*table, *path), member=member))
    return TomlText(data=data, headers=tuple(headers), lines=tuple(lines))


class _Reader:
    """Holds: the document is TOML already, so that only places have to be found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def is_done(self) -> bool:
        self._skip(_SPACE)
        return self.at == len(self.text)

    def header(self) -> Header | None:
        if not self.text.startswith("[", self.at):
            return None
        closing = "]]" if self.text.startswith("[[", self.at) else "]"
        self.at += len(closing)
        self._skip(_BLANK)
        start = self.at
        path, _last, end = self._key()
        self._skip(_BLANK)
        self._take(closing)
        return Header(path=path, start=start, end=end)

    def line(self, depth: int = 0) -> tuple[tuple[str, ...], Member]:
        start = self.at
        path, _last, end = self._key()
        self._skip(_BLANK)
        self._take("=")
        self._skip(_BLANK)
        return path, Member(key=path[-1], start=start, key_end=end, value=self._value(depth))

    def _key(self) -> tuple[tuple[str, ...], int, int]:
        parts: list[str] = []
        while True:
            found = self._match(_KEY, "a key is missing")
            word = found[0]
            parts.append(tomllib.loads(f"k = {word}")["k"] if word[0] in "\"'" else word)
            end = self.at
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                self.at = end
                return tuple(parts), found.start(), end
            self.at += 1
            self._skip(_BLANK)

    def _value(self, depth: int) -> Written:
        if depth > MAX_DEPTH:
            raise UnreadableError(f"it is nested more than {MAX_DEPTH} deep", self.at)
        match self.text[self.at : self.at + 1]:
            case "[":
                return self._list(depth)
            case "{":
                return self._inline(depth)
            case '"' | "'":
                found = self._match(_STRING, "a text does not end")
            case _:
                found = self._match(_SCALAR, "a value is missing")
        return self._loaded(found.start(), self.at)

    def _list(self, depth: int) -> Written:
        start = self.at
        self.at += 1
        items: list[Written] = []
        while True:
            self._skip(_SPACE)
            if self.text.startswith("]", self.at):
                self.at += 1
                whole = self._loaded(start, self.at)
                return Written(data=whole.data, start=start, end=self.at, items=tuple(items))
            if items:
                self._take(",")
                self._skip(_SPACE)
                if self.text.startswith("]", self.at):
                    continue
            items.append(self._value(depth + 1))

    def _inline(self, depth: int) -> Written:
        start = self.at
        self.at += 1
        members: list[Member] = []
        while True:
            self._skip(_SPACE)
            if self.text.startswith("}", self.at):
                self.at += 1
                whole = self._loaded(start, self.at)
                return Written(data=whole.data, start=start, end=self.at, members=tuple(members))
            if members:
                self._take(",")
                self._skip(_SPACE)
            path, member = self.line(depth + 1)
            # a dotted key is nobody's: an edit that needed it would not come out as wanted, and is not made
            members.append(changed(member, key=".".join(path)))

    def _loaded(self, start: int, end: int) -> Written:
        try:
            data = tomllib.loads(f"k = {self.text[start:end]}")["k"]
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise UnreadableError("a value is not of TOML", start) from error
        return Written(data=data, start=start, end=end)

    def _skip(self, space: re.Pattern[str]) -> None:
        found = space.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def _match(self, wanted: re.Pattern[str], missing: str) -> re.Match[str]:
        found = wanted.match(self.text, self.at)
        if found is None:
            raise UnreadableError(missing, self.at)
        self.at = found.end()
        return found

    def _take(self, word: str) -> None:
        if not self.text.startswith(word, self.at):
            raise UnreadableError(f"`{word}` is missing", self.at)
        self.at += len(word)
