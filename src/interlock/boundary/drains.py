"""When a kernel event happened, as far as can be told: events carry an order of ours and no time."""

import time
from bisect import bisect_left

_REALTIME_COARSE = 5
"""CLOCK_REALTIME_COARSE of clock_gettime(2), the clock that file systems stamp their files with."""
_KEPT = 4096


def stamp_clock_ns() -> int:
    """Return the time that the kernel would stamp a file with now, nanoseconds since 1970, never later."""
    return time.clock_gettime_ns(_REALTIME_COARSE)


class DrainTimes:
    """Remembers at which moments the kernel's queue was empty, and after which event.

    Holds: at most `_KEPT` moments; of a longer run every second one is forgotten, so that an answer may lie
    earlier than it could, and never later.
    """

    __slots__ = ("_orders", "_times")

    def __init__(self) -> None:
        self._orders = [0]
        self._times = [0]

    def note(self, order: int, at_ns: int) -> None:
        """Note that at `at_ns` every event up to `order` had been taken, and no other had happened."""
        if order == self._orders[-1]:
            self._times[-1] = at_ns
            return
        if len(self._orders) == _KEPT:
            self._orders, self._times = self._orders[::2], self._times[::2]
        self._orders.append(order)
        self._times.append(at_ns)

    def before(self, order: int) -> int:
        """Return a time before which the event of this order had not happened, 0 where nothing is known."""
        index = bisect_left(self._orders, order) - 1
        return self._times[index] if index >= 0 else 0
