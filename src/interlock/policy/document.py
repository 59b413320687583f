"""A policy file's YAML, read into plain values that remember where they stood.

A small part of YAML 1.2: mappings, lists, text, whole numbers, `true`, `false` and `null`. Anchors, aliases,
tags and duplicate keys are mistakes here, for each lets a file say something else than it shows.
"""

import re
from dataclasses import field
from typing import Any

from interlock.model.errors import PolicyError
from interlock.model.records import dataclass

Scalar = str | int | bool | None
Tree = Any
"""A Scalar, a list of Trees or a mapping of text to Trees; checked where it is read."""

Path = tuple[str | int, ...]
MAX_TEXT_LENGTH = 1_000_000
MAX_DEPTH = 8
_WHOLE = r"-?(?:0|[1-9][0-9]{0,17})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A policy file's values.

    Takes: `positions`, 1-based line and column of each value and, under the path with `"@"` before its
    last part, of each key; `styles`, how a text was written (`|`, `>`, `'`, `"`, `""`).
    """

    filename: str
    values: dict[str, Tree]
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    styles: dict[Path, str] = field(default_factory=dict)
    text: str = ""

    def mistake(self, path: Path, message: str, *, hint: str = "", key: bool = False) -> PolicyError:
        """Return the error to raise for the value (or the key) at a path."""
        spot = (*path[:-1], "@", path[-1]) if key and path else path
        line, column = self.positions.get(spot, self.positions.get(path, (0, 0)))
        return PolicyError(message, filename=self.filename, line=line, column=column, hint=hint)


def read_document(text: str, *, filename: str) -> Document:
    """Read a policy file.

    Raises: PolicyError, with line, column and the fix.
    """
    import yaml

    if len(text) > MAX_TEXT_LENGTH:
        raise PolicyError(
            f"the policy is longer than {MAX_TEXT_LENGTH} characters", filename=filename, hint="shorten it"
        )
    try:
        return _build(list(yaml.parse(text, Loader=_loader())), text, filename)
    except yaml.reader.ReaderError as failure:
        at = failure.position if isinstance(failure.position, int) else 0
        line = text.count("\n", 0, at) + 1
        raise PolicyError(
            "the policy holds a character that YAML does not allow",
            filename=filename,
            line=line,
            column=at - (text.rfind("\n", 0, at) + 1) + 1,
            hint="save the file as UTF-8 text without control characters",
        ) from None
    except yaml.MarkedYAMLError as failure:
        mark = failure.problem_mark or failure.context_mark
        raise PolicyError(
            f"not YAML: {failure.problem or failure.context or 'it cannot be read'}",
            filename=filename,
            line=mark.line + 1 if mark else 1,
            column=mark.column + 1 if mark else 1,
            hint="check the indentation (spaces, no tabs); put quotes around text with `:`, `#`, `*` or `{`",
        ) from None


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _build(events: list[Any], text: str, filename: str) -> Document:
    positions: dict[Path, tuple[int, int]] = {}
    styles: dict[Path, str] = {}

    def spot(event: Any) -> tuple[int, int]:
        return event.start_mark.line + 1, event.start_mark.column + 1

    def wrong(event: Any, message: str, hint: str) -> PolicyError:
        line, column = spot(event)
        return PolicyError(message, filename=filename, line=line, column=column, hint=hint)

    def value(index: int, path: Path) -> tuple[Tree, int]:
        event = events[index]
        kind = type(event).__name__
        if kind == "AliasEvent" or getattr(event, "anchor", None):
            raise wrong(event, "anchors and aliases are not read", "write the value out")
        if getattr(event, "tag", None) and kind != "ScalarEvent":
            raise wrong(event, "tags are not read", f"leave `{event.tag}` out")
        if len(path) > MAX_DEPTH:
            raise wrong(event, f"nested deeper than {MAX_DEPTH}", "a policy needs no such depth")
        positions.setdefault(path, spot(event))
        if kind == "ScalarEvent":
            if event.tag and not event.implicit[1]:
                raise wrong(event, "tags are not read", f"leave `{event.tag}` out")
            styles[path] = event.style or ""
            return (_plain(event.value) if not event.style else event.value), index + 1
        index += 1
        if kind == "SequenceStartEvent":
            items: list[Tree] = []
            while type(events[index]).__name__ != "SequenceEndEvent":
                item, index = value(index, (*path, len(items)))
                items.append(item)
            return items, index + 1
        mapping: dict[str, Tree] = {}
        while type(events[index]).__name__ != "MappingEndEvent":
            name = events[index]
            if type(name).__name__ != "ScalarEvent" or name.anchor:
                raise wrong(name, "a key must be plain text", "write `key: value`")
            if name.value in mapping:
                raise wrong(name, f"the key `{name.value}` stands here twice", "keep one of them")
            positions[(*path, "@", name.value)] = spot(name)
            mapping[name.value], index = value(index + 1, (*path, name.value))
        return mapping, index + 1

    documents = [index for index, event in enumerate(events) if type(event).__name__ == "DocumentStartEvent"]
    if not documents:
        return Document(filename=filename, values={}, text=text)
    if len(documents) > 1:
        raise wrong(events[documents[1]], "a second document begins here", "keep one policy to a file")
    tree, _ = value(documents[0] + 1, ())
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        raise wrong(events[documents[0] + 1], "a policy is a mapping of keys", "begin with `version: 1`")
    return Document(filename=filename, values=tree, positions=positions, styles=styles, text=text)


def _plain(text: str) -> Scalar:
    if text in {"true", "false"}:
        return text == "true"
    if text in {"", "null", "~"}:
        return None
    if re.fullmatch(_WHOLE, text):
        return int(text)
    return text
