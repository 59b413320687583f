"""Places: where a value lives, written so that any file name survives JSON and a terminal.

A path on Linux is bytes without NUL. The ledger, the terminal and Cedar want text, so a
path is written as UTF-8 with every byte that is not printable UTF-8, and the backslash
itself, as `\\xNN`. The writing is reversible and never holds a control character.
"""

from interlock.model.records import dataclass

_BACKSLASH = "\\"


def path_text(path: bytes) -> str:
    """Write a path's bytes as printable text; `path_bytes` is the inverse."""
    if path.isascii():
        text = path.decode("ascii")
        if text.isprintable() and _BACKSLASH not in text:
            return text
    out: list[str] = []
    for char in path.decode("utf-8", "surrogateescape"):
        if char != _BACKSLASH and char.isprintable():
            out.append(char)
        else:
            raw = char.encode("utf-8", "surrogateescape")
            out.extend(f"\\x{byte:02x}" for byte in raw)
    return "".join(out)


def path_bytes(text: str) -> bytes:
    """Read what `path_text` wrote.

    Raises: ValueError, if the text was not written by `path_text`.
    """
    out = bytearray()
    index = 0
    while index < len(text):
        char = text[index]
        if char == _BACKSLASH:
            if text[index + 1 : index + 2] != "x" or len(text) < index + 4:
                raise ValueError("a backslash in a place must begin an escape of the form \\xNN")
            out.append(int(text[index + 2 : index + 4], 16))
            index += 4
        else:
            out.extend(char.encode("utf-8"))
            index += 1
    return bytes(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path below one of a run's roots.

    Takes: `root`, a root's name (`workspace`, `state:.claude`); `path`, relative, in
    `path_text` writing, `""` for the root itself.
    """

    root: str
    path: str

    def __str__(self) -> str:
        return f"{self.root}:{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A folder whose changes are staged.

    Takes: `name`; `path`, absolute on the host, in `path_text` writing.
    """

    name: str
    path: str


WORKSPACE = "workspace"
HOME = "home"
"""The layer over HOME, of which only what the policy's `home` names is staged."""
FOLDER_PREFIX = "folder:"
"""Another folder that is staged like the workspace."""
GIT_PREFIX = "git:"
"""A repository's own folder that lies outside of the workspace."""
