"""The steps of a guarded call without waiting: what has to be done next, and two ways to do it, in a thread and a loop.

The steps themselves (`scope`, `calling`) are generators that yield jobs: they decide nothing about who waits how, so a
plain function and a coroutine are guarded by the same code.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.sdk.errors import TimedOut

if TYPE_CHECKING:
    from interlock.oracle import Oracle, Question
    from interlock.sdk.calling import Guarded

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Put a question to the oracle. Gives: its answer."""

    oracle: Oracle
    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """Call a guarded function. Gives: its answer; raises what it raises.

    Takes: `call_id`, the caller's own, `""` for none: by it the function's own guarded calls know that they are inside;
    `branch`, of the agent among several whose call it is.
    """

    guarded: Guarded
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    call_id: str = ""
    branch: str = ""

    def text(self) -> str:
        """Return the arguments as the ledger has them, as they are now."""
        return self.guarded.text_of(self.args, self.kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Wait until somebody else has settled it. Gives: its value."""

    future: Future[Any]


Job = Ask | Make | Wait
Steps = Generator[Job, Any, T]

inside: contextvars.ContextVar[frozenset[str]] = contextvars.ContextVar(
    "interlock_inside", default=frozenset()
)
"""The ids of the calls whose functions run now, around this code."""


def run(steps: Steps[T]) -> T:
    """Do the jobs of some steps in this thread, one after the other, and return what the steps come to."""
    try:
        job = next(steps)
        while True:
            try:
                came = _perform(job)
            except BaseException as error:  # noqa: BLE001 - the steps put it on record, and raise it again
                job = steps.throw(error)
            else:
                job = steps.send(came)
    except StopIteration as end:
        value: T = end.value
        return value


async def arun(steps: Steps[T], *, durable: bool, until_made: bool = False) -> T:
    """Do the same in a coroutine; the loop goes on while an oracle thinks.

    Takes: `durable`, whether the steps wait for the disk: then they are taken in a thread as well; `until_made`,
    whether they do so only until the one call that they make was made.
    """
    came: Any = None
    error: BaseException | None = None
    while True:
        cancelled: asyncio.CancelledError | None = None
        if durable:
            (done, job), cancelled = await _to_its_end(_advance, steps, came, error)
        else:
            done, job = _advance(steps, came, error)
        if cancelled is not None:
            if done:
                raise cancelled
            came, error = None, cancelled  # the steps have it recorded where they stand
            continue
        if done:
            value: T = job
            return value
        durable = durable and not (until_made and isinstance(job, Make))
        try:
            came, error = await _aperform(job), None
        except BaseException as raised:  # noqa: BLE001 - the steps put it on record, and raise it again
            came, error = None, raised


async def _to_its_end(function: Callable[..., T], *args: Any) -> tuple[T, asyncio.CancelledError | None]:
    """Call a function in a thread, and wait until it is over, cancelled or not: a step is never left half done.

    Returns: also the cancellation, where there was one meanwhile.
    """
    cancelled: asyncio.CancelledError | None = None
    task = asyncio.ensure_future(asyncio.to_thread(function, *args))
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except BaseException:  # noqa: BLE001 - it is the function's own, and raised below
            break
    return task.result(), cancelled


def _advance(steps: Steps[T], came: Any, error: BaseException | None) -> tuple[bool, Any]:
    try:
        return False, steps.throw(error) if error is not None else steps.send(came)
    except StopIteration as end:
        return True, end.value


def _perform(job: Job) -> Any:
    match job:
        case Make():
            return _made(job)
        case Ask():
            return _said(job)
        case Wait():
            return job.future.result()


async def _aperform(job: Job) -> Any:
    match job:
        case Make() if job.guarded.is_async:
            return await _awaited(job)
        case Make():
            return _made(job)
        case Ask():
            return await asyncio.to_thread(_said, job)
        case Wait():
            return await asyncio.wrap_future(job.future)


def _said(job: Ask) -> Any:
    from interlock.oracle import ask

    return ask(job.oracle, job.question)


def _made(job: Make) -> Any:
    if job.guarded.is_async:
        return _in_a_loop(job)
    if job.guarded.deadline_s is None:
        return _called(job)
    return _within(job, job.guarded.deadline_s)


def _called(job: Make) -> Any:
    if not job.call_id:
        return job.guarded.function(*job.args, **job.kwargs)
    token = inside.set(inside.get() | {job.call_id})
    try:
        return job.guarded.function(*job.args, **job.kwargs)
    finally:
        inside.reset(token)


def _within(job: Make, deadline_s: float) -> Any:
    """Call it in a thread of its own. Raises: TimedOut; the thread goes on then, for nothing can stop it."""
    future: Future[Any] = Future()
    context = contextvars.copy_context()

    def call() -> None:
        try:
            future.set_result(context.run(_called, job))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, as it is
            future.set_exception(error)

    threading.Thread(target=call, name=f"interlock-{job.guarded.name}", daemon=True).start()
    try:
        return future.result(deadline_s)
    except TimeoutError:
        if future.done():
            raise  # its own
        raise _too_late(job, deadline_s) from None


async def _awaited(job: Make) -> Any:
    awaitable: Awaitable[Any] = _called(job) if not job.call_id else _marked(job)
    if job.guarded.deadline_s is None:
        return await awaitable
    try:
        async with asyncio.timeout(job.guarded.deadline_s) as clock:
            return await awaitable
    except TimeoutError:
        if not clock.expired():
            raise  # its own
        raise _too_late(job, job.guarded.deadline_s) from None


async def _marked(job: Make) -> Any:
    token = inside.set(inside.get() | {job.call_id})
    try:
        return await job.guarded.function(*job.args, **job.kwargs)
    finally:
        inside.reset(token)


def _in_a_loop(job: Make) -> Any:
    """Make a call of a coroutine function where nobody awaits: at the end of a scope that is no `async with`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(job))
    raise InputError(
        f"`{job.guarded.name}` is a coroutine function that waited, and its scope ended without `async with`",
        hint="write `async with monitor:` around it, or `await placeholder.avalue()` before the scope ends",
    )


def _too_late(job: Make, deadline_s: float) -> TimedOut:
    return TimedOut(
        f"`{job.guarded.name}` did not come back within {deadline_s:g} s; whether it did its work is not known",
        hint="look whether it did before you call it again, or give it longer: guard(…, deadline_s=…)",
    )
