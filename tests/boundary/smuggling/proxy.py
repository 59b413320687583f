"""A whole proxy in one loop: an agent's raw bytes go in, what a far side would read is kept byte for byte.

The far side stands behind an upstream proxy of its own, so that names without any resolver lead to it, through the
boundary's real dialling, pool and exchange. Nothing here reads what it keeps: the readers do.
"""

import asyncio
import contextlib
import functools
import socket
import ssl
import struct
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.gate import Unaudited

from interlock.boundary.net.authority import Authority, AuthorityFiles
from interlock.boundary.net.doors import Doors
from interlock.boundary.net.front import Front
from interlock.boundary.net.gate import Body, Gate, Passage, Passed
from interlock.boundary.net.minting import make_authority
from interlock.boundary.net.names import Names, canonical_literal
from interlock.boundary.net.plan import NetLimits, NetPlan
from interlock.model.requests import NetMessage, NetRequest, NetResponse

HOST = "target.test"
PLACE = (HOST, 80)
"""Where an agent dials: a name (by its placeholder address) or an IP literal, and a port."""
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
QUIET_S = 0.06
FIRST_S = 4.0  # nearly every word is answered, on a busy machine late
DEADLINE_S = 10.0


class Witness(Unaudited):
    """A gate that lets everything pass and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[NetRequest] = []
        self.messages: list[NetMessage] = []
        self.ends: list[tuple[str, NetResponse]] = []
        self.bodies: list[bytes | None] = []
        self.away: list[str] = []

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        self.requests.append(request)
        return Passed(effect_id=f"e{len(self.requests)}")

    def propose_message(self, message: NetMessage) -> Passage | Awaitable[Passage]:
        self.messages.append(message)
        return Passed(effect_id=message.stream)

    def answered(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        self.ends.append((effect_id, response))
        self.bodies.append(body)

    def turned_away(self, host: str, port: int, reason: str) -> None:
        self.away.append(reason)


@dataclass
class Carried:
    """One far connection: where it was asked to lead, and every byte that came on it."""

    place: str
    raw: bytearray = field(default_factory=bytearray)


@functools.cache
def _files() -> AuthorityFiles:
    return make_authority()[0]


@functools.cache
def _authority() -> Authority:
    return Authority(_files(), "/nowhere")


Answering = Callable[["Carried", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class World:
    """A proxy with its far side: `async with World() as world: await world.speak(raw)`.

    Takes: `answers`, what a far side does on each connection; by default it answers each request that it makes out.
    """

    def __init__(
        self, answers: Answering | None = None, *, gate: Gate | None = None, limits: NetLimits | None = None
    ) -> None:
        self.witness = Witness()
        self.gate: Gate = gate or self.witness
        self.limits = limits or NetLimits()
        self.carried: list[Carried] = []
        self.failures: list[str] = []
        self._answers = answers or answer_each
        self._folder = tempfile.TemporaryDirectory(prefix="il-smuggle-")
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> "World":
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: self.failures.append(str(context)))
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0, backlog=2048, limit=2**20)
        port = self._server.sockets[0].getsockname()[1]
        plan = NetPlan(
            folder=self._folder.name, upstream_proxy=f"http://127.0.0.1:{port}", limits=self.limits
        )
        self._door = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self._door.setblocking(False)
        self._meant: dict[int, tuple[str, int]] = {}
        self._names = Names()
        self.front = Front(
            Doors(tcp=(self._door,)),
            plan,
            self.gate,
            _authority(),
            self._names,
            loop,
            destination=lambda sock: self._meant[sock.getpeername()[1]],
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.front.end()
        await self.front.settled()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._folder.cleanup()
        assert not self.failures, self.failures

    @property
    def raw(self) -> bytes:
        """Everything that reached any far side."""
        return b"".join(bytes(one.raw) for one in self.carried)

    def connect(self, place: tuple[str, int] = PLACE) -> socket.socket:
        """Open an agent's connection to a place. Returns: the agent's end, non-blocking."""
        host, port = place
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.bind(("127.0.0.1", 0))
            address = host if canonical_literal(host) else self._names.address_of(host)[0]
            self._meant[sock.getsockname()[1]] = (address, port)
            sock.connect(self._door.getsockname())
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        return sock

    async def secure(self, alpn: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open an agent's TLS connection to port 443 of the host, which trusts the run's authority."""
        context = ssl.create_default_context(cadata=_files().certificate_pem.decode("ascii"))
        context.set_alpn_protocols([alpn])
        return await asyncio.open_connection(
            sock=self.connect((HOST, 443)), ssl=context, server_hostname=HOST
        )

    async def speak(
        self,
        raw: bytes,
        place: tuple[str, int] = PLACE,
        *,
        then: bytes = b"",
        piece: int = 0,
        ends: bool = False,
        may_end: bool = False,
        first_s: float = FIRST_S,
    ) -> "Heard":
        """Send raw bytes as an agent would, wait until all is quiet, close, and tell what came back.

        Takes: `then`, sent once the first is quiet and the connection still open; `piece`, bytes in one write;
        `ends`, whether the connection has to be closed by the other side, which a busy machine may do late, and
        `may_end`, whether only after a refusal; `first_s`, how long to wait for a word at all.
        """
        sock = self.connect(place)
        loop = self.front.loop
        came = bytearray()
        try:
            with contextlib.suppress(ConnectionError):
                step = piece or max(1, len(raw))
                for at in range(0, len(raw), step):
                    await loop.sock_sendall(sock, raw[at : at + step])
                    if piece:
                        await asyncio.sleep(0)
            closed, reset = await self._hear(sock, came, *((DEADLINE_S,) if ends else (QUIET_S, first_s)))
            if may_end and not closed and came.startswith(b"HTTP/1.1 4"):
                closed, reset = await self._hear(sock, came, DEADLINE_S)
            if then and not closed:
                with contextlib.suppress(ConnectionError):
                    await loop.sock_sendall(sock, then)
                closed, reset = await self._hear(sock, came, QUIET_S, first_s)
            before = bytes(came)
            if not closed:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_WR)
                _, reset = await self._hear(sock, came, DEADLINE_S)
            return Heard(raw=before, later=bytes(came[len(before) :]), closed=closed, reset=reset)
        finally:
            sock.close()

    async def _hear(
        self, sock: socket.socket, came: bytearray, wait_s: float, first_s: float = 0.0
    ) -> tuple[bool, bool]:
        """Read to the end or to a silence. Returns: whether it ended, and whether with a reset."""
        patience_s = max(wait_s, first_s)
        until = self.front.loop.time() + DEADLINE_S
        while True:
            try:
                data = await asyncio.wait_for(self.front.loop.sock_recv(sock, 65536), patience_s)
            except TimeoutError:
                busy = len(self.witness.requests) > len(self.witness.ends)  # a far side still answers
                if busy and wait_s == QUIET_S and self.front.loop.time() < until:
                    continue
                return False, False
            except ConnectionError:
                return True, True
            if not data:
                return True, False
            came += data
            patience_s = wait_s

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            try:
                asked = await reader.readuntil(b"\r\n\r\n")
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                return
            assert asked.startswith(b"CONNECT ")
            carried = Carried(place=asked.split(b" ")[1].decode())
            self.carried.append(carried)
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            # cancelled at the end: the stream's own callback would take that for a failure
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answers(carried, reader, writer)
        finally:
            writer.close()


@dataclass(frozen=True)
class Heard:
    """What the agent read. Takes: `closed`, whether the proxy ended the connection before the agent did."""

    raw: bytes
    later: bytes
    closed: bool
    reset: bool

    @property
    def status(self) -> int:
        """The first answer's status, 0 for none."""
        words = self.raw.split(b" ", 2)
        return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") else 0


async def answer_each(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request that h11 makes out, and stop at the first that it cannot."""
    import h11

    side = h11.Connection(h11.SERVER)
    method = b""
    while data := await reader.read(65536):
        carried.raw += data
        side.receive_data(data)
        while True:
            try:
                event = side.next_event()
            except h11.RemoteProtocolError:
                return
            if event is h11.NEED_DATA or event is h11.PAUSED:
                break
            if isinstance(event, h11.Request):
                method = event.method
            if isinstance(event, h11.EndOfMessage):
                writer.write(OK)
                side.send(h11.Response(status_code=200, headers=[("content-length", "2")]))
                if method != b"HEAD":  # h11 sends no body there
                    side.send(h11.Data(data=b"ok"))
                side.send(h11.EndOfMessage())
                if side.our_state is not h11.DONE or side.their_state is not h11.DONE:
                    return
                side.start_next_cycle()


def saying(*parts: bytes, after: int = 1, close: bool = True, reset: bool = False) -> Answering:
    """A far side that says fixed bytes once `after` bytes came, part by part, and then closes, resets, or stays."""

    async def answers(carried: Carried, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(carried.raw) < after or (after == 1 and b"\r\n\r\n" not in carried.raw):
            data = await reader.read(65536)
            if not data:
                return
            carried.raw += data
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        if reset:
            await asyncio.sleep(0.02)  # what was said is read before the reset eats it
            with_reset(writer)
            return
        if close:
            return
        while data := await reader.read(65536):
            carried.raw += data

    return answers


def with_reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the other end sees a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
