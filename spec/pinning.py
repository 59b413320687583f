"""Whether a tool is believed to be what it was described as, in plain lines: slow, and written from docs/lenses.md.

Nothing of `src` imports this, and this imports nothing of `src`. A listing is a dictionary: `server` and `tools`, a
list of `(name, digest)`.
"""

import unicodedata
from typing import Any

ALIKE = {
    "а": "a", "е": "e", "о": "o", "р": "p", "с": "c", "х": "x", "у": "y", "і": "i", "ѕ": "s", "α": "a", "ο": "o",
    "ρ": "p", "ν": "v", "0": "o", "1": "l", "i": "l", "|": "l",
}  # fmt: skip


def look(name: str) -> str:
    """The name as a reader takes it: no case, no white space, no marks, no separators, letters that look alike."""
    parts = []
    for letter in unicodedata.normalize("NFKD", name):
        if (
            unicodedata.category(letter) in ("Mn", "Mc", "Me", "Cf", "Cc", "Zs", "Zl", "Zp")
            or letter in "-_."
        ):
            continue
        for folded in letter.casefold():
            parts.append(ALIKE.get(folded, folded))
    return "".join(parts) or name


def held(listings: list[dict[str, Any]], server: str, tool: str) -> str:
    """Why a call of a tool is asked about after these listings: `altered`, `shadowing` or nothing."""
    digests = [
        digest
        for listing in listings
        if listing["server"] == server
        for name, digest in listing["tools"]
        if name == tool
    ]
    if len(set(digests)) > 1:
        return "altered"
    if not digests or not server:
        return ""
    # Every tool of a server that looks like it, in the order in which it was first listed.
    alike = [
        listing["server"]
        for listing in listings
        for name, _digest in listing["tools"]
        if listing["server"] and look(name) == look(tool)
    ]
    return "shadowing" if alike[0] != server else ""
