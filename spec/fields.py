"""The fields of a structured file in plain lines: written from docs/policy.md, "Fields of a file".

A file's text becomes its leaves, each with the name of its field. What does not parse, or could be read in two ways,
has none that vouches, and is sensitive as a whole.
"""

import csv
import io
import json
import tomllib
from collections.abc import Callable
from typing import Any

import yaml
from spec.sensitivity import fold

MOST_LEAVES = 20_000
MOST_CHARACTERS = 1 << 20
MOST_CHARACTERS_OF_YAML = 1 << 18
MOST_DOTS_OF_TOML = 200
DEEPEST_YAML = 8


class TwoWays(Exception):
    """Two programs could read this differently."""


def leaves(path: str, text: str) -> list[tuple[str, str]]:
    """Return field and text of each leaf that may vouch, in the order of the file."""
    found = all_leaves(path, text) or []
    return [(named(keys), leaf) for keys, leaf in found if not any(odd(key) for key in keys)]


def all_leaves(path: str, text: str) -> list[tuple[list[str], str]] | None:
    """Return keys and text of each leaf, in the order of the file; None where it cannot be read as a structure."""
    readers: dict[str, Callable[[str], Any]] = {
        "json": json_tree,
        "yaml": yaml_tree,
        "yml": yaml_tree,
        "toml": toml_tree,
        "csv": csv_tree,
    }
    _, dot, ending = path.lower().rpartition(".")
    if not dot or ending not in readers:
        return None
    if len(text) > (MOST_CHARACTERS_OF_YAML if readers[ending] is yaml_tree else MOST_CHARACTERS):
        return None
    try:
        found = walked(readers[ending](text), [])
    except (TwoWays, ValueError, yaml.YAMLError, csv.Error, RecursionError):
        return None
    return found if len(found) <= MOST_LEAVES else None


def lies_in(declared: str, keys: list[str]) -> bool:
    """Whether a leaf lies in a declared field, or below it, read widely: `sensitive` with `fields`."""
    pattern = [part for part in looks(declared).split(".") if part]
    plain = [looks(key) for key in keys]
    return begins(pattern, [key for key in plain if key])


def looks(key: str) -> str:
    return fold(key).replace("[]", "").strip()


def begins(pattern: list[str], keys: list[str]) -> bool:
    if not pattern or not keys:
        return not pattern
    one_key = any(
        ".".join(pattern[:count]) == keys[0] and begins(pattern[count:], keys[1:])
        for count in range(1, len(pattern) + 1)
    )
    return one_key or (pattern[0] == "*" and begins(pattern[1:], keys[1:]))


def odd(key: str) -> bool:
    """A key that reads like a path of keys."""
    return key != "[]" and any(char in ".[]" for char in key)


def named(keys: list[str]) -> str:
    return ".".join(keys).replace(".[]", "[]")


def is_field(declared: list[str], field: str) -> bool:
    """A list at the top needs no brackets."""
    return any(bare(one) == bare(field) for one in declared)


def bare(field: str) -> str:
    return field.removeprefix("[]").removeprefix(".")


def walked(tree: Any, keys: list[str]) -> list[tuple[list[str], str]]:
    if isinstance(tree, dict):
        return [leaf for key, value in tree.items() for leaf in walked(value, [*keys, key])]
    if isinstance(tree, list):
        return [leaf for value in tree for leaf in walked(value, [*keys, "[]"])]
    if tree is None or tree == "":
        return []
    if isinstance(tree, bool):
        return [(keys, "true" if tree else "false")]
    return [(keys, str(tree))]


def json_tree(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise TwoWays
        return dict(pairs)

    def no_number(_name: str) -> Any:
        raise TwoWays

    return json.loads(text, object_pairs_hook=once, parse_constant=no_number)


def toml_tree(text: str) -> Any:
    """A line with more dots would take its reader for ever."""
    if any(line.count(".") > MOST_DOTS_OF_TOML for line in text.splitlines()):
        raise TwoWays
    return tomllib.loads(text)


def csv_tree(text: str) -> Any:
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    heading, rest = (rows[0], rows[1:]) if rows else ([], [])
    if "" in heading or len(set(heading)) != len(heading) or not heading:
        raise TwoWays
    if any(row and len(row) != len(heading) for row in rest):
        raise TwoWays
    return [dict(zip(heading, row, strict=True)) for row in rest if row]


def yaml_tree(text: str) -> Any:
    """Text stays as it is written; a whole number has no other way to be written."""
    for event in yaml.parse(text):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise TwoWays
        if getattr(event, "tag", None):
            raise TwoWays
    top = yaml.compose(text)
    if top is None:
        return {}
    tree = of_node(top, 0)
    if not isinstance(tree, dict | None):
        raise TwoWays
    return tree


def of_node(node: yaml.Node, depth: int) -> Any:
    if depth > DEEPEST_YAML:
        raise TwoWays
    if isinstance(node, yaml.SequenceNode):
        return [of_node(item, depth + 1) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        made: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in made:
                raise TwoWays
            made[key.value] = of_node(value, depth + 1)
        return made
    written = str(node.value)
    quoted = isinstance(node, yaml.ScalarNode) and node.style is not None
    return None if not quoted and written in ("", "null", "~") else written
