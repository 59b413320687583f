"""What of a read is sensitive, in plain lines: written from docs/policy.md, "Sensitive data".

A read is {"place", "text", "detected"}, an entry of `sensitive` {"root", "glob", "level"}, and "content" or "fields".
"""

import re
from typing import Any

from spec import fields
from spec.globs import covered, wide


def level_of(policy: dict[str, Any], read: dict[str, Any]) -> int:
    """The highest of what was read: of all of it, or of a field that it has."""
    whole, declared = levels_of(policy, read)
    leaves = sensitive_leaves(read, whole, declared)
    if leaves is None:
        return max([whole] + [level for level, _ in declared])
    return max([whole] + [level for level, _, _ in leaves])


def levels_of(policy: dict[str, Any], read: dict[str, Any]) -> tuple[int, list[tuple[int, list[str]]]]:
    """The level of all that was read, and those of fields.

    An entry of `sensitive` with a "content" counts where that was found ("detected"), one with "fields" for these.
    """
    here = [one for one in policy["sensitive"] if covered([one], read["place"], wide)]
    whole = [
        one["level"]
        for one in here
        if not one.get("fields") and (not one.get("content") or one["content"] in read.get("detected", []))
    ]
    return max([0, *whole]), [(one["level"], one["fields"]) for one in here if one.get("fields")]


def sensitive_leaves(
    read: dict[str, Any], whole: int, declared: list[tuple[int, list[str]]]
) -> list[tuple[int, str, str]] | None:
    """(level, last key, text) of each leaf that is more than the rest; None where it cannot be told which are."""
    above = [(level, names) for level, names in declared if level > whole]
    if not above:
        return []
    leaves = None if read["text"] is None else clear_leaves(read["place"]["path"], read["text"])
    if leaves is None:
        return None
    found = []
    for keys, text in leaves:
        level = max([n for n, names in above if any(fields.lies_in(one, keys) for one in names)] + [0])
        if level:
            found.append((level, keys[-1] if keys else "", text))
    return found


def clear_leaves(path: str, text: str) -> list[tuple[list[str], str]] | None:
    """All leaves; None also of a table whose first row may be data, or parted by something else than commas."""
    text = text.removeprefix("\ufeff")
    heading = text.split("\n")[0]
    if path.lower().endswith(".csv"):
        if any(mark in heading for mark in ";\t|@") or re.search("[0-9]{5}", heading):
            return None
        if not all(any(char.isalpha() for char in cell) for cell in heading.split(",")):
            return None
    return fields.all_leaves(path, text)
