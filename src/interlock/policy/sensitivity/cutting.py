"""What is cut out of a text, so that it stays what it is: JSON stays JSON of the same shape, a form keeps its fields.

A text is made of cells (the strings and numbers of JSON, the values of a form, or all of it). What the search finds is
cut within its cells; where that is not enough, names are cut too, then whole cells.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator

from interlock.model.records import dataclass
from interlock.policy.sensitivity.locating import Above, Span

NEAR = 24
"""What stands between two cuts of a cell, at most so many characters, goes too: it is of the same data."""
PUT = "[redacted]"
_PUT_QUOTED = f'"{PUT}"'
_PUT_IN_FORM = "%5Bredacted%5D"
_JSON_TOKEN = re.compile(
    r'"(?P<string>(?:[^"\\]|\\.)*)"(?P<colon>\s*:)?|(?P<number>-?[0-9][0-9.eE+\-]*)', re.S
)
_FIELD = re.compile(r"([^&=]*)(?:(=)([^&]*))?(?:&|\Z)")
_BOUNDARY = re.compile(r"(?m)^--[^\r\n]{1,72}\r?$")
_JSON_TYPE = re.compile(r"(?:application|text)/(?:[\w.\-]+\+)?(?:json|x?-?ndjson|jsonl|json-lines)")
_TEXT_TYPE = re.compile(
    r"text/[\w.+\-]+|application/(?:x-www-form-urlencoded|graphql|yaml|x-yaml|xml|toml|javascript|[\w.\-]+\+(?:xml|yaml))"
    r"|multipart/form-data|"
)
_FORM_TYPE = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/"
Same = Callable[[str, str], bool]
"""Whether a text is still built as it was before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A stretch of a text that can be cut without harm to what is around it.

    Takes: `put`, what stands there for a cut; `whole`, whether it is cut whole or not at all; `name`, whether it names
    another one.
    """

    start: int
    end: int
    put: str
    whole: bool = False
    name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch to cut, in characters, and what stands there instead."""

    start: int
    end: int
    put: str


class Uncuttable(Exception):
    """A text cannot be cut so that nothing above the level is left in it. Its text says why."""


def cut_body(above: Above, text: str, content_type: str) -> tuple[Piece, ...]:
    """Return what to cut out of a body.

    Raises: Uncuttable; TooMuch.
    """
    kind = content_type.partition(";")[0].strip().lower()
    documents = _documents(text)
    if documents is not None:
        return _cut(above, text, list(_json_cells(text)), _same_json)
    if _JSON_TYPE.fullmatch(kind):
        raise Uncuttable("its body says that it is JSON, and is none")
    if not _TEXT_TYPE.fullmatch(kind):
        raise Uncuttable(f"a body of the type `{kind}` is not cut")
    if kind == _FORM_TYPE:
        return _cut(above, text, list(_form_cells(text)), _same_form)
    if kind.startswith(_MULTIPART):
        return _cut(above, text, [Cell(start=0, end=len(text), put=PUT)], _same_parts)
    return _cut(above, text, [Cell(start=0, end=len(text), put=PUT)], _any)


def cut_query(above: Above, query: str) -> tuple[Piece, ...]:
    """Return what to cut out of a URL's query. Raises: Uncuttable; TooMuch."""
    return _cut(above, query, list(_form_cells(query)), _same_form)


def cut_out(text: str, pieces: Iterable[Piece]) -> str:
    """Return a text with these pieces replaced."""
    made: list[str] = []
    at = 0
    for piece in pieces:
        made += (text[at : piece.start], piece.put)
        at = piece.end
    return "".join((*made, text[at:]))


def _cut(above: Above, text: str, cells: list[Cell], same: Same) -> tuple[Piece, ...]:
    spans = above.spans(text)
    if not spans:
        return ()
    for names, whole in ((False, False), (True, False), (True, True)):
        pieces = tuple(_pieces(spans, cells, names=names, whole=whole))
        made = cut_out(text, pieces)
        if pieces and same(text, made) and not above.holds(made):
            return pieces
    raise Uncuttable("what would be left of it still holds such data, or would be no such text any more")


def _pieces(spans: list[Span], cells: list[Cell], *, names: bool, whole: bool) -> Iterator[Piece]:
    at = 0
    wanted: dict[int, list[Span]] = {}
    for begin, end in spans:
        while at < len(cells) and cells[at].end <= begin:
            at += 1
        touched = []
        for number in range(at, len(cells)):
            if cells[number].start >= end:
                break
            touched.append(number)
        values = [number for number in touched if not cells[number].name]
        for number in touched if names or not values else values:
            cell = cells[number]
            wanted.setdefault(number, []).append((max(begin, cell.start), min(end, cell.end)))
    for number in sorted(wanted):
        cell = cells[number]
        if whole or cell.whole:
            yield Piece(start=cell.start, end=cell.end, put=cell.put)
            continue
        first, last = wanted[number][0]
        for begin, end in wanted[number][1:]:
            if begin - last > NEAR:
                yield Piece(start=first, end=last, put=cell.put)
                first = begin
            last = max(last, end)
        yield Piece(start=first, end=last, put=cell.put)


# JSON


def _documents(text: str) -> list[object] | None:
    """Return the JSON documents that a text is: one, or one a line; None for any other text."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        return None


def _json_cells(text: str) -> Iterator[Cell]:
    for token in _JSON_TOKEN.finditer(text):
        if token["number"] is not None:
            yield Cell(start=token.start(), end=token.end(), put=_PUT_QUOTED, whole=True)
        elif token["string"]:
            start, end = token.span("string")
            yield Cell(start=start, end=end, put=PUT, name=token["colon"] is not None)


def _same_json(before: str, after: str) -> bool:
    old, new = _documents(before), _documents(after)
    return old is not None and new is not None and _shape(old) == _shape(new)


def _shape(value: object) -> object:
    """Return how a document is built; two names that have become one make it another."""
    if isinstance(value, dict):
        return [_shape(one) for one in value.values()], "members"
    if isinstance(value, list):
        return [_shape(one) for one in value], "elements"
    return value if value is None or isinstance(value, bool) else ""


# forms and queries


def _form_cells(text: str) -> Iterator[Cell]:
    for field in _FIELD.finditer(text):
        if field.end(1) > field.start(1):
            # A field without a value is one: what stands there is data.
            yield Cell(
                start=field.start(1), end=field.end(1), put=_PUT_IN_FORM, name=field.group(2) is not None
            )
        if field.group(3):
            yield Cell(start=field.start(3), end=field.end(3), put=_PUT_IN_FORM)


def _same_form(before: str, after: str) -> bool:
    return ["=" in field for field in before.split("&")] == ["=" in field for field in after.split("&")]


def _same_parts(before: str, after: str) -> bool:
    return _BOUNDARY.findall(before) == _BOUNDARY.findall(after)


def _any(_before: str, _after: str) -> bool:
    return True
