"""JSON as editors write it, with comments and commas at the end, read together with where each value stands.

Source: RFC 8259; the comments are those of VS Code's, Gemini CLI's and opencode's settings.
"""

from __future__ import annotations

import json
import re

from interlock.mcp.importing.written import MAX_DEPTH, Member, UnreadableError, Written

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")


def read_json(text: str) -> Written:
    """Return the document. Raises: UnreadableError."""
    reader = _Reader(text)
    reader.skip()
    value = reader.value(0)
    reader.skip()
    if reader.at != len(text):
        raise UnreadableError("something follows the document's end", reader.at)
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def value(self, depth: int) -> Written:
        if depth > MAX_DEPTH:
            raise UnreadableError(f"it is nested more than {MAX_DEPTH} deep", self.at)
        match self.text[self.at : self.at + 1]:
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case '"':
                return self._string()
        found = _SCALAR.match(self.text, self.at)
        if found is None:
            raise UnreadableError("a value is missing", self.at)
        return self._loaded(found)

    def _string(self) -> Written:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise UnreadableError("a key or text is missing, or does not end", self.at)
        return self._loaded(found)

    def _loaded(self, found: re.Match[str]) -> Written:
        try:
            data = json.loads(found[0])
        except ValueError as error:
            raise UnreadableError("a value is not of JSON", self.at) from error
        self.at = found.end()
        return Written(data=data, start=found.start(), end=found.end())

    def _object(self, depth: int) -> Written:
        start = self.at
        members: list[Member] = []
        self.at += 1
        while not self._ends("}", more=bool(members)):
            key = self._string()
            self.skip()
            self._take(":")
            self.skip()
            members.append(
                Member(key=key.data, start=key.start, key_end=key.end, value=self.value(depth + 1))
            )
        data = {one.key: one.value.data for one in members}
        return Written(data=data, start=start, end=self.at, members=tuple(members))

    def _list(self, depth: int) -> Written:
        start = self.at
        items: list[Written] = []
        self.at += 1
        while not self._ends("]", more=bool(items)):
            items.append(self.value(depth + 1))
        return Written(data=[one.data for one in items], start=start, end=self.at, items=tuple(items))

    def _ends(self, close: str, *, more: bool) -> bool:
        """Take the comma after what was read, if any, and the end, if it is there."""
        self.skip()
        if more and self.text.startswith(",", self.at):
            self.at += 1
            self.skip()
            more = False
        if self.text.startswith(close, self.at):
            self.at += 1
            return True
        if more:
            raise UnreadableError(f"`,` or `{close}` is missing", self.at)
        return False

    def _take(self, char: str) -> None:
        if not self.text.startswith(char, self.at):
            raise UnreadableError(f"`{char}` is missing", self.at)
        self.at += 1
