"""Waits for what happens in a run: by a plain poll, and in an event loop once someone serves the network.

Both do the same things in answer; only the waiting differs. The poll comes first since a run without traffic then
never loads an event loop.
"""

import select
from collections.abc import Callable
from typing import TYPE_CHECKING

from interlock.model.records import dataclass

if TYPE_CHECKING:
    import asyncio

PAUSE_MS = 5
"""After a source that rests: a wake-up for each file event would cost the command more than the event itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A descriptor, and what is done when it can be read.

    Takes: `rests`, whether it is left alone for a moment after each time.
    """

    descriptor: int
    react: Callable[[], None]
    rests: bool = False


def by_poll(sources: tuple[Source, ...], doors: tuple[int, ...], over: Callable[[], bool]) -> bool:
    """Wait and react until it is over, or somebody waits at a door.

    Returns: whether somebody waits.
    """
    poll = select.poll()
    quiet = select.poll()
    reactions = {one.descriptor: one for one in sources}
    for one in sources:
        poll.register(one.descriptor, select.POLLIN)
        if not one.rests:
            quiet.register(one.descriptor, select.POLLIN)
    for door in doors:
        poll.register(door, select.POLLIN)
        quiet.register(door, select.POLLIN)
    pause = False
    while not over():
        ready = quiet.poll(PAUSE_MS) if pause else poll.poll()
        pause = knocked = False
        for descriptor, _ in ready:
            source = reactions.get(descriptor)
            if source is None:
                knocked = True
                continue
            source.react()
            if over():
                return False
            pause = pause or source.rests
        if knocked:
            return True
    return False


def by_loop(loop: "asyncio.AbstractEventLoop", sources: tuple[Source, ...], over: Callable[[], bool]) -> bool:
    """Wait and react in an event loop until it is over.

    Returns: whether it is over; else somebody else stopped the loop.
    Raises: what a reaction raised.
    """
    failures: list[BaseException] = []

    def watch(source: Source) -> None:
        if not over() and not failures:
            loop.add_reader(source.descriptor, answer, source)

    def answer(source: Source) -> None:
        if over() or failures:
            return
        try:
            source.react()
        except BaseException as error:  # noqa: BLE001 - it goes up as it is, from here and not into the loop's log
            failures.append(error)
        if over() or failures:
            loop.stop()
        elif source.rests:
            loop.remove_reader(source.descriptor)
            loop.call_later(PAUSE_MS / 1e3, watch, source)

    for source in sources:
        watch(source)
    try:
        if not over():
            loop.run_forever()
    finally:
        for source in sources:
            loop.remove_reader(source.descriptor)
    if failures:
        raise failures[0]
    return over()
