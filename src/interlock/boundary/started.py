"""By which files a program is started: itself, the interpreter of a script, the loader of a dynamic one."""

import os
import struct
from collections.abc import Mapping, Sequence

from interlock.model.records import dataclass

_DEEPEST = 5
_HEAD = 4096
_LOADER = 3
_SHELL = "/bin/sh"
_SEARCH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """One execve(2) that starts a command.

    Takes: `path`, what is executed; `argv`, whole; `files`, all that the kernel opens to execute for it, in order.
    """

    path: str
    argv: tuple[str, ...]
    files: tuple[str, ...]


def found(name: str, environment: Mapping[str, str]) -> str:
    """Return the program that a name means, `""` for none."""
    if "/" in name:
        candidates = [name]
    else:
        candidates = [f"{folder or '.'}/{name}" for folder in environment.get("PATH", _SEARCH).split(":")]
    return next((one for one in candidates if os.path.isfile(one) and os.access(one, os.X_OK)), "")


def started(path: str, argv: Sequence[str], environment: Mapping[str, str]) -> Started:
    """Return how a program is started by one call, and by which files.

    A script without a first line goes to the shell, and one of `env NAME` to that program at once: else a second call
    would be needed, which a plan may not authorise.
    Raises: OSError, if a file cannot be read.
    """
    words = list(argv)
    head = _head(path)
    if not head.startswith((b"#!", b"\x7fELF")):
        path, words = _SHELL, ["sh", path, *words[1:]]
        head = _head(path)
    elif (name := _by_env(head)) and (program := found(name, environment)):
        path, words = program, [name, path, *words[1:]]
        head = _head(path)
    files = [path]
    while len(files) <= _DEEPEST and head.startswith(b"#!"):
        interpreter = os.fsdecode(head[2:].split(b"\n", 1)[0].split(maxsplit=1)[0] or b"")
        files.append(interpreter)
        head = _head(interpreter)
    if loader := _loader(files[-1], head):
        files.append(loader)
    return Started(path=path, argv=tuple(words), files=tuple(os.path.abspath(one) for one in files))


def _head(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_HEAD)


def _by_env(head: bytes) -> str:
    line = head[2:].split(b"\n", 1)[0].split() if head.startswith(b"#!") else []
    plain = len(line) == 2 and line[0] in (b"/usr/bin/env", b"/bin/env") and not line[1].startswith(b"-")
    return os.fsdecode(line[1]) if plain and b"=" not in line[1] else ""


def _loader(path: str, head: bytes) -> str:
    """Return the PT_INTERP of a 64-bit ELF file, `""` where it has none."""
    if head[:5] != b"\x7fELF\x02" or len(head) < 64:
        return ""
    table, size, count = (*struct.unpack_from("=Q", head, 32), *struct.unpack_from("=HH", head, 54))
    for at in range(table, table + size * min(count, 64), size or 1):
        if at + 56 > len(head):
            break
        kind, _, offset = struct.unpack_from("=IIQ", head, at)
        length = struct.unpack_from("=Q", head, at + 32)[0]
        if kind == _LOADER:
            with open(path, "rb") as file:
                file.seek(offset)
                return os.fsdecode(file.read(min(length, _HEAD)).split(b"\0", 1)[0])
    return ""
