"""What the fake internet's web hosts answer: one page for each thing that an answer can be like."""

import asyncio
import gzip
import hashlib
import json
import zlib
from collections.abc import AsyncIterator
from dataclasses import field
from urllib.parse import parse_qs, unquote, urlsplit

from tests.fakes.internet import model, packages, repositories
from tests.fakes.internet.names import METADATA

from interlock.model.records import dataclass

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the pages see it. Takes: `address`, the one that it came in by."""

    method: str
    host: str
    path: str
    headers: Fields
    body: bytes
    address: str
    protocol: str

    def header(self, name: str) -> str:
        """Return the first value of a field, "" without one."""
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer. Takes: `parts`, a body of unknown length; `raw`, bytes that are sent as they are, and end the
    connection; `reset`, whether the end is a reset.
    """

    status: int = 200
    headers: Fields = ()
    body: bytes = b""
    parts: AsyncIterator[bytes] | None = None
    trailers: Fields = ()
    raw: AsyncIterator[bytes] | None = None
    reset: bool = False
    interim: tuple[tuple[int, Fields], ...] = field(default=())


async def answer(asked: Asked, folder: str) -> Reply:
    """Answer a request. Takes: `folder`, where the world keeps its repositories."""
    name = asked.host.rpartition(":")[0] if asked.host.rpartition(":")[2].isdigit() else asked.host
    if asked.address == METADATA:
        return _text('{"AccessKeyId": "AKIAFAKE", "SecretAccessKey": "stolen"}', "application/json")
    if name == "git.test":
        return Reply(**await repositories.serve(asked.method, asked.path, asked.headers, asked.body, folder))
    if name.endswith(".pkg.test"):
        found = packages.find(name, urlsplit(asked.path).path, folder)
        if found is None:
            return Reply(status=404, body=b"not here")
        return Reply(headers=(("content-type", found[0]),), body=found[1])
    return _page(asked)


def _text(text: str, kind: str = "text/plain") -> Reply:
    return Reply(headers=(("content-type", kind),), body=text.encode())


def _page(asked: Asked) -> Reply:
    parts = urlsplit(asked.path)
    query = {key: value[-1] for key, value in parse_qs(parts.query).items()}
    match unquote(parts.path).strip("/").split("/"):
        case ["v1", "messages"]:
            encoding = query["as"]
            wanted = encoding in [one.strip() for one in asked.header("accept-encoding").split(",")]
            kinds = (("content-type", "text/event-stream"), ("content-encoding", encoding))
            return (
                Reply(headers=kinds, parts=model.stream(encoding, asked.body))
                if wanted
                else Reply(status=406)
            )
        case ["chunked"]:
            return Reply(parts=_each([b"one ", b"two ", b"three"]))
        case ["trailers"]:
            return Reply(headers=(("trailer", "x-sum"),), parts=_each([b"body"]), trailers=(("x-sum", "42"),))
        case ["gzip"]:
            return Reply(headers=(("content-encoding", "gzip"),), body=gzip.compress(b"squeezed " * 200))
        case ["sse"]:
            return Reply(
                headers=(("content-type", "text/event-stream"), ("cache-control", "no-cache")),
                parts=_events(int(query.get("n", 3)), float(query.get("wait", 0.2))),
            )
        case ["poll"]:
            return Reply(parts=_late(float(query.get("wait", 2))))
        case ["big"]:
            size = int(query.get("mb", 1)) << 20
            return Reply(headers=(("content-length", str(size)),), parts=_fill(size))
        case ["redirect"]:
            return Reply(status=int(query.get("status", 302)), headers=(("location", query["to"]),))
        case ["status", number]:
            return Reply(status=int(number), body=b"" if number in ("204", "304") else b"so be it")
        case ["interim"]:
            return Reply(interim=((103, (("link", "</a.css>; rel=preload"),)),), body=b"after a hint")
        case ["cookies"]:
            return Reply(headers=(("set-cookie", "a=1"), ("set-cookie", "b=2")), body=b"sweet")
        case ["bomb"]:
            return Reply(headers=(("content-encoding", "gzip"),), body=_bomb(int(query.get("mb", 256))))
        case ["reset"]:
            head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 1000
            return Reply(raw=_each([head]), reset=True)
        case ["short"]:
            return Reply(raw=_each([b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nonly this"]))
        case ["garbage"]:
            return Reply(
                raw=_each([b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", b"HTTP/9 tail\0\r\n\r\n"])
            )
        case ["extra"]:
            answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
            return Reply(raw=_each([answer + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"]))
        case ["nonsense"]:
            return Reply(raw=_each([b"220 mail.test ESMTP\r\n"]))
        case ["both"]:
            return Reply(
                raw=_each(
                    [
                        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n"
                        b"5\r\nhello\r\n0\r\n\r\n"
                    ]
                )
            )
        case ["hugehead"]:
            return Reply(raw=_huge_head(int(query.get("mb", 100))))
        case ["silence"]:
            return Reply(raw=_never())
        case ["stall"]:
            return Reply(raw=_stall())
        case _:
            return _echo(asked)


def _echo(asked: Asked) -> Reply:
    seen = {
        "method": asked.method,
        "host": asked.host,
        "path": asked.path,
        "headers": asked.headers,
        "protocol": asked.protocol,
        "body": asked.body[:4000].decode("latin-1"),
        "size": len(asked.body),
        "digest": hashlib.sha256(asked.body).hexdigest(),
    }
    return _text(json.dumps(seen), "application/json")


async def _each(parts: list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        await asyncio.sleep(0.02)


async def _events(count: int, wait_s: float) -> AsyncIterator[bytes]:
    for number in range(count):
        yield f"id: {number}\ndata: event {number}\n\n".encode()
        await asyncio.sleep(wait_s)


async def _late(wait_s: float) -> AsyncIterator[bytes]:
    await asyncio.sleep(wait_s)
    yield b"at last"


async def _fill(size: int) -> AsyncIterator[bytes]:
    block = bytes(range(256)) * 1024
    while size > 0:
        yield block[:size]
        size -= len(block)


async def _huge_head(size_mb: int) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    line = b"x-fill: " + b"y" * 65000 + b"\r\n"
    for _ in range(size_mb * 16):
        yield line
    yield b"content-length: 2\r\n\r\nok"


async def _never() -> AsyncIterator[bytes]:
    await asyncio.sleep(600)
    yield b""


async def _stall() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nfirst"
    await asyncio.sleep(600)


def _bomb(size_mb: int) -> bytes:
    """Return gzip of so many zeros, made once from one block's worth of deflate."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(size_mb)) + packer.flush()
