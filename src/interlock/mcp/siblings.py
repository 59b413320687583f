"""The servers that one client started beside each other: each of them in a run of its own, and yet one may not take the
name of another's tool.

What a server offers is left in a folder of the client's, which is there as long as one of them is. Who lists first has
the name.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from interlock.model.tools import ToolDefinition

T = TypeVar("T")
Listing = tuple[str, tuple[ToolDefinition, ...]]
"""A server, and what it offers."""
_LOCK = ".lock"


class Siblings:
    """The servers beside one. Takes: `folder`, of the client's; `server`, the own name."""

    def __init__(self, folder: str, server: str) -> None:
        self._folder = folder
        self._server = server
        self._own: dict[str, str] = {}

    def among(self, tell: Callable[[Sequence[Listing]], tuple[T, Sequence[ToolDefinition]]]) -> T:
        """Look at what the others offer and say what is offered here, while nobody else does.

        Takes: `tell`, which is told what the others offer, oldest first, and gives its result and the own tools that
        take no other's name.
        Raises: OSError.
        """
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(self._folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            result, own = tell(self._others())
            self._own |= {tool.name: tool.digest for tool in own}
            path = os.path.join(self._folder, f"{self._server}.json")
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                json.dump([*self._own.items()], file)
            os.replace(f"{path}.new", path)
            return result
        finally:
            os.close(lock)

    def leave(self) -> None:
        """Take back what was offered; the last one takes the folder with it."""
        if not self._own:
            return
        with suppress(OSError):
            os.unlink(os.path.join(self._folder, f"{self._server}.json"))
            if os.listdir(self._folder) == [_LOCK]:
                os.unlink(os.path.join(self._folder, _LOCK))
                os.rmdir(self._folder)

    def _others(self) -> list[Listing]:
        found = []
        for name in os.listdir(self._folder):
            server, dot, kind = name.rpartition(".")
            if not dot or kind != "json" or not server or server == self._server:
                continue
            path = os.path.join(self._folder, name)
            with open(path, encoding="utf-8") as file:
                tools = tuple(ToolDefinition(name=each, digest=digest) for each, digest in json.load(file))
            found.append((os.stat(path).st_mtime_ns, server, tools))
        return [(server, tools) for _at, server, tools in sorted(found)]


def of_the_same_client(server: str) -> Siblings:
    """Return the servers that the process which started this one started too."""
    from interlock.runtime.folders import state_folder

    parent = os.getppid()
    began = ""
    with (
        suppress(OSError, IndexError),
        open(f"/proc/{parent}/stat", encoding="utf-8", errors="replace") as file,
    ):
        began = file.read().rpartition(")")[2].split()[19]
    return Siblings(os.path.join(state_folder(), "mcp", f"{parent}-{began}"), server)
