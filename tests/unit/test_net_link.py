"""A link over real sockets: order, ends, marks, and that its end is told once."""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fakes.net_front import client_context, one_authority

from interlock.boundary.net.link import HIGH_BYTES, SocketLink

BOTH = pytest.mark.parametrize("tls", [False, True])


class Ends:
    """A link on a loop of its own, and the blocking other end."""

    def __init__(self, folder: Path, tls: bool, *, uv: bool = False) -> None:
        near, far = socket.socketpair()
        if tls:
            server = one_authority("run", folder).context("far.test")
            made: list[ssl.SSLSocket] = []
            thread = threading.Thread(target=lambda: made.append(server.wrap_socket(near, server_side=True)))
            thread.start()
            far = client_context().wrap_socket(far, server_hostname="far.test")
            thread.join()
            near = made[0]
        near.setblocking(False)
        far.settimeout(5)
        self.far = far
        if uv:
            import uvloop

            self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        else:
            self.loop = asyncio.new_event_loop()
        self.link = SocketLink(self.loop, near)
        self.came = b""
        self.told: list[str] = []
        self.link.on_data = self._data
        self.link.on_eof = lambda: self.told.append("eof")
        self.link.on_closed = lambda: self.told.append("closed")
        self.link.on_room = lambda: self.told.append("room")
        self.link.resume()

    def _data(self, data: bytes) -> None:
        self.came += data

    def until(self, holds: Callable[[], bool]) -> None:
        async def wait() -> None:
            async with asyncio.timeout(5):
                while not holds():
                    await asyncio.sleep(0.002)

        self.loop.run_until_complete(wait())

    def in_thread(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def read_all(self) -> bytes:
        parts: list[bytes] = []

        def work() -> None:
            with contextlib.suppress(ssl.SSLError):
                while data := self.far.recv(65536):
                    parts.append(data)

        thread = self.in_thread(work)
        self.until(lambda: not thread.is_alive())
        return b"".join(parts)


@contextlib.contextmanager
def ends(folder: Path, tls: bool, *, uv: bool = False) -> Iterator[Ends]:
    made = Ends(folder, tls, uv=uv)
    try:
        yield made
    finally:
        made.link.abort()
        made.loop.run_until_complete(asyncio.sleep(0))
        made.far.close()
        made.loop.close()


@BOTH
@pytest.mark.parametrize("uv", [False, True])
def test_much_goes_both_ways_in_order(tmp_path: Path, tls: bool, uv: bool) -> None:
    data = bytes(range(256)) * 8000
    with ends(tmp_path, tls, uv=uv) as both:
        thread = both.in_thread(lambda: both.far.sendall(data))
        both.until(lambda: len(both.came) == len(data))
        thread.join()
        assert both.came == data
        for at in range(0, len(data), 100_000):
            both.link.write(data[at : at + 100_000])
        both.link.close()
        assert both.read_all() == data


@BOTH
def test_a_slow_reader_fills_it_and_room_is_told(tmp_path: Path, tls: bool) -> None:
    with ends(tmp_path, tls) as both:
        written = 0
        while not both.link.full:
            both.link.write(b"a" * 100_000)
            written += 100_000
        assert written < HIGH_BYTES * 20
        both.until(lambda: True)
        assert both.told == []
        both.link.finish()
        assert len(both.read_all()) == written
        assert both.told.count("room") <= 1
        assert "eof" not in both.told


@BOTH
def test_each_direction_ends_on_its_own(tmp_path: Path, tls: bool) -> None:
    with ends(tmp_path, tls) as both:
        both.link.finish()
        assert both.read_all() == b""
        both.far.close()
        both.until(lambda: "closed" in both.told)
        assert both.told == ["eof", "closed"]


@BOTH
def test_what_is_closed_says_so_once_and_calls_no_more(tmp_path: Path, tls: bool) -> None:
    with ends(tmp_path, tls) as both:
        both.link.write(b"last")
        both.link.close()
        both.link.close()
        both.link.write(b"lost")
        assert both.far.recv(100) == b"last"
        with contextlib.suppress(OSError):
            both.far.send(b"unheard")
        both.far.close()
        both.until(lambda: both.told == ["closed"])
        both.link.abort()
        both.until(lambda: True)
        assert both.told == ["closed"]
        assert both.came == b""


@BOTH
def test_paused_it_reads_nothing_and_then_all(tmp_path: Path, tls: bool) -> None:
    with ends(tmp_path, tls) as both:
        both.link.pause()
        both.far.sendall(b"a" * 40_000)
        both.loop.run_until_complete(asyncio.sleep(0.02))
        assert both.came == b""
        both.link.resume()
        both.until(lambda: len(both.came) == 40_000)


def test_a_tls_end_without_goodbye_is_a_cut(tmp_path: Path) -> None:
    with ends(tmp_path, True) as both:
        socket.socket.shutdown(both.far, socket.SHUT_WR)
        both.until(lambda: both.told == ["eof"])
        assert not both.link.clean_eof


def test_a_fault_in_what_reads_it_ends_it_alone(tmp_path: Path) -> None:
    with ends(tmp_path, False) as both:
        faults: list[object] = []
        both.loop.set_exception_handler(lambda _loop, context: faults.append(context["exception"]))

        def fault(_data: bytes) -> None:
            raise ValueError

        both.link.on_data = fault
        both.far.sendall(b"x")
        both.until(lambda: both.told == ["closed"])
        assert isinstance(faults[0], ValueError)


def test_it_gives_its_socket_away(tmp_path: Path) -> None:
    with ends(tmp_path, False) as both:
        sock = both.link.detach()
        both.far.sendall(b"mine")
        assert sock.recv(10) == b"mine"
        both.until(lambda: True)
        assert (both.came, both.told) == (b"", [])
        sock.close()


@pytest.mark.parametrize("uv", [False, True], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("writing", [False, True])
def test_a_reset_after_an_answer_is_told_with_the_answer(uv: bool, writing: bool) -> None:
    """uvloop by itself tells neither reader nor writer of it."""
    loop = _loop(uv)
    near, far = _tcp()
    near.setblocking(False)
    link = SocketLink(loop, near)
    came, told = bytearray(), []
    link.on_data = came.extend
    link.on_closed = lambda: told.append("closed")
    link.resume()
    if writing:
        link.write(b"x" * 20_000_000)  # more than the socket takes
    loop.call_later(0.02, _answer_and_reset, far)
    loop.call_later(1.0, loop.stop)
    link.on_closed = lambda: (told.append("closed"), loop.stop())[0]
    loop.run_forever()
    assert (bytes(came), told) == (b"early", ["closed"])
    loop.close()


def test_a_reset_of_a_paused_link_is_told_when_it_reads_on() -> None:
    loop = _loop(True)
    near, far = _tcp()
    near.setblocking(False)
    link = SocketLink(loop, near)
    came, told = bytearray(), []
    link.on_data = came.extend
    link.on_closed = lambda: (told.append("closed"), loop.stop())[0]
    _answer_and_reset(far)
    loop.call_later(0.05, link.resume)
    loop.call_later(1.0, loop.stop)
    loop.run_forever()
    assert (bytes(came), told) == (b"early", ["closed"])
    loop.close()


def _loop(uv: bool) -> asyncio.AbstractEventLoop:
    import uvloop

    made: asyncio.AbstractEventLoop = uvloop.new_event_loop() if uv else asyncio.new_event_loop()
    return made


def _tcp() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        return near, listening.accept()[0]


def _answer_and_reset(far: socket.socket) -> None:
    far.sendall(b"early")
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    far.close()
