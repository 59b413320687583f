"""The listening sockets: each connection is written down, looked at, and given to the code that speaks its protocol."""

import asyncio
import contextlib
import os
import socket
import ssl

from tests.fakes.internet import http1, names
from tests.fakes.internet.authority import Certificates
from tests.fakes.internet.http2 import Conversation
from tests.fakes.internet.journal import Journal
from tests.fakes.internet.peers import Arrival

_H2_PREFACE = b"PRI * HTTP/2.0"
_ORIGINAL_PORTS = (*names.PLAIN_PORTS, *names.TLS_PORTS)
_BACKLOG = 4096
_GREETINGS = {21: b"220 ftp\r\n", 25: b"220 mail\r\n", 587: b"220 mail\r\n"}


class Doors:
    """Listens on every address of the fake internet."""

    def __init__(self, journal: Journal, certificates: Certificates, folder: str) -> None:
        self._journal = journal
        self._certificates = certificates
        self._folder = folder
        self._tasks: set[asyncio.Task[None]] = set()
        self._kept: list[socket.socket] = []

    def open(self) -> None:
        """Begin to listen."""
        for port in _ORIGINAL_PORTS:
            for family, every in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
                self._start(self._accept(_listener(family, (every, port)), port))
        self._open_unix()
        self._open_vsock()
        self._open_silent()

    def _start(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _open_unix(self) -> None:
        for path in (f"{self._folder}/open/host.sock", "\0fake-internet"):
            door = socket.socket(socket.AF_UNIX)
            door.bind(path)
            if path[0] != "\0":
                os.chmod(path, 0o777)
            door.listen(16)
            door.setblocking(False)
            self._start(self._accept_odd(door, "unix"))

    def _open_vsock(self) -> None:
        with contextlib.suppress(OSError):
            door = socket.socket(socket.AF_VSOCK)
            door.bind((socket.VMADDR_CID_ANY, 9443))
            door.listen(16)
            door.setblocking(False)
            self._start(self._accept_odd(door, "vsock"))

    def _open_silent(self) -> None:
        """Listen without room for one more: the kernel drops what comes."""
        for port in (80, 443):
            door = _listener(socket.AF_INET, (names.SILENT, port), backlog=0)
            fill = socket.socket()
            fill.setblocking(False)
            fill.connect_ex((names.SILENT, port))
            self._kept.append(fill)
            self._kept.append(door)

    async def _accept_odd(self, door: socket.socket, kind: str) -> None:
        loop = asyncio.get_running_loop()
        while True:
            link, _ = await loop.sock_accept(door)
            with link, contextlib.suppress(OSError, TimeoutError):
                first = await asyncio.wait_for(loop.sock_recv(link, 400), 0.5)
                self._journal.note(kind, start=first)
                await loop.sock_sendall(link, b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nstolen")

    async def _accept(self, door: socket.socket, port: int) -> None:
        loop = asyncio.get_running_loop()
        while True:
            link, sender = await loop.sock_accept(door)
            address = str(link.getsockname()[0]).removeprefix("::ffff:")
            self._journal.note("tcp", address=address, port=port, sender=sender[:2])
            self._start(self._serve(link, address, port))

    async def _serve(self, link: socket.socket, address: str, port: int) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError, ssl.SSLError):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.setblocking(False)
            if port in _GREETINGS:
                await asyncio.get_running_loop().sock_sendall(link, _GREETINGS[port])
            first = await _peek(link)
            if not first:
                link.close()
                return
            tls = first[:1] == b"\x16"
            place = names.BY_ADDRESS.get(address)
            context = self._certificates.context(place.name if place else address) if tls else None
            reader = asyncio.StreamReader(limit=16 << 20)
            protocol = asyncio.StreamReaderProtocol(reader)
            try:
                transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: protocol, link, ssl=context
                )
            except (OSError, ssl.SSLError) as error:
                self._journal.note("tls failure", address=address, port=port, detail=str(error)[:200])
                link.close()
                return
            writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
            try:
                await self._converse(reader, writer, address, port)
            finally:
                writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, port: int
    ) -> None:
        secured: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
        arrival = Arrival(
            reader=reader,
            writer=writer,
            journal=self._journal,
            folder=self._folder,
            address=address,
            port=port,
            tls=secured is not None,
            sni=getattr(secured, "asked_name", ""),
        )
        agreed = secured.selected_alpn_protocol() if secured else None
        if agreed == "h2" or (secured is None and await _peek_buffer(arrival) == _H2_PREFACE):
            await Conversation(arrival).run()
        else:
            await http1.converse(arrival)


async def _peek_buffer(arrival: Arrival) -> bytes:
    """Return the first bytes that came, and leave them there."""
    try:
        first = await arrival.reader.readexactly(len(_H2_PREFACE))
    except asyncio.IncompleteReadError as error:
        first = error.partial
    arrival.reader._buffer[:0] = first  # type: ignore[attr-defined]
    return first


async def _peek(link: socket.socket) -> bytes:
    """Wait for the first bytes, and leave them in the socket."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(link, lambda: ready.done() or ready.set_result(None))
    try:
        await asyncio.wait_for(ready, 60)
        return link.recv(64, socket.MSG_PEEK)
    except (TimeoutError, OSError):
        return b""
    finally:
        loop.remove_reader(link)


def _listener(family: int, where: tuple[str, int], backlog: int = _BACKLOG) -> socket.socket:
    door = socket.socket(family)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # an address of its own beside the wildcard
    if family == socket.AF_INET6:
        door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    door.bind(where)
    door.listen(backlog)
    door.setblocking(False)
    return door
