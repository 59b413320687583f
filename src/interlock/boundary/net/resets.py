"""Hears of connections that the other end reset.

uvloop 0.23 calls neither the reader nor the writer of a socket that comes to an error: libuv stops watching it, and who
waits for its answer would wait forever. So each connection stands in an epoll of its own too, which is asked for
errors alone.
"""

import select
from asyncio import AbstractEventLoop
from collections.abc import Callable
from weakref import WeakKeyDictionary

_AT_ONCE = 64


class Resets:
    """The connections of one loop, by descriptor."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._epoll = select.epoll()
        self._told: dict[int, Callable[[], None]] = {}
        loop.add_reader(self._epoll.fileno(), self._heard)

    def add(self, descriptor: int, told: Callable[[], None]) -> None:
        """Call `told` when the connection breaks."""
        self._told[descriptor] = told
        # An error is always reported; edge-triggered, so that one that nobody reads on is told once.
        self._epoll.register(descriptor, select.EPOLLET)

    def remove(self, descriptor: int) -> None:
        """Forget a connection, before its descriptor is closed or given away."""
        if self._told.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def _heard(self) -> None:
        for descriptor, what in self._epoll.poll(0, _AT_ONCE):
            told = self._told.get(descriptor)
            if told is not None and what & select.EPOLLERR:
                told()


_by_loop: WeakKeyDictionary[AbstractEventLoop, Resets] = WeakKeyDictionary()


def resets_of(loop: AbstractEventLoop) -> Resets:
    """Return the loop's own."""
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = Resets(loop)
    return found
