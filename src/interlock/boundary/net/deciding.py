"""What the code of streams needs of the front: who decides, and where to wait for it."""

import asyncio
from typing import Protocol

from interlock.boundary.net.gate import Gate
from interlock.boundary.net.plan import NetPlan


class Deciding(Protocol):
    """The front, as a stream whose messages are decided one by one sees it."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop that calls everything."""
        ...

    @property
    def plan(self) -> NetPlan:
        """Return the plan, for its limits."""
        ...

    @property
    def gate(self) -> Gate:
        """Return who decides."""
        ...

    @property
    def tokens(self) -> dict[str, str]:
        """Return the placeholders of parked requests, with the effect that each stands for."""
        ...
