"""The leaves of a structured file, by its ending: JSON, YAML, TOML, CSV. Bounded, and total on any text.

A file that could be read in two ways gives none: a key that stands twice, an anchor, a row that is longer than the
heading.
"""

import json
import re
from collections.abc import Iterator

from interlock.model.errors import PolicyError
from interlock.policy.tools.leaves import MAX_LEAVES, Leaf, walk

ENDINGS = ("json", "yaml", "yml", "toml", "csv")
_MAX_YAML_LENGTH = 262_144
_MAX_LENGTH = 1_048_576
_MOST_DOTS = 200
"""In a line of TOML."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""Other line ends than these are part of a cell to most readers."""


def leaves_of_file(path: str, text: str) -> tuple[Leaf, ...]:
    """Return the leaves of a file's text that may vouch, none where it cannot be read as a structure.

    Holds: a key that reads like a path would pass for another field, so what lies below it is left out.
    """
    return tuple(
        leaf for leaf in read_leaves(path, text) or () if not any(char in ".[]" for char in leaf.pointer)
    )


def read_leaves(path: str, text: str) -> tuple[Leaf, ...] | None:
    """Return all leaves of a file's text, None where it does not parse, has too many, or is of another kind."""
    _, dot, ending = path.lower().rpartition(".")
    if (
        not dot
        or ending not in ENDINGS
        or len(text) > (_MAX_YAML_LENGTH if ending in ("yaml", "yml") else _MAX_LENGTH)
    ):
        return None
    found: list[Leaf] = []
    try:
        for leaf in walk(_tree(ending, text)):
            if len(found) == MAX_LEAVES:
                return None
            found.append(leaf)
    except (ValueError, RecursionError, PolicyError):
        return None
    return tuple(found)


def _tree(ending: str, text: str) -> object:
    if ending == "json":
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refused)
    if ending == "toml":
        import tomllib

        if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
            # A key of n parts takes its reader n * n steps.
            raise ValueError("a key of too many parts")
        return tomllib.loads(text)
    if ending == "csv":
        return list(_rows(text))
    from interlock.policy.document import read_document

    return read_document(text, filename="").values


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _refused(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def _rows(text: str) -> Iterator[dict[str, object]]:
    import csv

    try:
        rows = csv.reader(_LINE.findall(text), strict=True)
        heading = next(rows, [])
        if not heading or not all(heading) or len(set(heading)) != len(heading):
            raise ValueError("the heading names no columns")
        for row in rows:
            if row and len(row) != len(heading):
                raise ValueError("a row has other columns")
            yield dict(zip(heading, row, strict=False))
    except csv.Error as mistake:
        raise ValueError("not CSV") from mistake
