"""Pipes and files as messages: lines in, lines out, without blocking the loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import BinaryIO

from interlock.boundary.mcp.framing import Lines

CHUNK_BYTES = 256 * 1024


async def reader_of(file: BinaryIO) -> asyncio.StreamReader:
    """Return a way to read from a pipe; what is no pipe (a file) is read as a whole."""
    reader = asyncio.StreamReader(limit=CHUNK_BYTES)
    loop = asyncio.get_running_loop()
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    except (ValueError, OSError):
        reader.feed_data(await asyncio.to_thread(file.read))
        reader.feed_eof()
    return reader


async def lines_of(reader: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """Yield the lines of a pipe, None for one that is too long to be kept, until its end."""
    lines = Lines()
    while True:
        try:
            chunk = await reader.read(CHUNK_BYTES)
        except OSError:
            chunk = b""
        if not chunk:
            break
        for line in lines.feed(chunk):
            yield line
    last = lines.end()
    if last != b"":
        yield last


class Writer:
    """Writes messages to a pipe, or to a file. Raises: OSError, where nobody reads any more."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._stream: asyncio.StreamWriter | None = None

    async def open(self) -> Writer:
        """Begin, and return itself."""
        loop = asyncio.get_running_loop()
        try:
            transport, protocol = await loop.connect_write_pipe(
                lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), self._file
            )
        except (ValueError, OSError):
            return self
        self._stream = asyncio.StreamWriter(transport, protocol, None, loop)
        return self

    async def send(self, raw: bytes) -> None:
        """Write one message as a line."""
        await write_line(self._stream, raw) if self._stream is not None else self._write(raw)

    def _write(self, raw: bytes) -> None:
        left = memoryview(raw + b"\n")
        while left:
            left = left[os.write(self._file.fileno(), left) :]

    async def close(self) -> None:
        """Write what is left, and close the pipe."""
        if self._stream is not None:
            self._stream.close()
            with suppress(OSError):  # nobody reads any more
                await self._stream.wait_closed()


async def write_line(stream: asyncio.StreamWriter, raw: bytes) -> None:
    """Write one message as a line. Raises: OSError."""
    stream.write(raw + b"\n")
    await stream.drain()
