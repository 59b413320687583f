"""What an exchange needs of the front that began it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from interlock.boundary.net.credentials import Credentials
from interlock.boundary.net.gate import Gate
from interlock.boundary.net.plan import NetPlan
from interlock.boundary.net.pool import Pool
from interlock.boundary.net.proposing import Sight
from interlock.boundary.net.settings import Place, Setting


class Around(Setting, Protocol):
    """The front as an exchange sees it.

    Holds: `tokens` are the placeholders of parked requests, with the effect that each stands for; `parked_folder` takes
    the requests that are parked; `endings` are called when the run ends, by streams that have an end to say; `renamed`
    has the ids by which a provider keeps answers that the agent knows by others.
    """

    loop: asyncio.AbstractEventLoop
    plan: NetPlan
    gate: Gate
    pool: Pool
    credentials: Credentials
    sight: Sight
    tokens: dict[str, str]
    parked_folder: str
    endings: set[Callable[[], None]]
    renamed: dict[str, str]

    def run(self, work: Coroutine[Any, Any, None], place: Place | None = None) -> "asyncio.Task[None] | None":
        """Run what waits, until the front closes. Returns: None where it has closed."""
        ...
