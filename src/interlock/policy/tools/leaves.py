"""A JSON value as its leaves, each with the name of its field and its JSON pointer; bounded, and total on any text."""

import json
from collections.abc import Iterator
from functools import lru_cache

from interlock.model.records import dataclass

MAX_LENGTH = 4_000_000
MAX_LEAVES = 20_000
MAX_DEPTH = 32
ENTRY = "*."
NAMES = "{}"
"""Behind a field: the names of its entries, see `entry_names`."""
NAME_MARK = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A value in a structure. Takes: `field`, `recipients[]`; `pointer` (RFC 6901); `text`, as canonical text."""

    field: str
    pointer: str
    text: str


@lru_cache(maxsize=4)
def leaves_of(text: str, *, whole: bool = False) -> tuple[Leaf, ...] | None:
    """Return the leaves of a JSON text, None where it is none, too large or too deep.

    Takes: `whole`, whether it must be an object. Holds: null and empty text are no leaves.
    """
    if len(text) > MAX_LENGTH:
        return None
    try:
        tree = json.loads(text)
        if whole and not isinstance(tree, dict):
            return None
        found: list[Leaf] = []
        for leaf in walk(tree):
            found.append(leaf)
            if len(found) > MAX_LEAVES:
                return None
    except (ValueError, RecursionError):
        return None
    return tuple(found)


def walk(tree: object) -> Iterator[Leaf]:
    """Yield the leaves of parsed values. Raises: ValueError, where they lie too deep."""
    return _walk(tree, "", "", 0)


def _walk(tree: object, field: str, pointer: str, depth: int) -> Iterator[Leaf]:
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(tree, dict):
        for key, value in tree.items():
            step = key.replace("~", "~0").replace("/", "~1")
            yield from _walk(value, f"{field}.{key}" if field else key, f"{pointer}/{step}", depth + 1)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from _walk(value, f"{field}[]", f"{pointer}/{index}", depth + 1)
    elif tree is not None and tree != "":
        text = tree if isinstance(tree, str) else _written(tree)
        yield Leaf(field=field, pointer=pointer, text=text)


def _written(value: object) -> str:
    # TOML has dates as well.
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)


def record_of(leaf: Leaf) -> str:
    """Return the pointer of the record that a leaf lies in: the nearest object, `""` for the whole.

    Holds: the name of an entry lies where its mapping does, as the element of a list does.
    """
    pointer = leaf.pointer
    if pointer.endswith(NAME_MARK):
        pointer = pointer.rpartition("/")[0]
    while pointer and pointer.rpartition("/")[2].isdigit():
        pointer = pointer.rpartition("/")[0]
    return pointer.rpartition("/")[0]


def declared_type(fields: tuple[tuple[str, str], ...], leaf: Leaf) -> str:
    """Return the type that a policy gives to a field, `""` for none; a list's own brackets may be left out.

    Holds: `*.id` is the field `id` of every entry of a mapping, whatever the entries are called.
    """
    here = plain_field(leaf.field)
    return next((kind for name, kind in fields if plain_field(name) == here or _in_entry(name, leaf)), "")


def _in_entry(name: str, leaf: Leaf) -> bool:
    if not name.startswith(ENTRY):
        return False
    rest = name.removeprefix(ENTRY)
    # An entry's name may itself hold dots: how deep the leaf lies tells them from the field's.
    deep = 2 + rest.count(".") + rest.count("[]")
    return (
        leaf.field.endswith(f".{rest}")
        and leaf.pointer.count("/") == deep
        and not leaf.field.startswith("[]")
    )


def is_field(fields: tuple[str, ...], leaf: Leaf) -> bool:
    """Say whether a leaf is of one of these fields; a list's own brackets may be left out."""
    here = plain_field(leaf.field)
    return any(plain_field(name) == here for name in fields)


def plain_field(field: str) -> str:
    """Return the name of a field without the brackets of the list that holds its record."""
    return field.removeprefix("[]").removeprefix(".")
