"""A front on loopback: a real loop in a thread, a real door, and far sides that are scripts in threads."""

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.fakes.gate import FakeGate

from interlock.boundary.net import authority, far_tls
from interlock.boundary.net.dialling import DialError, Dialled
from interlock.boundary.net.doors import Doors
from interlock.boundary.net.front import Front
from interlock.boundary.net.names import Names
from interlock.boundary.net.plan import NetLimits, NetPlan, Published

WAIT_SECONDS = 10.0
_authorities: dict[str, authority.Authority] = {}
_files: dict[str, authority.AuthorityFiles] = {}


def one_authority(name: str, folder: Path) -> authority.Authority:
    """Make an authority once for all tests of a process."""
    if name not in _authorities:
        _files[name] = authority.take(str(folder / f"authority-{name}"))
        _authorities[name] = authority.Authority(_files[name], str(folder / f"authority-{name}"))
    return _authorities[name]


def client_context() -> ssl.SSLContext:
    """Make a context that trusts the run's authority, as the sandbox's tools do."""
    return ssl.create_default_context(cadata=_files["run"].certificate_pem.decode())


class Wire:
    """A blocking connection that reads HTTP/1 as a careful client would."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = b""
        sock.settimeout(WAIT_SECONDS)

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def more(self) -> bool:
        data = self.sock.recv(1 << 18)
        self.buffer += data
        return bool(data)

    def until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            if not self.more():
                raise EOFError(self.buffer)
        found, _, self.buffer = self.buffer.partition(mark)
        return found + mark

    def exactly(self, size: int) -> bytes:
        parts, have = [self.buffer], len(self.buffer)
        while have < size:
            data = self.sock.recv(1 << 18)
            if not data:
                raise EOFError(have)
            parts.append(data)
            have += len(data)
        whole = b"".join(parts)
        found, self.buffer = whole[:size], whole[size:]
        return found

    def rest(self) -> bytes:
        while self.more():
            pass
        found, self.buffer = self.buffer, b""
        return found

    def head(self) -> tuple[str, dict[str, str]]:
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        fields: dict[str, str] = {}
        for line in lines[1:]:
            if line:
                name, _, value = line.partition(":")
                fields[name.lower()] = (
                    fields[name.lower()] + "," if name.lower() in fields else ""
                ) + value.strip()
        return lines[0], fields

    def body(self, fields: dict[str, str]) -> bytes:
        if fields.get("transfer-encoding") == "chunked":
            whole = b""
            while size := int(self.until(b"\r\n"), 16):
                whole += self.exactly(size)
                assert self.exactly(2) == b"\r\n"
            self.trailers = self.until(b"\r\n")
            while self.trailers[-4:] != b"\r\n\r\n" and self.trailers != b"\r\n":
                self.trailers += self.until(b"\r\n")
            return whole
        if "content-length" in fields:
            return self.exactly(int(fields["content-length"]))
        return b""

    def answer(self, *, head: bool = False) -> tuple[int, dict[str, str], bytes]:
        line, fields = self.head()
        status = int(line.split()[1])
        if head or status in (204, 304) or status < 200:
            return status, fields, b""
        if "content-length" not in fields and "transfer-encoding" not in fields:
            return status, fields, self.rest()
        return status, fields, self.body(fields)

    def ask(self, data: bytes, *, head: bool = False) -> tuple[int, dict[str, str], bytes]:
        self.send(data)
        return self.answer(head=head)

    def close(self) -> None:
        self.sock.close()


class Far:
    """A far side on loopback: every connection runs the script in a thread of its own."""

    def __init__(self, script: Callable[[Wire], None], context: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._context = context
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self.listener.getsockname()[1]
        self.accepted = 0
        self.failures: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            thread = threading.Thread(target=self._run, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, sock: socket.socket) -> None:
        self._open.add(sock)
        try:
            if self._context is not None:
                sock.settimeout(WAIT_SECONDS)
                sock = self._context.wrap_socket(sock, server_side=True)
                self._open.add(sock)
            self._script(Wire(sock))
        except (EOFError, OSError):
            pass
        except BaseException as error:
            self.failures.append(error)
        finally:
            sock.close()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._thread.join(WAIT_SECONDS)
        for sock in self._open:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(WAIT_SECONDS)
        for sock in self._open:
            sock.close()
        assert not self.failures, self.failures


class World:
    """A front with its far sides.

    Takes: `far`, by name and port as the client sees them; `goes_to`, where the next connections are meant to go.
    """

    def __init__(
        self, folder: Path, gate: FakeGate, plan: NetPlan | None = None, *, uv: bool = False
    ) -> None:
        self.folder = folder
        self.gate = gate
        base = folder / "run"
        base.mkdir(exist_ok=True)
        self.far_authority = one_authority("far", folder)
        self.authority = one_authority("run", folder)
        trust = folder / "far.pem"
        trust.write_bytes(_files["far"].certificate_pem)
        self.plan = replace(
            plan if plan is not None else NetPlan(folder=""), folder=str(base), trust_file=str(trust)
        )
        self.names = Names()
        self.far: dict[tuple[str, int], Far] = {}
        self.goes_to: tuple[str, int] | None = ("", 0)
        self.dials: list[tuple[str, int, bool, str]] = []
        self.wires: list[Wire] = []
        door = socket.create_server(("127.0.0.1", 0), backlog=2048)
        door.setblocking(False)
        self.door = door.getsockname()
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        self.datagrams = datagrams.getsockname()
        published: list[tuple[Published, tuple[socket.socket, ...]]] = []
        self.published_at: dict[int, tuple[str, int]] = {}
        for one in self.plan.published:
            listener = socket.create_server(("127.0.0.1", 0))
            listener.setblocking(False)
            self.published_at[one.port] = listener.getsockname()
            published.append((one, (listener,)))
        if uv:
            import uvloop

            self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        else:
            self.loop = asyncio.new_event_loop()
        self.faults: list[dict[str, object]] = []
        self.loop.set_exception_handler(lambda _loop, context: self.faults.append(context))
        self.front = Front(
            Doors(tcp=(door,), dns=(datagrams,), published=tuple(published)),
            self.plan,
            gate,
            self.authority,
            self.names,
            self.loop,
            destination=self._destination,
            dialler=self._dial,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def _destination(self, _sock: socket.socket) -> tuple[str, int]:
        if self.goes_to is None:
            raise OSError("straight to the door")
        return self.goes_to

    async def _dial(
        self,
        plan: NetPlan,
        host: str,
        port: int,
        *,
        tls: bool,
        alpn: tuple[str, ...],
        address: str = "",
        published: bool = False,
    ) -> Dialled:
        self.dials.append((host, port, tls, address))
        far = self.far.get((host, port))
        if far is None:
            raise DialError(f"`{host}` is not in this world", "refused")

        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, ("127.0.0.1", far.port))
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError):
                raise
            raise DialError(f"`{host}` does not answer", "refused") from None
        if not tls:
            return Dialled(sock=sock, alpn="", peer="127.0.0.1")
        secured = await far_tls.secure(plan.trust_file, sock, host, port, alpn)
        return Dialled(sock=secured, alpn=secured.selected_alpn_protocol() or "", peer="127.0.0.1")

    def serve(
        self, script: Callable[[Wire], None], host: str = "far.test", port: int = 80, *, tls: bool = False
    ) -> Far:
        before = self.far.pop((host, port), None)
        if before is not None:
            before.close()
        context = self.far_authority.context(host, ("http/1.1",)) if tls else None
        far = self.far[host, port] = Far(script, context)
        return far

    def meant_for(self, host: str, port: int) -> None:
        self.goes_to = (self.names.address_of(host)[0], port)

    def connect(self, host: str = "far.test", port: int = 80, *, by_address: bool = False) -> Wire:
        """Connect as if to the name's placeholder address, or to an address."""
        if by_address:
            self.goes_to = (host, port)
        else:
            self.meant_for(host, port)
        return self.dial_door(self.door)

    def dial_door(self, door: tuple[str, int]) -> Wire:
        """Connect to a door; the wire is closed with the world at the latest."""
        wire = Wire(socket.create_connection(door, WAIT_SECONDS))
        self.wires.append(wire)
        return wire

    def connect_tls(
        self,
        host: str = "far.test",
        port: int = 443,
        *,
        sni: str | None = None,
        by_address: bool = False,
        alpn: tuple[str, ...] = (),
    ) -> Wire:
        wire = self.connect(host, port, by_address=by_address)
        context = client_context()
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if sni == "":
            context.check_hostname = False
        try:
            wire.sock = context.wrap_socket(wire.sock, server_hostname=(host if sni is None else sni) or None)
        except BaseException:
            wire.sock.close()
            raise
        return wire

    def eventually(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while not holds():
            assert time.monotonic() < end, (self.gate.responses, self.gate.away, self.faults)
            time.sleep(0.005)

    def on_loop(self, call: Callable[[], None]) -> None:
        done = threading.Event()

        def run() -> None:
            call()
            done.set()

        self.loop.call_soon_threadsafe(run)
        assert done.wait(WAIT_SECONDS)

    def close(self) -> None:
        for wire in self.wires:
            wire.close()
        self.on_loop(self.front.end)
        asyncio.run_coroutine_threadsafe(self.front.settled(), self.loop).result(WAIT_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(WAIT_SECONDS)
        self.loop.close()
        for far in self.far.values():
            far.close()
        assert not self.faults, self.faults


@contextlib.contextmanager
def a_world(
    folder: Path,
    gate: FakeGate | None = None,
    plan: NetPlan | None = None,
    *,
    uv: bool = False,
    limits: NetLimits | None = None,
) -> Iterator[World]:
    made = plan if plan is not None else NetPlan(folder="")
    if limits is not None:
        made = replace(made, limits=limits)
    world = World(folder, gate if gate is not None else FakeGate(), made, uv=uv)
    try:
        yield world
    finally:
        world.close()


def page(wire: Wire) -> None:
    """Answer every request with what came."""
    while True:
        line, fields = wire.head()
        body = wire.body(fields)
        text = f"{line}|{fields.get('host')}|".encode() + body
        wire.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(text) + text
        )
