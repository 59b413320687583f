"""A serving of the doors that says to each caller where it was going, and notes it."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial

from interlock.boundary.net.doors import Doors, original_destination


class Porter:
    """Serves a run's doors in a loop of its own.

    Takes: `on_word`, called with each text that a connection sends, before it is answered.
    Holds: `noted` has a line for each caller: `tcp HOST PORT`, `straight`, `dns TEXT`, `published PORT TEXT`.
    """

    def __init__(
        self,
        doors: Doors,
        on_word: Callable[["Porter", str], None] = lambda _porter, _word: None,
        new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    ) -> None:
        self.loop = new_loop()
        self.noted: list[str] = []
        self.closed = 0
        self.failure: BaseException | None = None
        self._on_word = on_word
        self._open: set[socket.socket] = set()
        for door in doors.tcp:
            self.loop.add_reader(door, partial(self._accept, door, ""))
        for door in doors.dns:
            self.loop.add_reader(door, partial(self._name, door))
        for published, sockets in doors.published:
            for door in sockets:
                self.loop.add_reader(door, partial(self._accept, door, str(published.port)))

    def _accept(self, door: socket.socket, published: str) -> None:
        while True:
            try:
                caller, _ = door.accept()
            except BlockingIOError:
                return
            caller.setblocking(False)
            self._open.add(caller)
            where = f"published {published}"
            if not published:
                try:
                    where = "tcp {} {}".format(*original_destination(caller))
                except OSError:
                    where = "straight"
            self.noted.append(where)
            self.loop.add_reader(caller, partial(self._read, caller, where))

    def _read(self, caller: socket.socket, where: str) -> None:
        try:
            data = caller.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._leave(caller)
            return
        self._on_word(self, data.decode())
        caller.send(where.encode() + b"\n")

    def _leave(self, caller: socket.socket) -> None:
        self.loop.remove_reader(caller)
        self._open.discard(caller)
        caller.close()

    def _name(self, door: socket.socket) -> None:
        data, caller = door.recvfrom(4096)
        self.noted.append(f"dns {data.decode()}")
        door.sendto(b"answer to " + data, caller)

    def close(self) -> None:
        self.closed += 1
        for caller in tuple(self._open):
            self._leave(caller)
        self.loop.close()
