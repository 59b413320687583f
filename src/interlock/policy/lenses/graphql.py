"""The one root field of a GraphQL document whose arguments are all variables; nothing else of it is read.

A document with a fragment at its root, several fields or operations, a directive, an alias, or an argument that is
written into it is none: then its values would have to be had from the document.
Source: GraphQL specification, October 2021, sections 2.1 and 2.2.
"""

import re

from interlock.model.records import dataclass

_TOKEN = re.compile(
    r"[\s,\ufeff]+|#[^\n\r]*|(?P<word>[_A-Za-z][_0-9A-Za-z]*)|(?P<spread>\.\.\.)|(?P<mark>[!$&()\[\]{}:=|@])"
    r'|(?P<number>-?[0-9][0-9.eE+-]*)|(?P<text>"""(?:\\"""|[\s\S])*?"""|"(?:\\.|[^"\\\n\r])*")'
)
_MAX_TOKENS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RootField:
    """The field that an operation asks for. Takes: `variables`, the names of those that its arguments are."""

    name: str
    is_mutation: bool
    variables: frozenset[str]


def only_field(document: str, operation: str) -> RootField | None:
    """Return the one root field of a document. Takes: `operation`, the name that the request gives, `""` for none."""
    words = _tokens(document)
    if words is None or not words:
        return None
    try:
        return _Reader(words).document(operation)
    except (IndexError, ValueError):
        return None


def _tokens(document: str) -> list[str] | None:
    words: list[str] = []
    at = 0
    while at < len(document):
        found = _TOKEN.match(document, at)
        if found is None or len(words) >= _MAX_TOKENS:
            return None
        if found.lastgroup:
            words.append(found.group())
        at = found.end()
    return words


class _Reader:
    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0

    def document(self, operation: str) -> RootField | None:
        kind, name = "query", ""
        if self._next in ("query", "mutation"):
            kind = self._take()
            if self._next not in ("{", "("):
                name = self._take()
            if self._next == "(":
                self._skip("(", ")")
        if operation and operation != name:
            return None
        self._expect("{")
        field = self._word()
        variables = self._arguments() if self._next == "(" else frozenset[str]()
        # What is given back is read by nobody but the agent; an argument within it would steer as well.
        if self._next == "{" and any(word in ("(", "@", "...") for word in self._skip("{", "}")):
            return None
        self._expect("}")
        if self._at != len(self._words):
            return None
        return RootField(name=field, is_mutation=kind == "mutation", variables=variables)

    @property
    def _next(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _take(self) -> str:
        self._at += 1
        return self._words[self._at - 1]

    def _word(self) -> str:
        word = self._take()
        if not re.fullmatch(r"[_A-Za-z][_0-9A-Za-z]*", word):
            raise ValueError(word)
        return word

    def _expect(self, mark: str) -> None:
        if self._take() != mark:
            raise ValueError(mark)

    def _arguments(self) -> frozenset[str]:
        names: set[str] = set()
        self._expect("(")
        while self._next != ")":
            self._word()
            self._expect(":")
            self._expect("$")
            names.add(self._word())
        self._expect(")")
        return frozenset(names)

    def _skip(self, opens: str, closes: str) -> list[str]:
        begin, depth = self._at, 0
        while True:
            word = self._take()
            depth += (word == opens) - (word == closes)
            if depth == 0:
                return self._words[begin : self._at]
