"""One request through the run's core: on record, decided, sent to the server, and its answer on record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from interlock.boundary.mcp.conversing import ANSWERS, CALL, TASK_RESULT, name_of
from interlock.boundary.mcp.messages import Response
from interlock.boundary.mcp.results import told, told_of
from interlock.mcp.pending import Pending, ServerGone
from interlock.model.records import dataclass
from interlock.model.tools import ToolCall
from interlock.sdk import answers, jobs
from interlock.sdk.arguments import call_text
from interlock.sdk.calling import Guarded
from interlock.sdk.errors import Refusal, Refused
from interlock.sdk.holding import TurnedAway
from interlock.sdk.placeholder import Placeholder

if TYPE_CHECKING:
    from interlock.sdk.scope import Scope

MAX_OPEN = 1_000
"""So many calls may wait for input or for a task's end; of an older one it stays unknown how it ended."""
Forward = Callable[[], Awaitable[Response]]
Came = Response | Refusal | Placeholder
Key = tuple[str, str, str]
"""Name, arguments and the server's own state, of a call that goes on when it is repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """A call that the server began and has not ended. Takes: `asked`, what it wants to know first, by its own keys."""

    effect_id: str
    asked: Mapping[str, Any]


class Unfinished(Exception):
    """An answer that ends nothing yet. Takes: `response`."""

    def __init__(self, response: Response) -> None:
        self.response = response


class Decider:
    """Puts a session's requests to its run. Takes: `server`, the name."""

    def __init__(self, scope: Scope, server: str) -> None:
        self.scope = scope
        self._server = server
        self._continued: dict[Key, Continued] = {}
        self._tasks: dict[str, str] = {}

    def continued(self, pending: Pending) -> Continued | None:
        """Return the call that a request repeats with what the server wanted to know, None where it is a new one.

        Holds: each is gone on with once.
        """
        params = pending.first.params
        if pending.first.method == TASK_RESULT:
            task = params.get("taskId")
            effect_id = self._tasks.get(task) if isinstance(task, str) else None
            return None if effect_id is None else Continued(effect_id=effect_id, asked={})
        if "inputResponses" not in params and "requestState" not in params:
            return None
        return self._continued.pop(self._key(pending, params.get("requestState")), None)

    def replies(
        self, pending: Pending, continued: Continued | None
    ) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
        """Yield what a request tells the server that asked: the method, what was asked, and the reply."""
        given = pending.first.params.get("inputResponses")
        for key, reply in given.items() if isinstance(given, dict) else ():
            asked = continued.asked.get(key) if continued is not None else None
            method = asked.get("method") if isinstance(asked, dict) else None
            params = asked.get("params") if isinstance(asked, dict) else None
            yield (
                method if method in ANSWERS else "elicitation/create",
                params if isinstance(params, dict) else {},
                reply if isinstance(reply, dict) else {"value": reply},
            )

    async def decided(
        self, pending: Pending, tool: str, continued: Continued | None, forward: Forward, *, alone: bool
    ) -> Came:
        """Decide a request and send it on. Returns: the server's answer, or what the client is told instead.

        Takes: `alone`, whether nothing else goes on in this loop: then the disk is waited for where it is, which takes
        less time than a change of threads.
        Raises: ServerGone; InputError, LedgerLost: then it was not sent.
        """
        make = self._make(pending.name, pending.arguments, lambda: self._seen(pending, forward))
        if continued is not None:
            steps = self._going_on(pending, continued, make)
        else:
            call = ToolCall(call=pending.call_id, tool=tool, server=self._server, arguments=make.text())
            steps = self._steps(pending, call, make)
        durable = not alone and self.scope.changes(pending.name)
        return await jobs.arun(steps, durable=durable, until_made=True)

    async def resolved(self, placeholder: Placeholder) -> Response | Refusal:
        """Have a call that waits resolved now. Raises: what its making raised."""
        try:
            value = await placeholder.avalue()
        except Refused as error:
            return error.refusal
        assert isinstance(value, Response)
        return value

    async def replied(
        self, method: str, asked: Mapping[str, Any], reply: Mapping[str, Any], call_id: str
    ) -> Refusal | None:
        """Decide what the client tells a server that asked for it. Returns: why it is not told, None where it is."""

        async def said() -> answers.Seen:
            return answers.Seen(value=None, says={"asked": told_of(asked).says})

        tool = name_of(method)
        name = f"{self._server}/{tool}"
        make = self._make(name, {"answer": reply}, said)
        call = ToolCall(call=call_id, tool=tool, server=self._server, arguments=make.text())
        came = await jobs.arun(self._simple_steps(call, make), durable=self.scope.changes(name))
        return came if isinstance(came, Refusal) else None

    async def ended(self) -> None:
        """End the run. Raises: ParkedFailed, StuckError, LedgerLost."""
        await jobs.arun(self.scope.ending(discard=False), durable=True)

    # inside

    def _make(
        self, name: str, arguments: Mapping[str, Any], function: Callable[[], Awaitable[Any]]
    ) -> jobs.Make:
        call_text(name, arguments)  # refused before anything is asked, where it has no text
        guarded = Guarded(name=name, function=lambda **_said: function(), is_async=True)
        return jobs.Make(guarded=guarded, args=(), kwargs=arguments)

    async def _seen(self, pending: Pending, forward: Forward) -> answers.Seen:
        response = await forward()
        if response.result is None:
            assert response.error is not None
            return answers.Seen(value=response, says=_error_text(response), failed=True)
        if self._goes_on(pending, response.result) and not pending.waited:
            raise Unfinished(response)
        found = told(response.result) if _is_tools(pending) else told_of(response.result)
        return answers.Seen(value=response, says=found.says, failed=found.failed)

    def _goes_on(self, pending: Pending, result: Mapping[str, Any]) -> bool:
        """Say whether an answer leaves the call open: as a task, or until the server knows more."""
        task = result.get("task")
        as_task = pending.first.method == CALL and isinstance(task, dict) and "task" in pending.first.params
        return as_task or result.get("resultType") == "input_required"

    def _steps(self, pending: Pending, call: ToolCall, make: jobs.Make) -> jobs.Steps[Came]:
        effect_id, passage, work = self.scope.propose(call, make)
        if work or isinstance(passage, Future):
            passage = yield from self.scope.settling(effect_id, passage, work)
        if isinstance(passage, Placeholder):
            pending.waited = True
            return passage
        if isinstance(passage, TurnedAway):
            self.scope.sign()
            return self.scope.refusal(call.name, effect_id, passage.exception, call.arguments)
        return (yield from self._sending(pending, effect_id, make))

    def _going_on(self, pending: Pending, continued: Continued, make: jobs.Make) -> jobs.Steps[Came]:
        return (yield from self._sending(pending, continued.effect_id, make))

    def _sending(self, pending: Pending, effect_id: str, make: jobs.Make) -> jobs.Steps[Came]:
        try:
            seen = yield make
        except Unfinished as unfinished:
            self._keep(pending, effect_id, unfinished.response)
            return unfinished.response
        except ServerGone as error:
            lost = answers.unknown if error.sent else answers.not_made
            self.scope.returned(effect_id, lost(error.message), at_once=True)
            raise
        except Exception as error:
            self.scope.returned(
                effect_id, answers.unknown(f"it broke off: {type(error).__name__}"), at_once=True
            )
            raise
        except BaseException:
            gone = answers.unknown("it was cancelled after it was sent to the server")
            self.scope.returned(effect_id, gone, at_once=True)
            raise
        self.scope.returned(effect_id, answers.done(seen), at_once=self.scope.changes(pending.name))
        if pending.first.method == TASK_RESULT:
            self._tasks.pop(str(pending.first.params.get("taskId")), None)
        response: Response = seen.value
        return response

    def _simple_steps(self, call: ToolCall, make: jobs.Make) -> jobs.Steps[Refusal | Placeholder | None]:
        effect_id, passage, work = self.scope.propose(call, make)
        if work or isinstance(passage, Future):
            passage = yield from self.scope.settling(effect_id, passage, work)
        if isinstance(passage, Placeholder):
            return passage
        if isinstance(passage, TurnedAway):
            self.scope.sign()
            return self.scope.refusal(call.name, effect_id, passage.exception, call.arguments)
        seen = yield make
        self.scope.returned(effect_id, answers.done(seen), at_once=False)
        return None

    def _keep(self, pending: Pending, effect_id: str, response: Response) -> None:
        assert response.result is not None
        task = response.result.get("task")
        if isinstance(task, dict):
            if len(self._tasks) < MAX_OPEN and isinstance(task.get("taskId"), str):
                self._tasks[task["taskId"]] = effect_id
            return
        if len(self._continued) < MAX_OPEN:
            asked = response.result.get("inputRequests")
            key = self._key(pending, response.result.get("requestState"))
            self._continued[key] = Continued(
                effect_id=effect_id, asked=asked if isinstance(asked, dict) else {}
            )

    def _key(self, pending: Pending, state: object) -> Key:
        text = call_text(pending.name, pending.arguments)
        return pending.name, text, state if isinstance(state, str) else ""


def _is_tools(pending: Pending) -> bool:
    return pending.first.method in (CALL, TASK_RESULT)


def _error_text(response: Response) -> str:
    assert response.error is not None
    message = response.error.get("message")
    return message if isinstance(message, str) else "an error without a message"
