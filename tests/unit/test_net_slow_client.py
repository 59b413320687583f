"""A client that does not read holds the far side: what waits for it is bounded, however long the answer is."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest
from tests.fakes.gate import FakeGate
from tests.fakes.net_front import Wire, a_world

ENDLESS = 1 << 30
BOUND = 48 * 1024 * 1024
"""More than the sockets of two connections and our own buffer take."""
HEADS = {
    "chunked": b"transfer-encoding: chunked\r\n",
    "with a length": b"content-length: %d\r\n" % ENDLESS,
    "to its end": b"connection: close\r\n",
}


@pytest.mark.parametrize("name", HEADS)
def test_a_client_that_does_not_read_holds_the_far_side(tmp_path: Path, name: str) -> None:
    gate = FakeGate()
    sent = 0
    over = threading.Event()
    data = b"x" * 65536

    def script(wire: Wire) -> None:
        nonlocal sent
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n" + HEADS[name] + b"\r\n")
        wire.sock.settimeout(0.2)
        while sent < 2 * BOUND and not over.is_set():
            try:
                wire.send(b"%x\r\n%b\r\n" % (len(data), data) if name == "chunked" else data)
            except TimeoutError:  # it is not taken any more
                over.wait(10)
                return
            sent += len(data)

    with a_world(tmp_path, gate) as world:
        world.serve(script)
        wire = world.connect()
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.send(b"GET / HTTP/1.1\r\nhost: far.test\r\n\r\n")
        wire.until(b"\r\n\r\n")
        before = -1
        while sent != before:
            before = sent
            time.sleep(0.3)
        assert sent < BOUND
        over.set()
        wire.close()
        world.eventually(lambda: bool(gate.responses))
