"""Links in memory, joined in pairs or read by the test, and a small whole proxy of exchanges without a gate."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from interlock.boundary.net.gate import Gate
from interlock.boundary.net.plan import NetLimits, NetPlan
from interlock.boundary.net.settings import FarConnection, Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, FarSide, RawHeaders, RequestHead
from interlock.model.requests import Outcome


def _nothing() -> None:
    pass


def _no_data(_data: bytes) -> None:
    pass


class MemoryLink:
    """A link whose written bytes lie in `sent` until taken, or go to `other` where one is joined."""

    def __init__(self, alpn: str = "", *, high_bytes: int = 1 << 40) -> None:
        self.alpn = alpn
        self.on_data: Callable[[bytes], None] = _no_data
        self.on_eof: Callable[[], None] = _nothing
        self.on_closed: Callable[[], None] = _nothing
        self.on_room: Callable[[], None] = _nothing
        self.sent = bytearray()
        self.high_bytes = high_bytes
        self.paused = True
        self.closed = self.aborted = self.finished = False
        self.most_bytes = 0

    @property
    def full(self) -> bool:
        return len(self.sent) > self.high_bytes

    def write(self, data: bytes) -> None:
        if not (self.closed or self.finished):
            self.sent += data
            self.most_bytes = max(self.most_bytes, len(self.sent))

    def take(self) -> bytes:
        was_full = self.full
        data = bytes(self.sent)
        self.sent.clear()
        if was_full:
            self.on_room()
        return data

    def finish(self) -> None:
        self.finished = True

    def close(self) -> None:
        self.closed = True

    def drop(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False


class Step:
    """A loop whose clock the test moves, and whose callbacks run when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.due: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> None:
        self.due.append((callback, arguments))

    def turn(self) -> None:
        while self.due:
            due, self.due = self.due, []
            for callback, arguments in due:
                callback(*arguments)


class Exchanged:
    """An exchange that keeps what it was told, and answers as `respond` says once the request is whole."""

    def __init__(
        self, client: ClientSide | None, head: RequestHead, respond: Callable[["Exchanged"], None]
    ) -> None:
        self.client = client
        self.head = head
        self.respond = respond
        self.body = bytearray()
        self.events: list[object] = []
        self.whole = False
        self.trailers: RawHeaders = ()
        self.gone = False
        self.answer: AnswerHead | None = None
        self.answer_body = bytearray()
        self.answer_trailers: RawHeaders = ()
        self.answer_whole = False
        self.failure: tuple[Outcome, str] | None = None
        self.interims: list[AnswerHead] = []
        self.full: list[bool] = []

    def body_data(self, chunk: bytes) -> None:
        self.body += chunk

    def body_end(self, trailers: RawHeaders) -> None:
        self.whole = True
        self.trailers = trailers
        self.respond(self)

    def client_gone(self) -> None:
        self.gone = True

    def client_full(self, full: bool) -> None:
        self.full.append(full)

    def came_interim(self, head: AnswerHead) -> None:
        self.interims.append(head)

    def came_head(self, head: AnswerHead) -> None:
        assert self.answer is None
        self.answer = head

    def came_data(self, chunk: bytes) -> None:
        self.answer_body += chunk

    def came_end(self, trailers: RawHeaders) -> None:
        assert not self.answer_whole
        self.answer_whole = True
        self.answer_trailers = trailers

    def came_failure(self, outcome: Outcome, detail: str) -> None:
        assert self.failure is None
        self.failure = (outcome, detail)

    def far_full(self, full: bool) -> None:
        self.full.append(full)


class Surroundings:
    """A `Setting` and a `FarSetting` that begin exchanges of the test's own making."""

    gate: Gate

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | Step,
        begin: Callable[[ClientSide, RequestHead], "Exchanged | Forward"],
        limits: NetLimits | None = None,
    ) -> None:
        self.loop: asyncio.AbstractEventLoop = loop  # type: ignore[assignment]
        self.limits = limits or NetLimits()
        self.plan = NetPlan(folder="/nowhere", limits=self.limits)
        self.begun: list[Exchanged | Forward] = []
        self.away: list[str] = []
        self._begin = begin

    def begin(self, client: ClientSide, head: RequestHead, place: Place) -> "Exchanged | Forward":
        made = self._begin(client, head)
        self.begun.append(made)
        return made

    def turned_away(self, place: Place, reason: str) -> None:
        self.away.append(reason)


class Forward:
    """An exchange that sends everything on at once: the two sides meet without spool and gate.

    Takes: `pick`, gives the far connection.
    """

    def __init__(self, client: ClientSide, head: RequestHead, pick: Callable[[], FarConnection]) -> None:
        self.client = client
        body = head.length != 0
        self.ended = False
        self.far: FarSide = pick().begin(replace(head, headers=head.headers), self, body=body)

    def body_data(self, chunk: bytes) -> None:
        self.far.send(chunk)

    def body_end(self, trailers: RawHeaders) -> None:
        self.far.end(trailers)

    def client_gone(self) -> None:
        if not self.ended:
            self.ended = True
            self.far.abort()

    def client_full(self, full: bool) -> None:
        self.far.read_on(not full)

    def came_interim(self, head: AnswerHead) -> None:
        self.client.interim(head)

    def came_head(self, head: AnswerHead) -> None:
        self.client.answer(head)

    def came_data(self, chunk: bytes) -> None:
        self.client.data(chunk)

    def came_end(self, trailers: RawHeaders) -> None:
        self.ended = True
        self.client.end(trailers)

    def came_failure(self, outcome: Outcome, detail: str) -> None:
        if not self.ended:
            self.ended = True
            self.client.cut()

    def far_full(self, full: bool) -> None:
        self.client.read_on(not full)
