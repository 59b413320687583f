"""`Monitor`: guards the functions of a program, so that nothing of theirs happens that the policy cannot vouch for."""

from __future__ import annotations

import contextvars
import functools
import inspect
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from interlock.model.errors import InputError, InterlockError
from interlock.model.events import StuckChoice
from interlock.sdk import jobs
from interlock.sdk.arguments import Signature
from interlock.sdk.branching import branch_in
from interlock.sdk.calling import Calls, Came, Guarded, Outcome, calling, whole
from interlock.sdk.declared import declared_of, names_in, read_policy, with_tools
from interlock.sdk.errors import NoScope, Refusal, Refused
from interlock.sdk.placeholder import Placeholder

if TYPE_CHECKING:
    from types import TracebackType

    from interlock.oracle import Oracle
    from interlock.sdk.scope import Scope

P = ParamSpec("P")
R = TypeVar("R")
OnRefusal = Literal["raise", "return"]
OnFailure = Literal["drop", "skip"]

_open: contextvars.ContextVar[tuple[OpenScope, ...]] = contextvars.ContextVar("interlock_scopes", default=())
"""The scopes that are open around this code, the innermost last."""


class Monitor:
    """Guards plain functions and coroutine functions, one run a scope.

    Takes: `policy`, a policy file or the text of one, None for the default (what the task vouches for); `task`, the
    principal's words, which vouch; `oracle`, who is asked about the rest, in the words of `--oracle`, or an oracle of
    your own; `on_refusal`, whether a refused call raises `Refused` or gives a `Refusal`; `on_failure`, how the scope's
    end goes on after a call that waited and failed: `drop` what was to follow it, or `skip` it alone; `models`, the
    file of models that the oracle names; `name`, by which `interlock runs` lists its runs; `plan`, a signed plan's file
    or text, whose prompt is the task where none is given; `plan_keys`, names of keys that may have signed it beside the
    user's own.
    Raises: InputError, PolicyError.
    """

    def __init__(
        self,
        policy: str | os.PathLike[str] | None = None,
        *,
        task: str = "",
        oracle: str | Oracle = "strict",
        on_refusal: OnRefusal = "raise",
        on_failure: OnFailure = "drop",
        models: str | None = None,
        name: str = "",
        plan: str | os.PathLike[str] | None = None,
        plan_keys: Iterable[str] = (),
    ) -> None:
        _one_of("on_refusal", on_refusal, ("raise", "return"))
        _one_of("on_failure", on_failure, ("drop", "skip"))
        self._policy = read_policy(policy)
        self._plan = ""
        if plan is not None:
            from interlock.sdk.planning import read_followed

            followed = read_followed(plan, plan_keys)
            self._plan, task = followed.envelope, task or followed.task
        self._task = task
        self._oracle = oracle
        self._models = models
        self._returns_refusals = on_refusal == "return"
        self._choice = StuckChoice.DROP if on_failure == "drop" else StuckChoice.SKIP
        self._name = name or os.path.basename(sys.argv[0] if sys.argv else "") or "python"
        self._guarded: dict[str, Guarded] = {}
        self._alone: list[OpenScope] = []
        self._entered = 0
        self._counting = threading.Lock()
        self.last: Scope | None = None
        """The run that was opened last; its ledger can be verified once its scope has ended."""

    # functions

    @overload
    def guard(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def guard(
        self,
        /,
        *,
        name: str = "",
        effect: str = "",
        steers: Mapping[str, str] | None = None,
        acts: Mapping[str, str] | None = None,
        carries: Iterable[str] = (),
        parks: bool = False,
        asks: Iterable[str] = (),
        output: Mapping[str, object] | None = None,
        more: Mapping[str, object] | None = None,
        without: Iterable[str] = (),
        deadline_s: float | None = None,
        on_refusal: OnRefusal | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def guard(self, function: Any = None, /, **options: Any) -> Any:
        """Guard a function: `@monitor.guard`, or with its roles as in the key `tools` of a policy.

        Takes: `name`, its own where none is given; `effect`, `steers`, `acts`, `carries`, `parks`, `asks`, `output`
        and `more` keys, none of them where the policy says them; `without`, parameters that are the program's own;
        `deadline_s`, how long it may take; `on_refusal`, as the monitor's.
        Returns: a function that is called in its place; `Placeholder` is its answer where a call waits.
        Raises: InputError, for a role of a parameter that it does not have.
        """
        if function is None:
            return lambda given: self._guard(given, **options)
        return self._guard(function, **options)

    def _guard(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        guarded = self.declare(function, **options)
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def items(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
                came = await self._acall(guarded, args, kwargs, "")
                if isinstance(came, Refusal | Placeholder):
                    yield came
                    return
                for item in came:
                    yield item

            return items
        if guarded.is_async:

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                return await self._acall(guarded, args, kwargs, "")

            return awaited

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return self._call(guarded, args, kwargs, "")

        return called

    def declare(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        without: Iterable[str] = (),
        deadline_s: float | None = None,
        on_refusal: OnRefusal | None = None,
        by_name: bool = False,
        more: Mapping[str, object] | None = None,
        **roles: Any,
    ) -> Guarded:
        """Guard a function without a wrapper, for an adapter: `call` and `acall` take what this returns.

        Takes: as `guard`; `by_name`, whether it gets what the agent says as named arguments, whatever its own
        parameters are.
        Raises: InputError.
        """
        if not callable(function):
            raise InputError(
                f"a `{type(function).__name__}` is no function that could be guarded",
                hint="guard functions, methods and coroutine functions",
            )
        if on_refusal is not None:
            _one_of("on_refusal", on_refusal, ("raise", "return"))
        called = name or getattr(function, "__name__", "") or type(function).__name__
        declared = declared_of(called, roles, more)
        signature = None if by_name else Signature(function, without)
        if signature is not None:
            for key in ("steers", "acts", "carries", "internal_without", "chooses"):
                signature.check(names_in(declared.get(key)), key)
        made, is_async = whole(function, called)
        guarded = Guarded(
            name=called,
            function=made,
            is_async=is_async,
            declared=declared,
            signature=signature,
            deadline_s=deadline_s,
            returns_refusals=self._returns_refusals if on_refusal is None else on_refusal == "return",
        )
        if declared and self._entered:
            raise InputError(
                f"`{called}` is guarded with roles while a scope is open, whose policy does not know them",
                hint="guard functions before the scope begins",
            )
        before = self._guarded.get(called)
        if before is not None and not declared:
            declared = dict(before.declared)
            guarded = replace(guarded, declared=declared)
        if before is not None and before.declared != declared:
            raise InputError(
                f"two functions are guarded as `{called}` with other roles",
                hint="give one of them a name of its own: guard(name=…)",
            )
        self._guarded[called] = guarded
        return guarded

    # scopes

    def scope(self, task: str | None = None) -> OpenScope:
        """Return a scope to enter, with `with` or `async with`: one run, with a task of its own.

        Takes: `task`, the monitor's where none is given.
        """
        return OpenScope(self, self._task if task is None else task, alone=False)

    def __enter__(self) -> Scope:
        return OpenScope(self, self._task, alone=True).__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._innermost().__exit__(kind, error, trace)

    async def __aenter__(self) -> Scope:
        return await OpenScope(self, self._task, alone=True).__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._innermost().__aexit__(kind, error, trace)

    def current(self) -> Scope:
        """Return the scope that is open around this code. Raises: NoScope."""
        return self._innermost().scope

    def _innermost(self) -> OpenScope:
        for one in reversed(_open.get()):
            if one.monitor is self:
                return one
        # A thread that knows nothing of the scope: with one that is open for the whole program there is no doubt.
        if len(self._alone) == 1:
            return self._alone[0]
        what = "several scopes of this monitor are" if self._alone else "no scope of this monitor is"
        raise NoScope(
            f"{what} open here, so no task says what may be called",
            hint="call guarded functions inside of `with monitor:`; a thread of your own takes the scope over with "
            "contextvars.copy_context().run(…)",
        )

    # calls

    def call(self, guarded: Guarded, arguments: Mapping[str, Any], *, call_id: str = "") -> Any:
        """Call a declared function with named arguments, for an adapter. Takes: `call_id`, the caller's own.

        Returns: what the function gives; a call with an id that was made already gives the same once more.
        """
        return self._call(guarded, (), arguments, call_id)

    async def acall(self, guarded: Guarded, arguments: Mapping[str, Any], *, call_id: str = "") -> Any:
        """Do the same in a coroutine."""
        return await self._acall(guarded, (), arguments, call_id)

    def _call(self, guarded: Guarded, args: Any, kwargs: Mapping[str, Any], call_id: str) -> Any:
        opened = self._innermost()
        make = jobs.Make(
            guarded=guarded, args=args, kwargs=kwargs, call_id=call_id, branch=branch_in(opened.scope)
        )
        return _given(guarded, jobs.run(calling(opened.scope, opened.calls, make)))

    async def _acall(self, guarded: Guarded, args: Any, kwargs: Mapping[str, Any], call_id: str) -> Any:
        opened = self._innermost()
        make = jobs.Make(
            guarded=guarded, args=args, kwargs=kwargs, call_id=call_id, branch=branch_in(opened.scope)
        )
        steps = calling(opened.scope, opened.calls, make)
        return _given(guarded, await jobs.arun(steps, durable=opened.scope.changes(guarded.name)))

    def _opened(self, task: str) -> Scope:
        from interlock.oracle import choose
        from interlock.sdk.opening import open_scope

        policy = with_tools(
            self._policy, {name: one.declared for name, one in self._guarded.items() if one.declared}
        )
        if isinstance(self._oracle, str):
            oracle = choose(
                self._oracle, terminal=sys.stdin.isatty() and sys.stderr.isatty(), models=self._models
            )
            if self._oracle == "review":
                raise InputError(
                    "`review` asks in another terminal, which a program's own run has no way to",
                    hint="use `human`, `answers:FILE`, `webhook:NAME`, a model, or a panel of them",
                )
        else:
            oracle = self._oracle
        self.last = open_scope(
            policy=policy,
            task=task,
            oracle=oracle,
            oracle_name=oracle.name,
            name=self._name,
            choice=self._choice,
            plan=self._plan,
        )
        return self.last


class OpenScope(AbstractContextManager["Scope"], AbstractAsyncContextManager["Scope"]):
    """A scope to enter, once. Takes: `alone`, whether threads that know no scope belong to it too."""

    scope: Scope

    def __init__(self, monitor: Monitor, task: str, *, alone: bool) -> None:
        self.monitor = monitor
        self.calls = Calls()
        self._task = task
        self._alone = alone
        self._entered = False

    def __enter__(self) -> Scope:
        if self._entered:
            raise NoScope("this scope was open before", hint="open another: with monitor.scope(task): …")
        if self._alone and any(one.monitor is self.monitor for one in _open.get()):
            raise NoScope(
                "a scope of this monitor is open here already",
                hint="call what belongs to it inside, or open one with a task of its own: monitor.scope(task)",
            )
        self.scope = self.monitor._opened(self._task)
        self._entered = True
        _open.set((*_open.get(), self))
        with self.monitor._counting:
            self.monitor._entered += 1
            if self._alone:
                self.monitor._alone.append(self)
        return self.scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        try:
            jobs.run(self.scope.ending(discard=error is not None))
        except InterlockError as ended:
            _told_with(error, ended)

    async def __aenter__(self) -> Scope:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        try:
            await jobs.arun(self.scope.ending(discard=error is not None), durable=True)
        except InterlockError as ended:
            _told_with(error, ended)

    def _leave(self) -> None:
        if self.scope.is_forked:
            return  # in a child the lock may be held by a thread that is not there
        _open.set(tuple(one for one in _open.get() if one is not self))
        with self.monitor._counting:
            self.monitor._entered -= 1
            if self in self.monitor._alone:
                self.monitor._alone.remove(self)


def _told_with(error: BaseException | None, ended: InterlockError) -> None:
    """Raise how a scope ended; where the program's own error ends it, that one goes on and this is told with it."""
    if error is None:
        raise ended
    error.add_note(f"interlock: {ended}")


def _given(guarded: Guarded, outcome: Outcome) -> Any:
    if isinstance(outcome, Came):
        return outcome.value
    if isinstance(outcome, Refusal) and not guarded.returns_refusals:
        raise Refused(outcome)
    return outcome


def _one_of(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise InputError(f"`{what}` cannot be `{given}`", hint=f"write one of: {', '.join(known)}")
