"""A gate that records what it is asked and told, and answers by rule."""

import asyncio
from collections.abc import Awaitable, Callable

from interlock.boundary.lens.outcomes import Facts
from interlock.boundary.net.gate import (
    Answered,
    Body,
    Messages,
    Parked,
    Passage,
    Passed,
    Refused,
    Verdicts,
)
from interlock.model.actions import HeldCall
from interlock.model.requests import NetMessage, NetRequest, NetResponse
from interlock.model.verdicts import ExceptionType, SemanticException

EXCEPTION = SemanticException(
    type=ExceptionType.RULE,
    violated_rule="no-such-host",
    rationale="the host is not allowed",
    constraints=(),
    allowed_objective="",
)


def passing(_request: NetRequest, effect_id: str) -> Passage:
    return Passed(effect_id=effect_id)


def refusing(_request: NetRequest, effect_id: str) -> Passage:
    return Refused(effect_id=effect_id, exception=EXCEPTION)


def parking(_request: NetRequest, effect_id: str) -> Passage:
    return Parked(effect_id=effect_id, token=f"placeholder-{effect_id}")


def answering(_request: NetRequest, effect_id: str) -> Passage:
    return Answered(effect_id=effect_id, status=200, content_type="text/plain", body=b"from the monitor")


class Unaudited:
    """The part of a gate that holds no answer of a model back."""

    def audits(self, _effect_id: str) -> bool:
        return False

    def heard(self, _effect_id: str, _facts: Facts) -> None:
        pass

    def judge(self, _effect_id: str, calls: tuple[HeldCall, ...]) -> Verdicts | Awaitable[Verdicts]:
        return (EXCEPTION,) * len(calls)

    def reads(self, _effect_id: str) -> Messages | None:
        return None


class FakeGate(Unaudited):
    """Takes: `rule`, request and effect id -> passage; `later_seconds`, None to answer within the call."""

    def __init__(
        self, rule: Callable[[NetRequest, str], Passage] = passing, later_seconds: float | None = None
    ) -> None:
        self.rule = rule
        self.later_seconds = later_seconds
        self.requests: list[NetRequest] = []
        self.bodies: list[int] = []
        self.messages: list[NetMessage] = []
        self.responses: list[tuple[str, NetResponse, bytes | None]] = []
        self.away: list[tuple[str, int, str]] = []

    def propose(self, request: NetRequest, body: Body | None) -> Passage | Awaitable[Passage]:
        self.requests.append(request)
        self.bodies.append(0 if body is None else body.size_bytes)
        passage = self.rule(request, f"e{len(self.requests)}")
        return passage if self.later_seconds is None else self._later(passage)

    def propose_message(self, message: NetMessage) -> Passage | Awaitable[Passage]:
        self.messages.append(message)
        passage: Passage = Passed(effect_id=f"m{len(self.messages)}")
        if message.text is not None and "forbidden" in message.text:
            passage = Refused(effect_id=passage.effect_id, exception=EXCEPTION)
        return passage if self.later_seconds is None else self._later(passage)

    def answered(self, effect_id: str, response: NetResponse, body: bytes | None) -> None:
        self.responses.append((effect_id, response, body))

    def turned_away(self, host: str, port: int, reason: str) -> None:
        self.away.append((host, port, reason))

    async def _later(self, passage: Passage) -> Passage:
        await asyncio.sleep(self.later_seconds or 0)
        return passage
