"""A gate in memory: it decides messages as the test says, and keeps what it was asked and told."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.fakes.gate import Unaudited

from interlock.boundary.net.gate import Body, Passage, Passed, Refused
from interlock.model.requests import NetMessage, NetRequest, NetResponse
from interlock.model.verdicts import ExceptionType, SemanticException

Decide = Callable[[NetMessage], Passage | Awaitable[Passage]]


def passed(_message: NetMessage) -> Passage:
    return Passed(effect_id="e1")


def refused(reason: str = "not to be said") -> Passage:
    return Refused(
        effect_id="e1",
        exception=SemanticException(
            type=ExceptionType.RULE,
            violated_rule="rule",
            rationale=reason,
            constraints=(),
            allowed_objective="",
        ),
    )


class MemoryGate(Unaudited):
    """Passes every request; messages as `decide` says."""

    def __init__(self, decide: Decide = passed) -> None:
        self.decide = decide
        self.messages: list[NetMessage] = []
        self.requests: list[NetRequest] = []
        self.answers: list[tuple[str, NetResponse]] = []
        self.away: list[str] = []

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        self.requests.append(request)
        return Passed(effect_id=f"e{len(self.requests)}")

    def propose_message(self, message: NetMessage) -> Passage | Awaitable[Passage]:
        self.messages.append(message)
        return self.decide(message)

    def answered(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        self.answers.append((effect_id, response))

    def turned_away(self, host: str, port: int, reason: str) -> None:
        self.away.append(reason)


class Later:
    """Decisions that come when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[Passage]] = []

    def __call__(self, _message: NetMessage) -> Awaitable[Passage]:
        future: asyncio.Future[Passage] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        return future
