"""A WebSocket that passes: frames are read on both sides and written anew, each outbound message is decided whole.

A ping is answered by us and goes on without its payload, a close with its code alone: neither may carry data past
the gate. Inbound messages stream on as they come.
Source: RFC 6455.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError

from interlock.boundary.net.deciding import Deciding
from interlock.boundary.net.gate import Passage, Passed, Refused
from interlock.boundary.net.inflating import decode
from interlock.boundary.net.proposing import placeholders
from interlock.boundary.net.sides import AnswerHead, DroppableLink, RequestHead
from interlock.boundary.net.websocket_handshake import accept, check, offer
from interlock.model.errors import InterlockError
from interlock.model.records import dataclass
from interlock.model.requests import NetMessage, NetResponse, Outcome

__all__ = ["MESSAGE_BYTES", "Relay", "accept", "check", "offer"]

MESSAGE_BYTES = 16 * 1024**2
"""What one outbound message may hold; half of it is what may wait to be decided before the client has to."""
_CLOSE_SECONDS = 10.0
_GOING_AWAY, _PROTOCOL, _POLICY, _TOO_BIG, _FAULT = 1001, 1002, 1008, 1009, 1011
_REASON_BYTES = 123


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outbound:
    """A message of the client's; or its end, with `code` its close, None where it just left."""

    data: bytes = b""
    is_text: bool = False
    end: bool = False
    code: int | None = None


class _End:
    """One of the two ends: its link and wsproto's reading of it."""

    def __init__(self, link: DroppableLink, role: ConnectionType) -> None:
        self.link = link
        self.ws = Connection(role)
        self.over = False
        self.closed = False
        self.reading = False

    def send(self, event: Event) -> None:
        """Send a frame, unless the end is closing or gone."""
        if self.over or self.closed:
            return
        try:
            data = self.ws.send(event)
        except LocalProtocolError:
            return  # it said close already
        self.link.write(bytes(data))

    def leave(self) -> None:
        """Close the link once what was said is out."""
        if not self.over:
            self.over = True
            self.link.close()


class Relay:
    """Takes two links whose handshakes are done, until both are closed.

    Takes: `client_rest`, `far_rest`, what came on each after its head; `effect_id`, of the passed upgrade.
    Holds: no outbound message leaves before it is passed, and they leave in order; `on_end` is called once, after both
    links are closed.
    """

    def __init__(  # noqa: PLR0917 - the order is that of the data
        self,
        client: DroppableLink,
        far: DroppableLink,
        client_rest: bytes,
        far_rest: bytes,
        request: RequestHead,
        answer: AnswerHead,
        effect_id: str,
        setting: Deciding,
        on_end: Callable[[NetResponse], None],
    ) -> None:
        self._client = _End(client, ConnectionType.SERVER)
        self._far = _End(far, ConnectionType.CLIENT)
        self._effect_id = effect_id
        self._setting = setting
        self._on_end = on_end
        self._text_bytes = setting.plan.limits.text_bytes
        self._came_bytes = 0
        self._came_hash = hashlib.sha256()
        self._parts = bytearray()
        self._waiting: deque[_Outbound] = deque()
        self._waiting_bytes = 0
        self._asked: asyncio.Task[Passage] | None = None
        self._moving = False
        self._ending = False
        self._timer: asyncio.TimerHandle | None = None
        self._code = 1000
        self._outcome = Outcome.UNKNOWN
        self._detail = "the connection broke"
        for end, came, left in (
            (self._client, self._from_client, self._client_left),
            (self._far, self._from_far, self._far_left),
        ):
            end.link.on_data = came
            end.link.on_eof = left
            end.link.on_room = self._steer
        client.on_closed = self._client_closed
        far.on_closed = self._far_closed
        if far_rest:
            self._from_far(far_rest)
        if client_rest:
            self._from_client(client_rest)
        self._steer()

    def close(self) -> None:
        """End it from our side at once: the run ends, and nobody waits for the ends' own closes."""
        self._end(_GOING_AWAY, _GOING_AWAY, "the run ended")
        for end in (self._client, self._far):
            end.over = True
            end.link.drop()

    # what the client sends

    def _from_client(self, data: bytes) -> None:
        for event in _read(self._client, data):
            match event:
                case TextMessage() | BytesMessage():
                    self._part(event)
                case Ping():
                    self._client.send(event.response())
                    self._far.send(Ping())
                case CloseConnection():
                    if _is_fault(self._client):
                        self._end(_code(event), _GOING_AWAY, "the client's frames are broken")
                    elif self._ending or self._client.ws.state is ConnectionState.CLOSED:
                        self._client_done()
                    else:
                        self._queue(_Outbound(end=True, code=_code(event)))
                case _:
                    pass
            if self._client.over or self._ending:
                break
        self._move()
        self._steer()

    def _part(self, event: TextMessage | BytesMessage) -> None:
        if self._ending:
            return
        data = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
        if len(self._parts) + len(data) > MESSAGE_BYTES:
            self._end(_TOO_BIG, _GOING_AWAY, "a message was larger than is read")
            return
        self._parts += data
        if event.message_finished:
            whole = bytes(self._parts)
            self._parts = bytearray()
            self._queue(_Outbound(data=whole, is_text=isinstance(event, TextMessage)))

    def _queue(self, item: _Outbound) -> None:
        self._waiting.append(item)
        self._waiting_bytes += len(item.data)

    def _client_left(self) -> None:
        if self._ending:
            self._client_done()
            return
        self._queue(_Outbound(end=True))
        self._move()

    def _move(self) -> None:
        """Decide and send what waits, in order, until one has to be waited for."""
        if self._moving:
            return
        self._moving = True
        try:
            while self._waiting and self._asked is None and not self._ending:
                item = self._waiting[0]
                if item.end:
                    self._client_ended(item.code)
                    return
                self._propose(item)
        finally:
            self._moving = False

    def _propose(self, item: _Outbound) -> None:
        data, tokens = item.data, self._setting.tokens
        message = NetMessage(
            stream=self._effect_id,
            size_bytes=len(data),
            digest=hashlib.sha256(data).hexdigest(),
            text=decode(data, "") if len(data) <= self._text_bytes else None,
            placeholders=placeholders(tokens, [data], ()) if tokens else (),
        )
        try:
            passage = self._setting.gate.propose_message(message)
        except InterlockError:  # nothing leaves that nobody decided
            self._refuse(None)
            return
        if isinstance(passage, Passed):
            self._pass()
        elif isinstance(passage, Awaitable):
            self._asked = self._setting.loop.create_task(_awaited(passage))
            self._asked.add_done_callback(self._decided)
        else:
            self._refuse(passage)

    def _decided(self, task: "asyncio.Task[Passage]") -> None:
        self._asked = None
        if self._ending:
            if not task.cancelled():
                task.exception()  # it is of no use any more, and nobody else asks for it
            return
        if task.cancelled() or task.exception() is not None:  # whoever decides failed: nothing leaves
            self._refuse(None)
        elif isinstance(task.result(), Passed):
            self._pass()
        else:
            self._refuse(task.result())
        self._move()
        self._steer()

    def _pass(self) -> None:
        item = self._waiting.popleft()
        self._waiting_bytes -= len(item.data)
        data = item.data
        self._far.send(TextMessage(data=data.decode()) if item.is_text else BytesMessage(data=data))

    def _refuse(self, passage: object) -> None:
        reason = (
            passage.exception.rationale if isinstance(passage, Refused) else "the message was not released"
        )
        self._end(_POLICY, _GOING_AWAY, "a message was refused", reason, outcome=Outcome.DONE)

    def _client_ended(self, code: int | None) -> None:
        self._stop()
        if code is None:
            self._far.leave()  # without a close, as the client left
            self._client.leave()
            return
        self._detail, self._outcome = "", Outcome.DONE
        self._code = code
        self._far.send(_close(code))
        self._patience()

    # what the far side sends

    def _from_far(self, data: bytes) -> None:
        for event in _read(self._far, data):
            match event:
                case TextMessage() | BytesMessage():
                    self._inbound(event)
                case Ping():
                    self._far.send(event.response())
                case CloseConnection():
                    self._far_closes(event)
                case _:
                    pass
            if self._far.over:
                break
        self._steer()

    def _inbound(self, event: TextMessage | BytesMessage) -> None:
        data = event.data.encode() if isinstance(event.data, str) else event.data
        self._came_bytes += len(data)
        self._came_hash.update(data)
        if data or event.message_finished:
            self._client.send(event)

    def _far_closes(self, event: CloseConnection) -> None:
        if _is_fault(self._far):
            self._end(_FAULT, _code(event), "the far side's frames are broken")
            return
        code, reason = _code(event), event.reason or None
        self._detail, self._outcome = "", Outcome.DONE
        if self._far.ws.state is ConnectionState.REMOTE_CLOSING:
            self._far.send(_close(code))
        self._client.send(_close(code, reason))
        self._stop()
        self._patience()
        self._far.leave()
        if self._client.ws.state is ConnectionState.CLOSED:
            self._client_done()

    def _far_left(self) -> None:
        self._stop()
        if self._client.ws.state is ConnectionState.REMOTE_CLOSING:
            self._client.send(_close(self._code))  # it left without an answer to the client's close
        self._far.leave()
        self._client.leave()

    # the end

    def _end(
        self, client_code: int, far_code: int, detail: str, reason: str = "", *,
        outcome: Outcome = Outcome.UNKNOWN,
    ) -> None:  # fmt: skip
        if self._ending:
            return
        self._stop()
        self._detail, self._outcome = detail, outcome
        text = (reason or detail).encode()[:_REASON_BYTES].decode("utf-8", "ignore")
        self._client.send(_close(client_code, text))
        self._far.send(_close(far_code))
        self._far.leave()
        self._patience()

    def _stop(self) -> None:
        """Let nothing more of the client's out."""
        self._ending = True
        self._waiting.clear()
        self._waiting_bytes = 0
        self._parts = bytearray()

    def _client_done(self) -> None:
        """Both closes were said on the client's side."""
        self._client.leave()
        self._far.leave()

    def _patience(self) -> None:
        if self._timer is None:
            self._timer = self._setting.loop.call_later(_CLOSE_SECONDS, self._client_done)

    def _steer(self) -> None:
        """Read no faster than can be written and decided."""
        full = any(end.link.full for end in (self._client, self._far) if not end.over)
        _read_on(self._client, not full and not self._crowded)
        _read_on(self._far, not full)

    @property
    def _crowded(self) -> bool:
        return self._waiting_bytes > MESSAGE_BYTES // 2 or len(self._waiting) > 1000

    def _client_closed(self) -> None:
        self._client.closed = self._client.over = True
        self._left(self._far)

    def _far_closed(self) -> None:
        self._far.closed = self._far.over = True
        self._left(self._client)

    def _left(self, other: _End) -> None:
        self._stop()
        if not other.closed:
            other.leave()
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._asked is not None:
            self._asked.cancel()
        self._on_end(
            NetResponse(
                outcome=self._outcome,
                status=101,
                size_bytes=self._came_bytes,
                digest=self._came_hash.hexdigest() if self._came_bytes else "",
                detail=self._detail,
            )
        )


async def _awaited(passage: Awaitable[Passage]) -> Passage:
    return await passage


def _read(end: _End, data: bytes) -> Iterator[Event]:
    """Yield what the bytes say; nothing once the end is closing for good."""
    if end.over or end.ws.state in (ConnectionState.CLOSED, ConnectionState.REMOTE_CLOSING):
        return
    end.ws.receive_data(data)
    yield from end.ws.events()


def _is_fault(end: _End) -> bool:
    # wsproto tells of frames that it cannot read by a close event too, but then its state is not that of a close
    return end.ws.state in (ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING)


def _code(event: CloseConnection) -> int:
    return int(event.code)


def _close(code: int, reason: str | None = None) -> CloseConnection:
    if code == CloseReason.NO_STATUS_RCVD:
        return CloseConnection(code=CloseReason.NO_STATUS_RCVD)  # wsproto knows it by identity
    return CloseConnection(code=code, reason=reason)


def _read_on(end: _End, on: bool) -> None:
    if end.over or end.reading == on:
        return
    end.reading = on
    if on:
        end.link.resume()
    else:
        end.link.pause()
