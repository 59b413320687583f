"""Levels of fields: of a structured file only the leaves that are named have the level, the rest has that of its place.

Read widely, as all that narrows: whatever the case, with all that lies below, `*` for any one key, brackets left out.
What cannot be read as a structure counts whole.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from interlock.model.events import FileRead
from interlock.model.labels import Confidentiality
from interlock.model.records import dataclass
from interlock.policy.sensitivity.folding import fold
from interlock.policy.structured import read_leaves
from interlock.policy.tools.leaves import Leaf

ANY_KEY = "*"
Held = tuple[Confidentiality, tuple[str, ...]]
"""A level, and the fields that alone have it; none where all may have it."""
Declared = tuple[Held, ...]
MOST_FIELDS = 64
"""Of a file with more of them it is not told which ones hold something."""
_COMMENTED = (".yaml", ".yml", ".toml")
_BOM = "\ufeff"
_NO_NAME = re.compile(r"[;\t|@]|\d{5}")
"""What the first row of a table holds where something else than commas parts it, or where it is data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a read brought of one level.

    Takes: `text`, the whole, None where it is not known; `leaves`, key and text of the fields that alone count.
    """

    level: Confidentiality
    text: str | None
    leaves: tuple[tuple[str, str], ...] = ()


def parts_of(read: FileRead, whole: Confidentiality, declared: Declared) -> tuple[Part, ...]:
    """Return what of a read is sensitive, at most one part a level. Takes: `whole`, the level of all of it."""
    return parts_in(read.place.path, read.text, whole, declared)


def parts_in(path: str, text: str | None, whole: Confidentiality, declared: Declared) -> tuple[Part, ...]:
    """Return what of a text is sensitive, at most one part a level. Takes: `path`, whose ending says its structure."""
    above = tuple([one for one in declared if one[0] > whole])
    if above:
        return _parts(path, text, whole, above)
    return (Part(level=whole, text=text),) if whole > Confidentiality.PUBLIC else ()


@lru_cache(maxsize=16)
def _parts(path: str, text: str | None, whole: Confidentiality, above: Declared) -> tuple[Part, ...]:
    # One read is asked about several times: for its label, its marks, and the places that it stands for.
    leaves = None if text is None else _leaves(path, text)
    if leaves is None:
        return (Part(level=max(level for level, _ in above), text=text),)
    found: dict[Confidentiality, list[tuple[str, str]]] = {}
    patterns = [(level, [pattern_of(field) for field in fields]) for level, fields in above]
    for leaf in leaves:
        keys = keys_of(leaf)
        level = max(
            (level for level, of in patterns if any(covers(one, keys) for one in of)),
            default=Confidentiality.PUBLIC,
        )
        if level:
            found.setdefault(level, []).append((keys[-1] if keys else "", leaf.text))
    parts = [Part(level=level, text=None, leaves=tuple(held)) for level, held in found.items()]
    if whole > Confidentiality.PUBLIC:
        parts.append(Part(level=whole, text=text))
    return tuple(parts)


def _leaves(path: str, text: str) -> tuple[Leaf, ...] | None:
    """Return all leaves, None where it is not sure what a reader makes of the file."""
    text = text.removeprefix(_BOM)
    if path.lower().endswith(".csv"):
        heading = text.partition("\n")[0]
        if _NO_NAME.search(heading) or not all(any(map(str.isalpha, cell)) for cell in heading.split(",")):
            return None
    return read_leaves(path, text)


def keys_of(leaf: Leaf) -> tuple[str, ...]:
    """Return the keys that lead to a leaf, as they are compared: as they look, without brackets and indices.

    Holds: a key of which nothing is left is left out, so that it hides nothing.
    """
    keys: list[str] = []
    at = 0
    for step in leaf.pointer.split("/")[1:]:
        if leaf.field.startswith("[]", at) and step.isdigit():
            at += 2
            continue
        key = step.replace("~1", "/").replace("~0", "~")
        at += len(key) + (at > 0)
        keys.append(_plain(key))
    return tuple(key for key in keys if key)


def pattern_of(field: str) -> tuple[str, ...]:
    """Return a declared field as keys. Holds: one that names no key at all is every leaf."""
    return tuple(part for part in _plain(field).split(".") if part)


def _plain(key: str) -> str:
    return fold(key).replace("[]", "").strip()


def covers(pattern: tuple[str, ...], keys: tuple[str, ...]) -> bool:
    """Say whether a declared field is one of these keys with all that they lead to, or lies above it.

    Holds: a key that holds dots may be written as several.
    """
    if not pattern:
        return True
    if not keys:
        return False
    if pattern[0] == ANY_KEY and covers(pattern[1:], keys[1:]):
        return True
    count = keys[0].count(".") + 1
    return ".".join(pattern[:count]) == keys[0] and covers(pattern[count:], keys[1:])


def combined(*held: Held) -> Held:
    """Return the level of several together, and the fields that alone have it."""
    sensitive = [(level, fields) for level, fields in held if level > Confidentiality.PUBLIC]
    level = max((level for level, _ in sensitive), default=Confidentiality.PUBLIC)
    if not all(fields for _, fields in sensitive):
        return level, ()
    return level, tuple(dict.fromkeys(field for _, fields in sensitive for field in fields))


def fields_holding(path: str, text: str, level_in: Callable[[str], Confidentiality]) -> tuple[str, ...]:
    """Return the fields of a structured file that alone hold something sensitive, none where that is not sure.

    Takes: `level_in`, which says what level a text holds.
    """
    leaves = _leaves(path, text)
    if not leaves or ("#" in text and path.lower().endswith(_COMMENTED)):
        return ()
    groups: dict[tuple[str, ...], list[str]] = {}
    for leaf in leaves:
        groups.setdefault(keys_of(leaf), []).append(leaf.text)
    if len(groups) > MOST_FIELDS:
        return ()
    held = {keys: ".".join(keys) for keys, texts in groups.items() if level_in("\n".join(texts))}
    rest = [text for keys, texts in groups.items() if keys not in held for text in texts]
    rest += dict.fromkeys(key for keys in groups for key in keys)
    named = all(name and covers(pattern_of(name), keys) for keys, name in held.items())
    # What stands in no leaf by itself may stand in several together.
    if not held or not named or level_in("\n".join(rest)):
        return ()
    return tuple(held.values())
