"""HTTP/1.1 as a patient origin speaks it: keep-alive, pipelining, chunks, trailers, upgrades."""

import asyncio
import socket
import struct

from tests.fakes.internet.names import METADATA
from tests.fakes.internet.pages import Asked, Fields, Reply, answer
from tests.fakes.internet.peers import Arrival

_MAX_BODY = 64 << 20


async def converse(arrival: Arrival) -> None:
    """Answer request after request until the connection ends."""
    reader = arrival.reader
    while True:
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            partial = error.partial if isinstance(error, asyncio.IncompleteReadError) else b"(too long)"
            if partial:
                arrival.note("raw", start=partial[:400])
            return
        # Lenient about line ends, as some origins are: what a front lets pass here has another meaning.
        lines = raw[:-4].decode("latin-1").replace("\r\n", "\n").split("\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            arrival.note("raw", start=raw[:400])
            return
        headers = tuple(
            (name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])
        )
        if not await _one(arrival, words[0], words[1], headers, raw):
            return


def _value(headers: Fields, name: str) -> str:
    return next((value for key, value in headers if key.lower() == name), "")


async def _one(arrival: Arrival, method: str, target: str, headers: Fields, raw: bytes) -> bool:
    host = _value(headers, "host")
    number = arrival.request(host=host, method=method, path=target, headers=headers, raw=raw[:2000])
    if method == "CONNECT" or not target.startswith(("/", "*")):
        await arrival.relay(method, target, headers, raw)
        return False
    if _value(headers, "upgrade").lower() == "websocket":
        await arrival.websocket(raw)
        return False
    if _value(headers, "expect").lower() == "100-continue" and not target.startswith("/nocontinue"):
        arrival.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if target.startswith("/early"):
        await _send(arrival, Reply(status=413, body=b"too much, and I say so early"), method)
        return False
    body = await _body(arrival, headers)
    if body is None:
        return False
    arrival.journal.body(number, body)
    asked = Asked(
        method=method,
        host=METADATA if arrival.address == METADATA else host,
        path=target,
        headers=headers,
        body=body,
        address=arrival.address,
        protocol="http/1.1",
    )
    goes_on = await _send(arrival, await answer(asked, arrival.folder), method)
    return goes_on and _value(headers, "connection").lower() != "close"


async def _body(arrival: Arrival, headers: Fields) -> bytes | None:
    reader = arrival.reader
    try:
        if "chunked" in _value(headers, "transfer-encoding").lower():
            whole = b""
            while True:
                size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
                if size == 0:
                    while (await reader.readuntil(b"\r\n")) != b"\r\n":
                        pass
                    return whole
                whole += await reader.readexactly(size)
                await reader.readexactly(2)
                if len(whole) > _MAX_BODY:
                    return None
        length = int(_value(headers, "content-length") or 0)
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        return None


async def _send(arrival: Arrival, reply: Reply, method: str) -> bool:
    writer = arrival.writer
    if reply.raw is not None:
        async for part in reply.raw:
            writer.write(part)
            await writer.drain()
        if reply.reset:
            link = writer.get_extra_info("socket")
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return False
    for status, fields in reply.interim:
        writer.write(_head(status, fields))
    fields = reply.headers
    counted = any(name == "content-length" for name, _ in fields)
    if reply.parts is None and reply.status not in (204, 304):
        fields = (*fields, ("content-length", str(len(reply.body))))
    elif reply.parts is not None and not counted:
        fields = (*fields, ("transfer-encoding", "chunked"))
    writer.write(_head(reply.status, fields))
    if method == "HEAD":
        pass
    elif reply.parts is None:
        writer.write(reply.body)
    else:
        async for part in reply.parts:
            writer.write(part if counted else b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
        if not counted:
            lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in reply.trailers)
            writer.write(b"0\r\n" + lines + b"\r\n")
    await writer.drain()
    return True


def _head(status: int, fields: Fields) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"HTTP/1.1 {status} {'OK' if status < 300 else 'Other'}\r\n{lines}\r\n".encode("latin-1")
