"""The two ways to wait do the same things in answer."""

import asyncio
import os
import time
from collections.abc import Callable

import pytest

from interlock.boundary.waiting import Source, by_loop, by_poll

Wait = Callable[[tuple[Source, ...], Callable[[], bool]], bool]


def _poll(sources: tuple[Source, ...], over: Callable[[], bool]) -> bool:
    return not by_poll(sources, (), over)


def _loop(sources: tuple[Source, ...], over: Callable[[], bool]) -> bool:
    loop = asyncio.new_event_loop()
    try:
        return by_loop(loop, sources, over)
    finally:
        loop.close()


both = pytest.mark.parametrize("wait", [_poll, _loop])


@both
def test_waiting_reacts_until_it_is_over(wait: Wait) -> None:
    reader, writer = os.pipe()
    seen: list[bytes] = []
    os.write(writer, b"abc")
    assert wait(
        (Source(descriptor=reader, react=lambda: seen.append(os.read(reader, 1))),), lambda: len(seen) == 3
    )
    assert seen == [b"a", b"b", b"c"]
    os.close(reader)
    os.close(writer)


@both
def test_waiting_leaves_a_source_that_rests_alone_for_a_moment_and_no_other(wait: Wait) -> None:
    restful, one = os.pipe()
    eager, two = os.pipe()
    at: list[float] = []
    seen: list[bytes] = []
    os.write(one, b"abc")
    os.write(two, b"x" * 50)

    def rest() -> None:
        at.append(time.monotonic())
        os.read(restful, 1)

    assert wait(
        (
            Source(descriptor=restful, react=rest, rests=True),
            Source(descriptor=eager, react=lambda: seen.append(os.read(eager, 1))),
        ),
        lambda: len(at) == 3 and len(seen) == 50,
    )
    if wait is _loop:  # the poll looks again at once when another source was ready
        assert at[2] - at[0] > 0.009
    for each in (restful, one, eager, two):
        os.close(each)


@both
def test_waiting_hands_up_what_a_reaction_raises(wait: Wait) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a")

    def fail() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        wait((Source(descriptor=reader, react=fail),), lambda: False)
    os.close(reader)
    os.close(writer)


def test_waiting_by_poll_says_when_somebody_knocks() -> None:
    door, visitor = os.pipe()
    os.write(visitor, b"a")
    assert by_poll((), (door,), lambda: False) is True
    assert os.read(door, 1) == b"a"
    os.close(door)
    os.close(visitor)


def test_waiting_by_loop_says_when_another_stopped_it() -> None:
    loop = asyncio.new_event_loop()
    loop.call_soon(loop.stop)
    assert by_loop(loop, (), lambda: False) is False
    loop.close()
