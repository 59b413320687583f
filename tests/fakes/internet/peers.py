"""One connection that arrived, and what it can turn into besides plain HTTP: a relayed one, a WebSocket."""

import asyncio
from urllib.parse import urlsplit

from tests.fakes.internet.journal import Journal
from tests.fakes.internet.pages import Fields
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    TextMessage,
)
from wsproto.events import Request as Opening

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Takes: `address`, `port`, where it was sent to; `sni`, the name in its TLS handshake."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    journal: Journal
    folder: str
    address: str
    port: int
    tls: bool
    sni: str

    def note(self, kind: str, **values: object) -> None:
        """Write something down about this connection."""
        self.journal.note(kind, address=self.address, port=self.port, tls=self.tls, sni=self.sni, **values)

    def request(self, *, protocol: str = "http/1.1", **values: object) -> int:
        """Write a request's head down and return its number."""
        return self.journal.request(
            protocol=protocol, tls=self.tls, sni=self.sni, address=self.address, port=self.port, **values
        )

    async def relay(self, method: str, target: str, headers: Fields, raw: bytes) -> None:
        """Be a proxy: reach the target in this fake internet and pass bytes both ways."""
        if method == "CONNECT":
            host, _, number = target.rpartition(":")
            port, first = int(number or 443), b""
        else:
            parts = urlsplit(target)
            host, port = parts.hostname or "", parts.port or 80
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            head = raw.split(b"\r\n", 1)[1]
            first = f"{method} {path} HTTP/1.1\r\n".encode() + head
        self.note("relay", target=f"{host}:{port}", headers=headers)
        try:
            reader, writer = await asyncio.open_connection(host.strip("[]"), port)
        except OSError:
            self.writer.write(b"HTTP/1.1 502 Other\r\ncontent-length: 0\r\n\r\n")
            return
        if method == "CONNECT":
            self.writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        writer.write(first)
        await asyncio.gather(_pump(self.reader, writer), _pump(reader, self.writer))

    async def websocket(self, raw: bytes) -> None:
        """Be a WebSocket server that says each message back, and `bye` to `close`."""
        wire = WSConnection(ConnectionType.SERVER)
        data = raw
        parts: list[str | bytes | bytearray] = []
        while True:
            wire.receive_data(data)
            for event in wire.events():
                match event:
                    case Opening() if "/refused" in event.target:
                        self.writer.write(wire.send(RejectConnection(status_code=403)))
                    case Opening():
                        accepted = AcceptConnection(subprotocol=next(iter(event.subprotocols), None))
                        self.writer.write(wire.send(accepted))
                        if "/hello" in event.target:
                            self.writer.write(wire.send(TextMessage(data="hello")))
                    case TextMessage() | BytesMessage():
                        parts.append(event.data)
                        if event.message_finished:
                            self._say_back(wire, parts)
                            parts = []
                    case Ping():
                        self.writer.write(wire.send(event.response()))
                    case CloseConnection():
                        if wire.state.name == "REMOTE_CLOSING":
                            self.writer.write(wire.send(event.response()))
                        return
            await self.writer.drain()
            data = await self.reader.read(65536)
            if not data:
                return

    def _say_back(self, wire: WSConnection, parts: list[str | bytes | bytearray]) -> None:
        if isinstance(parts[0], str):
            text = "".join(str(part) for part in parts)
            self.note("ws", message=text[:4000])
            close = CloseConnection(code=1000, reason="bye")
            self.writer.write(wire.send(close if text == "close" else TextMessage(data="echo " + text)))
        else:
            whole = b"".join(part for part in parts if not isinstance(part, str))
            self.note("ws", message=whole[:4000])
            self.writer.write(wire.send(BytesMessage(data=whole)))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
