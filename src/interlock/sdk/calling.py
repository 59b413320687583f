"""A guarded function, and the steps of one call of it: on record, decided, made, and its answer on record."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import field, replace
from threading import Lock
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any

from interlock.model.errors import InputError
from interlock.model.records import dataclass
from interlock.model.tools import ToolCall
from interlock.sdk import answers, jobs
from interlock.sdk.arguments import Signature, call_text
from interlock.sdk.errors import ArgumentError, Refusal, TimedOut
from interlock.sdk.holding import TurnedAway
from interlock.sdk.placeholder import Placeholder

if TYPE_CHECKING:
    from interlock.sdk.scope import Scope

MAX_ITEMS = 100_000
"""What a guarded generator may give: its answer is read whole before anything of it is handed on."""
MAX_ANSWERS = 1_024
"""So many answers are kept for a caller that comes a second time with the same id."""
_PLACEHOLDER_RULE = "placeholder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A function that is guarded.

    Takes: `declared`, its roles as the key `tools` of a policy has them, empty where the policy itself says them;
    `signature`, None where the arguments come by name and are the whole of what the agent says.
    """

    name: str
    function: Callable[..., Any]
    is_async: bool
    declared: Mapping[str, object] = field(default_factory=dict)
    signature: Signature | None = None
    deadline_s: float | None = None
    returns_refusals: bool = False

    def calling(self, function: Callable[..., Any], *, is_async: bool) -> Guarded:
        """Return the same guard around another function: an adapter has one for each call."""
        return replace(self, function=function, is_async=is_async)

    def text_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return the arguments as the ledger has them. Raises: ArgumentError; TypeError, as the function would."""
        named = kwargs if self.signature is None else self.signature.named(args, kwargs)
        return call_text(self.name, named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """The answer of a function that was called."""

    value: Any


Outcome = Came | Refusal | Placeholder


class Calls:
    """The calls of a scope by the ids that their callers gave: each is made once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._known: dict[str, tuple[str, str, Future[Outcome] | None]] = {}

    def next_id(self) -> str:
        """Return an id for a call whose caller gave none."""
        with self._lock:
            self._count += 1
            return f"c{self._count}"

    def open(self, call_id: str, tool: str, text: str) -> tuple[Future[Outcome], bool]:
        """Return the future of a call's outcome, and whether the call is new.

        Raises: InputError, where the id was given to another call, or its answer is kept no more.
        """
        with self._lock:
            known = self._known.get(call_id)
            if known is None:
                future: Future[Outcome] = Future()
                self._known[call_id] = (tool, text, future)
                self._forget_some()
                return future, True
        if known[:2] != (tool, text):
            raise InputError(
                f"the call id `{call_id}` was given to another call before",
                hint="give each call an id of its own",
            )
        if known[2] is None or call_id in jobs.inside.get():
            why = "is being made, by the function that makes it again" if known[2] else "was made long before"
            raise InputError(f"the call `{call_id}` {why}", hint="give each call an id of its own")
        return known[2], False

    def _forget_some(self) -> None:
        if len(self._known) > MAX_ANSWERS:
            for call_id, (tool, text, future) in self._known.items():
                if future is not None and future.done():
                    self._known[call_id] = (tool, text, None)
                    break


def calling(scope: Scope, calls: Calls, make: jobs.Make) -> jobs.Steps[Outcome]:
    """Do one call, once.

    Raises: what the function raises; InputError, LedgerLost: then it was not called.
    """
    text = make.text()
    if not make.call_id:
        return (yield from _once(scope, make, text, calls.next_id()))
    future, is_new = calls.open(make.call_id, make.guarded.name, text)
    if not is_new:
        known: Outcome = yield jobs.Wait(future=future)
        return known
    try:
        outcome = yield from _once(scope, make, text, make.call_id)
    except Exception as error:
        future.set_exception(error)
        raise
    except BaseException:
        future.set_exception(
            InputError(
                f"the call `{make.call_id}` was broken off, so nobody knows what it did",
                hint="look whether it did its work, then call it with an id of its own",
            )
        )
        raise
    future.set_result(outcome)
    return outcome


def _once(scope: Scope, make: jobs.Make, text: str, call_id: str) -> jobs.Steps[Outcome]:
    name = make.guarded.name
    call = ToolCall(call=call_id, tool=name, arguments=text, branch=make.branch)
    effect_id, passage, work = scope.propose(call, make)
    if work or isinstance(passage, Future):
        passage = yield from scope.settling(effect_id, passage, work)
    if isinstance(passage, Placeholder):
        return passage
    if isinstance(passage, TurnedAway):
        scope.sign()  # what the agent is told is to be found in the ledger
        refusal = scope.refusal(name, effect_id, passage.exception, text)
        again = _with_values(scope, make) if refusal.violated_rule == _PLACEHOLDER_RULE else None
        return refusal if again is None else (yield from _once(scope, again, again.text(), call_id))
    try:
        value = yield make
        result = answers.done(value)
    except Exception as error:
        known = not isinstance(error, TimedOut)
        result = answers.failed(error) if known else answers.unknown(str(error))
        scope.returned(effect_id, result, at_once=True)
        raise
    except BaseException as error:
        broken = answers.unknown(f"it was broken off: {type(error).__name__}")
        scope.returned(effect_id, broken, at_once=True)
        raise
    scope.returned(effect_id, result, at_once=scope.changes(name))
    return Came(value=answers.handed(value))


def _with_values(scope: Scope, make: jobs.Make) -> jobs.Make | None:
    """Return a call with values where the program itself handed placeholders on; None where one has no value.

    Holds: it goes through the whole decision again, and holds no placeholder any more.
    """
    values = _Values()
    again = replace(make, args=values.in_place(make.args), kwargs=values.in_place(make.kwargs))
    if not values.found or values.missing or scope.held_in(again.text()):
        return None
    return again


class _Values:
    """Puts what came back in the place of placeholders. Holds: `missing`, whether one of them has no value."""

    def __init__(self) -> None:
        self.found = False
        self.missing = False

    def in_place(self, value: Any) -> Any:
        """Return the same with values in place of placeholders, in lists, tuples and dicts too."""
        if isinstance(value, Placeholder):
            self.found = True
            if value.state != "made":
                self.missing = True
                return value
            return value.value()
        if type(value) is dict:
            return {key: self.in_place(one) for key, one in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self.in_place(one) for one in value)
        return value


def whole(function: Callable[..., Any], name: str) -> tuple[Callable[..., Any], bool]:
    """Return a function whose answer is there as a whole when it comes back, and whether it is a coroutine function.

    Holds: what a generator says counts from there on where it was read, so it is read to its end first.
    """
    if inspect.isasyncgenfunction(function):

        async def collected(*args: Any, **kwargs: Any) -> answers.Items:
            return await _all_of(function(*args, **kwargs), name)

        return collected, True
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose call is a coroutine function
    ):
        return function, True

    def called(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        return _checked(value, name) if type(value) in _LATER or hasattr(value, "__await__") else value

    return called, False


_LATER = (GeneratorType, AsyncGeneratorType)


def _checked(value: Any, name: str) -> Any:
    if isinstance(value, Generator) and not hasattr(value, "__await__"):
        items = []
        for item in value:
            items.append(item)
            if len(items) > MAX_ITEMS:
                value.close()
                raise _too_many(name)
        return answers.Items(items=tuple(items))
    if close := getattr(value, "close", None):
        close()
    raise ArgumentError(
        f"`{name}` is a plain function that gave something to await, so its answer could not be seen",
        hint="guard a coroutine function: async def",
    )


async def _all_of(given: AsyncGenerator[Any, None], name: str) -> answers.Items:
    items = []
    try:
        async for item in given:
            items.append(item)
            if len(items) > MAX_ITEMS:
                raise _too_many(name)
    finally:
        await given.aclose()
    return answers.Items(items=tuple(items))


def _too_many(name: str) -> ArgumentError:
    return ArgumentError(
        f"`{name}` gives more than {MAX_ITEMS:,} items, and a guarded answer is read whole first",
        hint="have it give fewer at a time, in pages",
    )
