"""A server that speaks on its standard input and output, guarded for the client that started us in its place."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from interlock.mcp import child
from interlock.mcp.guarding import Session
from interlock.mcp.opening import Settings, open_session, policy_of, server_of
from interlock.mcp.pipes import Writer, lines_of, reader_of, write_line
from interlock.model.errors import InterlockError

MAX_AT_ONCE = 2_500
"""So many messages of the client's may be under way; more than requests may be, so that answers always get in."""
_GRACE_S = 1.0
"""How long a client that has said all may wait for what it asked for."""


def serve_stdio(settings: Settings, argv: Sequence[str]) -> int:
    """Guard a server until the client or the server ends. Returns: 0, or 1 where the server ended first.

    Raises: InputError, PolicyError: then no server was started; StuckError, LedgerLost.
    """
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_Relay(replace(settings, alone=True), argv).run())


class _Relay:
    def __init__(self, settings: Settings, argv: Sequence[str]) -> None:
        self._settings = settings
        self._argv = argv
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()

    async def run(self) -> int:
        session = open_session(self._settings)
        rules = server_of(policy_of(self._settings), self._settings.server)
        server = await child.start(self._argv, child.environment_of(os.environ, rules))
        assert server.stdin is not None
        assert server.stdout is not None
        to_server, from_server = server.stdin, server.stdout
        client = await Writer(os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)).open()

        async def send_server(raw: bytes) -> None:
            await write_line(to_server, raw)

        async def send_client(raw: bytes) -> None:
            try:
                await client.send(raw)
            except OSError:
                self._stop.set()  # nobody reads any more
                raise

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)

        async def hear_server() -> None:
            async for line in lines_of(from_server):
                with suppress(OSError):  # who ended is told apart elsewhere
                    await session.server_said(line, back=send_server, onward=send_client)

        async def hear_client() -> None:
            async for line in lines_of(
                await reader_of(os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0))
            ):
                await self._room()
                task = asyncio.create_task(session.client_said(line, back=send_client, onward=send_server))
                self._tasks.add(task)
                task.add_done_callback(self._over)

        hearing = asyncio.create_task(hear_server())
        saying = asyncio.create_task(hear_client())
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait((hearing, saying, stopped), return_when=asyncio.FIRST_COMPLETED)
        server_first = hearing.done() and not saying.done() and not stopped.done()
        if server_first:
            await self._server_ended(server, session)
        try:
            await session.settled(0.0 if stopped.done() else _GRACE_S)
            for task in (saying, stopped):
                task.cancel()
            await self._closed(session)
        finally:
            await child.stop(server)
            hearing.cancel()
            await asyncio.gather(hearing, saying, stopped, *self._tasks, return_exceptions=True)
            await client.close()
        return 1 if server_first else 0

    async def _server_ended(self, server: asyncio.subprocess.Process, session: Session) -> None:
        try:
            status = str(await asyncio.wait_for(server.wait(), _GRACE_S))
        except TimeoutError:
            status = "unknown: it closed its output and lives"
        self._settings.note(f"the server ended before the client did (status {status})")
        session.server_gone("the server ended")

    async def _closed(self, session: Session) -> None:
        try:
            await session.closed()
        except InterlockError as error:
            self._settings.note(str(error))
            raise
        finally:
            if session.run_id:
                self._settings.note(f"what was asked and decided: interlock show {session.run_id}")

    async def _room(self) -> None:
        while len(self._tasks) >= MAX_AT_ONCE:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._settings.note(f"a message was not passed: {type(error).__name__}")
