"""A server that is reached by HTTP, guarded for a client that started us and speaks over our standard streams."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

from interlock.boundary.mcp import versions
from interlock.boundary.mcp.messages import INTERNAL, Id, Request, Response, failure, read
from interlock.boundary.net.mcp_events import Events
from interlock.boundary.net.mcp_requests import SESSION, VERSION, headers_of
from interlock.mcp.http_calls import EVENTS, JSON
from interlock.mcp.http_far import Answer, Upstream, endpoint_of, header_values
from interlock.mcp.http_serving import plan_of
from interlock.mcp.opening import Settings, open_session, policy_of
from interlock.mcp.pending import ServerGone
from interlock.mcp.pipes import Writer, lines_of, reader_of
from interlock.model.errors import InterlockError

MAX_AT_ONCE = 2_500
_GRACE_S = 1.0
_TRIES = 5
_WAIT_S = 1.0
_MAX_WAIT_S = 30.0


def bridge_http(settings: Settings, *, upstream: str, headers: Mapping[str, str]) -> int:
    """Guard a server until the client ends. Returns: 0.

    Raises: InputError, PolicyError: then the server was not asked; StuckError, LedgerLost.
    """
    return asyncio.run(_Bridge(settings, upstream, headers).run())


class _Bridge:
    def __init__(self, settings: Settings, upstream: str, headers: Mapping[str, str]) -> None:
        self._settings = settings
        self._endpoint = endpoint_of(upstream)
        self._own = header_values(headers, os.environ)
        self._policy = policy_of(settings)
        self._tasks: set[asyncio.Task[None]] = set()
        self._session_id = b""
        self._version = b""
        self._begins: Id | None = None

    async def run(self) -> int:
        with tempfile.TemporaryDirectory(prefix="interlock-mcp-") as folder:
            self._upstream = Upstream(
                self._endpoint, self._own, plan_of(self._policy, self._endpoint.host, folder)
            )
            self._session = open_session(self._settings)
            self._client = await Writer(os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)).open()
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            hearing = asyncio.create_task(self._hear())
            stopped = asyncio.create_task(stop.wait())
            await asyncio.wait((hearing, stopped), return_when=asyncio.FIRST_COMPLETED)
            try:
                await self._session.settled(0.0 if stop.is_set() else _GRACE_S)
                await self._session.closed()
                await self._farewell()
            finally:
                for task in (hearing, stopped, *self._tasks):
                    task.cancel()
                await asyncio.gather(hearing, stopped, *self._tasks, return_exceptions=True)
                await self._client.close()
                self._upstream.close()
                if self._session.run_id:
                    self._settings.note(f"what was asked and decided: interlock show {self._session.run_id}")
        return 0

    # the client

    async def _hear(self) -> None:
        reader = await reader_of(os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0))
        async for line in lines_of(reader):
            while len(self._tasks) >= MAX_AT_ONCE:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            if _keeps_order(line):
                await self._said(line)
            else:
                self._run(self._said(line))

    async def _said(self, line: bytes | None) -> None:
        try:
            await self._session.client_said(line, back=self._to_client, onward=self._to_server)
        except ServerGone as error:
            message = read(line)
            self._settings.note(error.message)
            if isinstance(message, Request):
                await self._to_client(failure(message.id, INTERNAL, error.message))

    async def _to_client(self, raw: bytes) -> None:
        await self._client.send(raw)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            said = error.message if isinstance(error, InterlockError) else type(error).__name__
            self._settings.note(f"a message was not passed: {said}")

    # the server

    def _headers(self) -> dict[bytes, bytes]:
        found = {b"accept": JSON + b", " + EVENTS}
        if self._session_id:
            found[SESSION] = self._session_id
        if self._version:
            found[VERSION] = self._version
        return found

    async def _to_server(self, raw: bytes) -> None:
        """Post a message. Raises: ServerGone."""
        message = read(raw)
        number = message.id if isinstance(message, Request) else None
        if isinstance(message, Request) and message.method == "initialize":
            self._session_id = self._version = b""
            self._begins = number
        headers = {**self._headers(), b"content-type": JSON, **headers_of(message)}
        answer = await self._upstream.ask("POST", list(headers.items()), raw)
        if number is not None and number == self._begins and answer.status < 300:
            self._session_id = answer.headers.get(SESSION, b"")
        if answer.status < 300 and answer.kind == EVENTS:
            self._run(self._stream(answer, number))
            return
        body = await answer.whole()
        if body and answer.kind == JSON and (answer.status < 300 or isinstance(read(body), Response)):
            await self._from_server(body)
        elif answer.status >= 300 or number is not None:
            raise self._refused(answer)
        if getattr(message, "method", "") == "notifications/initialized":
            self._run(self._listen(b""))

    def _refused(self, answer: Answer) -> ServerGone:
        why = f"the server answered with the status {answer.status}"
        if answer.status == 401:
            why += ": it wants a sign-in, give it by --header-env 'Authorization=Bearer VARIABLE'"
        elif answer.status == 404 and self._session_id:
            why += ": it has ended the session, start again"
        elif answer.status in (404, 405):
            why += ": no MCP server of streamable HTTP is there"
        return ServerGone(why, sent=answer.status >= 500 or answer.status < 300)

    async def _stream(self, answer: Answer, number: Id | None) -> None:
        """Read the events that answer a message; where they break off, the rest is asked for."""
        last, waits, tries, why = b"", 0.0, 0, ""
        while True:
            done, last, waits, why = await self._read(answer, number, last)
            if done or number is None:
                return
            tries += 1
            if not last or tries > _TRIES:
                break
            await asyncio.sleep(waits)
            try:
                answer = await self._upstream.ask("GET", [*self._headers().items(), (b"last-event-id", last)])
            except ServerGone as error:
                why = error.message
                continue
            if answer.kind != EVENTS or answer.status >= 300:
                answer.abort()
                why = f"the server gave no stream to go on with (status {answer.status})"
        await self._from_server(failure(number, INTERNAL, why or "the server did not answer the request"))

    async def _read(self, answer: Answer, number: Id | None, last: bytes) -> tuple[bool, bytes, float, str]:
        """Read a stream to its end. Returns: whether the answer came, the last id, how long to wait, why it ended."""
        events, done, waits, why = Events(), False, _WAIT_S, ""
        try:
            async for part in answer.parts():
                for event in events.feed(part):
                    last = event.id or last
                    if event.retry.isdigit():
                        waits = min(int(event.retry) / 1000, _MAX_WAIT_S)
                    if event.data == b"":
                        continue
                    message = read(event.data)
                    done = done or (isinstance(message, Response) and message.id == number)
                    await self._from_server(event.data)
        except ServerGone as error:
            why = error.message
        return done, last, waits, why

    async def _listen(self, last: bytes) -> None:
        """Listen to what the server says of itself, where it has a stream for that."""
        tries = 0
        while tries < _TRIES:
            more = [(b"last-event-id", last)] if last else []
            waits = _WAIT_S
            with suppress(ServerGone):
                answer = await self._upstream.ask("GET", [*self._headers().items(), *more])
                if answer.kind != EVENTS or answer.status >= 300:
                    answer.abort()
                    return
                before = last
                _, last, waits, _ = await self._read(answer, None, last)
                tries = 0 if last != before else tries
            tries += 1
            await asyncio.sleep(waits)

    async def _from_server(self, raw: bytes | None) -> None:
        if self._begins is not None and raw is not None:
            message = read(raw)
            if isinstance(message, Response) and message.id == self._begins:
                self._begins = None
                version = (message.result or {}).get("protocolVersion")
                self._version = (
                    version.encode() if versions.is_known(version) and isinstance(version, str) else b""
                )
        await self._session.server_said(raw, back=self._back, onward=self._to_client)

    async def _back(self, raw: bytes) -> None:
        with suppress(ServerGone):
            await self._to_server(raw)

    async def _farewell(self) -> None:
        if self._session_id:
            with suppress(ServerGone, TimeoutError):
                answer = await asyncio.wait_for(
                    self._upstream.ask("DELETE", list(self._headers().items())), _GRACE_S
                )
                answer.abort()


def _keeps_order(line: bytes | None) -> bool:
    """Say whether what follows must not overtake a message: the handshake."""
    return line is not None and (b'"notifications/initialized"' in line or b'"initialize"' in line)
