"""Globs over places: how a policy names files.

What widens trust is read narrowly (anchored, case matters); what narrows it is read widely (a name without
a slash counts in every folder, a folder counts with all below it, case is ignored).
"""

import re
from collections.abc import Iterable
from functools import lru_cache

MAX_GLOB_LENGTH = 512
_MAX_DEEP = 2
_DEEP = "(?:[^/]+/)*"


class GlobError(ValueError):
    """A glob that cannot be read; its text says why and what to write."""


def check_glob(glob: str) -> None:
    """Read a glob and forget it.

    Raises: GlobError, with the reason.
    """
    if not glob:
        raise GlobError("the glob is empty")
    if len(glob) > MAX_GLOB_LENGTH:
        raise GlobError(f"the glob is longer than {MAX_GLOB_LENGTH} characters")
    if not glob.isprintable():
        raise GlobError("the glob holds a control character; write a byte of a file name as `\\xNN`")
    if glob.startswith(("/", "~")):
        raise GlobError(f"`{glob}` is not relative; globs are relative to a root such as the workspace")
    parts = glob.split("/")
    if any(part in {"", ".", ".."} for part in parts[:-1]) or parts[-1] in {".", ".."}:
        raise GlobError(f"`{glob}` is not in normal form; leave out empty parts, `.` and `..`")
    try:
        re.compile(translate(glob))
    except re.error as failure:
        raise GlobError(f"`{glob}` holds a set of characters that cannot be read") from failure


def translate(glob: str, *, wide: bool = False) -> str:
    """Write a glob as a regular expression for `fullmatch`.

    Takes: `wide`, whether it is read widely (see the module).
    Raises: GlobError.
    """
    folder = glob.endswith("/")
    parts = glob.rstrip("/").split("/")
    if parts.count("**") > _MAX_DEEP:
        raise GlobError(f"`{glob}` uses `**` more than {_MAX_DEEP} times")
    out: list[str] = []
    if wide and len(parts) == 1 and parts[0] != "**":
        out.append(_DEEP)
    last = len(parts) - 1
    for index, part in enumerate(parts):
        if part == "**":
            out.append(".+" if index == last else _DEEP)
            continue
        if "**" in part:
            raise GlobError(f"`{glob}`: `**` must stand alone between slashes")
        out.append(_component(part, glob))
        if index < last:
            out.append("/")
    if wide and parts[-1] != "**":
        out.append("(?:/.*)?")
    elif folder:
        out.append("/.+")
    return "".join(out)


def _component(part: str, glob: str) -> str:
    chunks: list[str] = [""]
    index = 0
    while index < len(part):
        char = part[index]
        index += 1
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
        elif char == "[":
            end = part.find("]", index + (2 if part[index : index + 1] in {"!", "^"} else 1))
            if end < 0:
                raise GlobError(
                    f"`{glob}`: `[` is not closed in the same part; write `[[]` for the character itself"
                )
            inside = part[index:end]
            negated = inside[0] in "!^"
            body = inside[1:] if negated else inside
            body = body.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^").replace("&", "\\&")
            body = body.replace("~", "\\~").replace("|", "\\|").replace("]", "\\]")
            chunks[-1] += f"[^/{body}]" if negated else f"(?!/)[{body}]"
            index = end + 1
        else:
            chunks[-1] += re.escape(char)
    if len(chunks) == 1:
        return chunks[0]
    # Each chunk between two stars is taken at its first place and never given back, so that no glob can
    # make the matcher try exponentially (or even polynomially) many ways.
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1])
    return f"(?=[^/]){chunks[0]}{middle}[^/]*{chunks[-1]}"


@lru_cache(maxsize=256)
def matcher(globs: tuple[str, ...], *, wide: bool) -> re.Pattern[str]:
    """Return one pattern that any of the globs matches; never matches where there is none."""
    if not wide:
        return union((translate(glob) for glob in globs), ignore_case=False)
    # Most wide globs are bare names: they share one walk down the folders.
    names = [glob.rstrip("/") for glob in globs if "/" not in glob.rstrip("/") and "**" not in glob]
    walk = f"{_DEEP}(?:{'|'.join(_component(name, name) for name in names)})(?:/.*)?" if names else "(?!)"
    others = (translate(glob, wide=True) for glob in globs if glob.rstrip("/") not in names)
    return union((walk, *others), ignore_case=True)


def union(patterns: Iterable[str], *, ignore_case: bool) -> re.Pattern[str]:
    """Return one pattern for `fullmatch` that any of these matches."""
    joined = "|".join(f"(?:{pattern})" for pattern in patterns) or "(?!)"
    return re.compile(joined, re.IGNORECASE | re.DOTALL if ignore_case else re.DOTALL)
