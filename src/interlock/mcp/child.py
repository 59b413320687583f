"""The server as a child of ours: what it is given, and how it is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from interlock.mcp.pipes import CHUNK_BYTES
from interlock.model.errors import InputError

if TYPE_CHECKING:
    from interlock.policy.mcp import McpServer

ALWAYS = ("PATH", "HOME", "LANG", "LC_*", "LOGNAME", "USER", "SHELL", "TERM", "TMPDIR", "TZ")
"""What every program needs, and no secret is in."""
_OURS = "INTERLOCK_*"
_CLOSING_S, _TERMINATING_S = 1.0, 0.5


def environment_of(given: Mapping[str, str], server: McpServer | None) -> dict[str, str]:
    """Return the variables that a server gets: those of the policy, else all that the client gave; never our own."""
    wanted = ("*",) if server is None or server.environment is None else (*ALWAYS, *server.environment)
    return {
        name: value
        for name, value in given.items()
        if not fnmatchcase(name, _OURS) and any(fnmatchcase(name, one) for one in wanted)
    }


async def start(argv: Sequence[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start a server. Raises: InputError."""
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=dict(environment),
            limit=CHUNK_BYTES,
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f"the server `{argv[0]}` cannot be started: {getattr(error, 'strerror', None) or error}",
            hint="give its command after `--`: interlock mcp -- SERVER ARGUMENTS…",
        ) from error


async def stop(process: asyncio.subprocess.Process) -> int:
    """End a server: close its input, ask it, make it. Returns: its status, negative for a signal."""
    if process.stdin is not None:
        process.stdin.close()
    for ending, patience_s in ((None, _CLOSING_S), (process.terminate, _TERMINATING_S), (process.kill, None)):
        if ending is not None:
            with suppress(ProcessLookupError):
                ending()
        try:
            return await asyncio.wait_for(process.wait(), patience_s)
        except TimeoutError:
            continue
    raise AssertionError("a killed process always ends")
