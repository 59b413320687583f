"""Values of a policy file, each read as the kind that is wanted, or a mistake with its place and its fix."""

import re
from collections.abc import Callable, Iterable
from typing import NoReturn

from interlock.model.labels import Confidentiality
from interlock.policy.document import Document, Path, Tree

LEVELS = {level.name.lower(): level for level in Confidentiality}
_SIZE = r"([1-9][0-9]{0,12})\s?(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)?"
_UNITS = {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}


def near(word: str, known: Iterable[str]) -> str:
    """Return a hint: the known word that is closest, else all of them."""
    from difflib import get_close_matches

    known = list(known)
    found = get_close_matches(word, known, 1, 0.5)
    return f"did you mean `{found[0]}`?" if found else f"use one of: {', '.join(known)}"


def known_keys(document: Document, path: Path, known: Iterable[str]) -> None:
    """Check a mapping's keys.

    Raises: PolicyError.
    """
    for key in value_at(document, path):
        if key not in known:
            raise document.mistake((*path, key), f"unknown key `{key}`", hint=near(key, known), key=True)


def value_at(document: Document, path: Path) -> Tree:
    """Return the value at a path that is there."""
    here: Tree = document.values
    for part in path:
        here = here[part]
    return here


def wrong(document: Document, path: Path, wanted: str, hint: str) -> NoReturn:
    """Raise the mistake that a value is not of the wanted kind."""
    raise document.mistake(path, f"`{dotted(path)}` must be {wanted}", hint=hint)


def dotted(path: Path) -> str:
    """Return a path as the user reads it."""
    return ".".join(str(part) for part in path if not isinstance(part, int))


def entries(
    document: Document, path: Path, keys: tuple[str, ...], example: str
) -> Iterable[tuple[Path, dict[str, Tree]]]:
    """Read a list of mappings with known keys; nothing where there is none."""
    given = value_at(document, path[:-1]).get(path[-1])
    if given is None:
        return
    if not isinstance(given, list):
        wrong(document, path, "a list", f"write `- {example}` on a line of its own")
    for index, entry in enumerate(given):
        if not isinstance(entry, dict):
            wrong(document, (*path, index), "a list of mappings", f"write `- {example}`")
        known_keys(document, (*path, index), keys)
        yield (*path, index), entry


def text_at(document: Document, path: Path, example: str) -> str:
    """Read a text that is not empty."""
    value = value_at(document, path)
    if not isinstance(value, str) or not value:
        wrong(document, path, "text", f"write it as in `{example}`")
    return str(value)


def needs(document: Document, path: Path, entry: dict[str, Tree], key: str, example: str) -> None:
    """Check that a mapping holds a key."""
    if key not in entry:
        raise document.mistake(path, f"`{dotted(path)}` wants the key `{key}`", hint=f"write `- {example}`")


def level_at(document: Document, path: Path, entry: dict[str, Tree], key: str) -> Confidentiality:
    """Read a level."""
    given = entry[key]
    if not isinstance(given, str) or given not in LEVELS:
        hint = near(given, LEVELS) if isinstance(given, str) else f"use one of: {', '.join(LEVELS)}"
        raise document.mistake((*path, key), f"`{key}` must be a level", hint=hint)
    return LEVELS[given]


def texts_at(
    document: Document,
    path: Path,
    given: Tree,
    read: Callable[[Document, Path, str], str],
    example: str,
) -> tuple[str, ...]:
    """Read a list of texts, each by `read`; empty where there is none."""
    if given is None:
        return ()
    if not isinstance(given, list):
        wrong(document, path, "a list", f"write it as in `{example}`")
    return tuple(read(document, (*path, index), example) for index in range(len(given)))


def section(document: Document, path: Path, keys: tuple[str, ...], example: str) -> dict[str, Tree]:
    """Read a mapping with known keys; empty where there is none."""
    given: Tree = value_at(document, path[:-1]).get(path[-1])
    if given is None:
        return {}
    if not isinstance(given, dict):
        wrong(document, path, "a mapping", f"write it as in `{example}`")
    known_keys(document, path, keys)
    return dict(given)


def flag_at(document: Document, path: Path) -> bool:
    """Read `true` or `false`."""
    value = value_at(document, path)
    if not isinstance(value, bool):
        wrong(document, path, "true or false", f"write `{path[-1]}: true`")
    return bool(value)


def count_at(document: Document, path: Path) -> int:
    """Read a whole number above 0."""
    value = value_at(document, path)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        wrong(document, path, "a whole number above 0", f"write `{path[-1]}: 1024`")
    return int(value)


def size_at(document: Document, path: Path) -> int:
    """Read a size in bytes, with or without a unit."""
    value = value_at(document, path)
    given = isinstance(value, str | int) and not isinstance(value, bool)
    size = re.fullmatch(_SIZE, str(value)) if given else None
    if size is None:
        wrong(document, path, "a size", f"write `{path[-1]}: 4GiB`")
    return int(size.group(1)) * _UNITS.get(size.group(2) or "", 1)
