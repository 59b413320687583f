"""HTTP/2 as an origin speaks it, over the h2 library."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from tests.fakes.internet.floods import flood
from tests.fakes.internet.pages import Asked, Fields, Reply, answer
from tests.fakes.internet.peers import Arrival


@dataclass
class _Stream:
    number: int
    headers: Fields
    body: bytearray = field(default_factory=bytearray)


class Conversation:
    """One connection; each whole request is answered by a task of its own."""

    def __init__(self, arrival: Arrival) -> None:
        self._arrival = arrival
        self._wire = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        self._streams: dict[int, _Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()

    async def run(self) -> None:
        """Answer until the connection ends."""
        self._wire.initiate_connection()
        await self._flush()
        try:
            while data := await self._arrival.reader.read(65536):
                for event in self._wire.receive_data(data):
                    self._take(event)
                await self._flush()
        except ProtocolError as error:
            self._arrival.note("raw", start=f"h2: {error}")
            await self._flush()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take(self, event: object) -> None:
        match event:
            case RequestReceived():
                headers = tuple((str(name), str(value)) for name, value in event.headers or ())
                named = dict(headers)
                number = self._arrival.request(
                    protocol="h2",
                    host=named.get(":authority", named.get("host", "")),
                    method=named.get(":method", ""),
                    path=named.get(":path", ""),
                    headers=headers,
                    raw="",
                )
                self._streams[event.stream_id or 0] = _Stream(number=number, headers=headers)
            case DataReceived():
                stream = self._streams.get(event.stream_id or 0)
                if stream:
                    stream.body += event.data or b""
                self._wire.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            case StreamEnded():
                task = asyncio.create_task(self._respond(event.stream_id or 0))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case StreamReset():
                self._arrival.note("h2 reset", stream=event.stream_id)
                self._streams.pop(event.stream_id or 0, None)
                self._room.set()
            case WindowUpdated():
                self._room.set()
            case ConnectionTerminated():
                self._room.set()

    async def _respond(self, at: int) -> None:
        stream = self._streams.get(at)
        if stream is None:
            return
        self._arrival.journal.body(stream.number, bytes(stream.body))
        named = dict(stream.headers)
        if named.get(":path", "").startswith("/flood/"):
            with contextlib.suppress(OSError):
                for part in flood(named[":path"].rpartition("/")[2], at):
                    if self._arrival.writer.transport.is_closing():
                        return
                    self._arrival.writer.write(part)
                    await self._arrival.writer.drain()
            return
        asked = Asked(
            method=named.get(":method", ""),
            host=named.get(":authority", ""),
            path=named.get(":path", ""),
            headers=tuple(pair for pair in stream.headers if not pair[0].startswith(":")),
            body=bytes(stream.body),
            address=self._arrival.address,
            protocol="h2",
        )
        try:
            await self._send(at, await answer(asked, self._arrival.folder), asked.method)
        except (ProtocolError, OSError):
            return

    async def _send(self, at: int, reply: Reply, method: str) -> None:
        for status, fields in reply.interim:
            self._wire.send_headers(at, ((":status", str(status)), *fields))
        if reply.raw is not None:
            self._wire.send_headers(at, ((":status", "200"),))
            self._wire.send_data(at, b"only this")
            self._wire.reset_stream(at, 2)
            await self._flush()
            return
        self._wire.send_headers(
            at, ((":status", str(reply.status)), *reply.headers), end_stream=method == "HEAD"
        )
        await self._flush()
        if method == "HEAD":
            return
        async for part in reply.parts or _once(reply.body):
            await self._data(at, part)
        if reply.trailers:
            self._wire.send_headers(at, reply.trailers, end_stream=True)
        else:
            self._wire.end_stream(at)
        await self._flush()

    async def _data(self, at: int, part: bytes) -> None:
        rest = memoryview(part)
        while rest:
            if at not in self._streams:
                raise ProtocolError("reset")
            room = min(self._wire.local_flow_control_window(at), self._wire.max_outbound_frame_size)
            if room <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            self._wire.send_data(at, bytes(rest[:room]))
            rest = rest[room:]
            await self._flush()

    async def _flush(self) -> None:
        if data := self._wire.data_to_send():
            self._arrival.writer.write(data)
            await self._arrival.writer.drain()


async def _once(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body
