"""Globs in plain lines: written from docs/policy.md, "Globs". A place is {"root": …, "path": …}."""

from typing import Any


def part_matches(glob: str, part: str) -> bool:
    """One part of a path: `*` is any run of characters, `?` one character."""
    if not glob:
        return not part
    if glob[0] == "*":
        return any(part_matches(glob[1:], part[skip:]) for skip in range(len(part) + 1))
    return bool(part) and glob[0] in ("?", part[0]) and part_matches(glob[1:], part[1:])


def parts_match(globs: list[str], parts: list[str]) -> bool:
    """Parts of a path: `**` is any number of folders, and at the end at least one more part."""
    if not globs:
        return not parts
    if globs[0] == "**":
        if len(globs) == 1:
            return bool(parts)
        return any(parts_match(globs[1:], parts[skip:]) for skip in range(len(parts) + 1))
    return (
        bool(parts)
        and bool(parts[0])
        and part_matches(globs[0], parts[0])
        and parts_match(globs[1:], parts[1:])
    )


def narrow(glob: str, path: str) -> bool:
    """Anchored, and case matters; a folder (`docs/`) means what is below it."""
    globs = glob.split("/")
    if globs[-1] == "":
        globs = [*globs[:-1], "**"]
    return parts_match(globs, path.split("/"))


def wide(glob: str, path: str) -> bool:
    """Case does not matter; a bare name counts in every folder; a folder counts with all below it."""
    globs = glob.lower().rstrip("/").split("/")
    parts = path.lower().split("/")
    starts = range(len(parts)) if len(globs) == 1 else range(1)
    return any(
        parts_match(globs, parts[start:end]) for start in starts for end in range(start + 1, len(parts) + 1)
    )


def covered(globs: list[dict[str, Any]], place: dict[str, Any], reading: Any) -> bool:
    """`globs` are {"root": …, "glob": …}; the root `*` is every root."""
    return any(g["root"] in ("*", place["root"]) and reading(g["glob"], place["path"]) for g in globs)
