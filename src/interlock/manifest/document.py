"""Files that people write (plans, toolkits): YAML or JSON, read into plain values that remember where they stood.

Anchors, aliases, tags and keys that stand twice are mistakes here, for each lets a file say something else than it
shows.
"""

import re
from collections.abc import Iterable
from dataclasses import field
from typing import Any

from interlock.manifest.canonical import canonical, parse
from interlock.model.errors import InputError
from interlock.model.records import dataclass

Tree = Any
"""A scalar, a list of Trees or a mapping of text to Trees; checked where it is read."""
Path = tuple[str | int, ...]
MAX_LENGTH = 4_000_000
MAX_DEPTH = 40
_WHOLE = r"-?(?:0|[1-9][0-9]{0,99})"
_FRACTION = r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,17}(?:e[+-][0-9]{1,3})?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file's values. Takes: `positions`, 1-based line and column by path; none in a file of JSON."""

    filename: str
    values: dict[str, Tree]
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def mistake(self, path: Path, message: str, hint: str) -> InputError:
        """Return the error to raise for what stands at a path."""
        here = path
        while here and here not in self.positions:
            here = here[:-1]
        line, column = self.positions.get(here, (0, 0))
        where = f"{self.filename}:{line}:{column}" if line else self.filename
        inside = f"{dotted(path)}: " if path else ""
        return InputError(f"{where}: {inside}{message}", hint=hint)

    def at(self, path: Path) -> Tree:
        """Return the value at a path that is there."""
        here: Tree = self.values
        for part in path:
            here = here[part]
        return here

    def section(self, path: Path, known: Iterable[str], example: str) -> dict[str, Tree]:
        """Return a mapping with known keys. Raises: InputError."""
        known = tuple(known)
        value = self.at(path)
        if not isinstance(value, dict):
            raise self.mistake(path, "it must be a mapping", f"write it as in `{example}`")
        for key in value:
            if key not in known:
                raise self.mistake((*path, key), f"unknown key `{key}`", near(key, known))
        return value

    def entries(self, path: Path, example: str) -> list[tuple[Path, Tree]]:
        """Return a list's entries with their paths. Raises: InputError."""
        value = self.at(path)
        if not isinstance(value, list):
            raise self.mistake(path, "it must be a list", f"write it as in `{example}`")
        return [((*path, index), entry) for index, entry in enumerate(value)]

    def text(self, path: Path, example: str, *, empty: bool = False) -> str:
        """Return a text. Raises: InputError, where it is none or empty."""
        value = self.at(path)
        if not isinstance(value, str) or not (value or empty):
            raise self.mistake(path, "it must be text", f"write it as in `{example}`")
        return value

    def texts(self, path: Path, example: str) -> tuple[str, ...]:
        """Return a list of texts; a single text counts as one. Raises: InputError."""
        if isinstance(self.at(path), str):
            return (self.text(path, example),)
        return tuple(self.text(where, example) for where, _ in self.entries(path, example))

    def count(self, path: Path, example: str, *, least: int = 1, most: int = 2**53) -> int:
        """Return a whole number within bounds. Raises: InputError."""
        value = self.at(path)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.mistake(
                path, f"it must be a whole number from {least} to {most}", f"write it as in `{example}`"
            )
        return value

    def flag(self, path: Path, example: str) -> bool:
        """Return true or false. Raises: InputError."""
        value = self.at(path)
        if not isinstance(value, bool):
            raise self.mistake(path, "it must be true or false", f"write it as in `{example}`")
        return value

    def json(self, path: Path) -> str:
        """Return what stands at a path as canonical JSON. Raises: InputError."""
        try:
            return canonical(self.at(path))
        except InputError as error:
            raise self.mistake(path, error.message, error.hint) from error


def near(word: str, known: Iterable[str]) -> str:
    """Return a hint: the known word that is closest, else all of them."""
    from difflib import get_close_matches

    known = list(known)
    found = get_close_matches(word, known, 1, 0.5)
    return f"did you mean `{found[0]}`?" if found else f"use one of: {', '.join(known[:40])}"


def dotted(path: Path) -> str:
    """Return a path as the user reads it."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def read_document(text: str, *, filename: str) -> Document:
    """Read a file of JSON or YAML, a mapping. Raises: InputError, with line and column where it is YAML."""
    if len(text) > MAX_LENGTH:
        raise InputError(f"{filename}: it is longer than {MAX_LENGTH} characters", hint="shorten it")
    if text.lstrip()[:1] == "{":
        try:
            values = parse(text)
        except InputError:
            values = None
        if isinstance(values, dict):
            return Document(filename=filename, values=values)
    return _read_yaml(text, filename)


def _read_yaml(text: str, filename: str) -> Document:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events = list(yaml.parse(text, Loader=loader))
    except yaml.reader.ReaderError:
        raise InputError(
            f"{filename}: it holds a character that YAML does not allow",
            hint="save the file as UTF-8 text without control characters",
        ) from None
    except yaml.MarkedYAMLError as failure:
        mark = failure.problem_mark or failure.context_mark
        where = f"{filename}:{mark.line + 1}:{mark.column + 1}" if mark else filename
        raise InputError(
            f"{where}: neither YAML nor JSON: {failure.problem or failure.context or 'it cannot be read'}",
            hint="check the indentation (spaces, no tabs); put quotes around text with `:`, `#`, `*` or `{`",
        ) from None
    starts = [index for index, event in enumerate(events) if type(event).__name__ == "DocumentStartEvent"]
    builder = _Builder(events, filename)
    if len(starts) > 1:
        raise builder.wrong(events[starts[1]], "a second document begins here", "keep one to a file")
    tree = builder.value(starts[0] + 1, ())[0] if starts else None
    if not isinstance(tree, dict):
        raise InputError(f"{filename}: it is no mapping of keys", hint="begin with `interlock: plan/1`")
    return Document(filename=filename, values=tree, positions=builder.positions)


class _Builder:
    def __init__(self, events: list[Any], filename: str) -> None:
        self._events = events
        self._filename = filename
        self.positions: dict[Path, tuple[int, int]] = {}

    def wrong(self, event: Any, message: str, hint: str) -> InputError:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        return InputError(f"{self._filename}:{line}:{column}: {message}", hint=hint)

    def value(self, index: int, path: Path) -> tuple[Tree, int]:
        event = self._events[index]
        kind = type(event).__name__
        if kind == "AliasEvent" or getattr(event, "anchor", None):
            raise self.wrong(event, "anchors and aliases are not read", "write the value out")
        if getattr(event, "tag", None):
            raise self.wrong(event, "tags are not read", f"leave `{event.tag}` out")
        if len(path) > MAX_DEPTH:
            raise self.wrong(event, f"nested deeper than {MAX_DEPTH}", "write it with fewer levels")
        self.positions.setdefault(path, (event.start_mark.line + 1, event.start_mark.column + 1))
        if kind == "ScalarEvent":
            return (event.value if event.style else _plain(event.value)), index + 1
        if kind == "SequenceStartEvent":
            return self._list(index + 1, path)
        return self._mapping(index + 1, path)

    def _list(self, index: int, path: Path) -> tuple[Tree, int]:
        items: list[Tree] = []
        while type(self._events[index]).__name__ != "SequenceEndEvent":
            item, index = self.value(index, (*path, len(items)))
            items.append(item)
        return items, index + 1

    def _mapping(self, index: int, path: Path) -> tuple[Tree, int]:
        mapping: dict[str, Tree] = {}
        while type(self._events[index]).__name__ != "MappingEndEvent":
            name = self._events[index]
            if type(name).__name__ != "ScalarEvent" or name.anchor or name.tag:
                raise self.wrong(name, "a key must be plain text", "write `key: value`")
            if name.value in mapping:
                raise self.wrong(name, f"the key `{name.value}` stands here twice", "keep one of them")
            self.positions[(*path, name.value)] = (name.start_mark.line + 1, name.start_mark.column + 1)
            mapping[name.value], index = self.value(index + 1, (*path, name.value))
        return mapping, index + 1


def _plain(text: str) -> str | int | float | bool | None:
    if text in {"true", "false"}:
        return text == "true"
    if text in {"", "null", "~"}:
        return None
    if re.fullmatch(_WHOLE, text):
        return int(text)
    return float(text) if re.fullmatch(_FRACTION, text) else text
