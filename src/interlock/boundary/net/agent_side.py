"""The agent's side of an exchange whose answer is audited: one answer, whoever's parts it comes to be made of."""

import asyncio
from collections.abc import Callable

from interlock.boundary.net.heads import bodyless
from interlock.boundary.net.refusal import plain
from interlock.boundary.net.sides import AnswerHead, ClientSide, RawHeaders

_EVENTS = b"text/event-stream"
_REWRITTEN = frozenset((b"content-length", b"content-encoding", b"content-md5", b"content-digest", b"digest"))
"""Fields that speak of the bytes of a body, which may be others now."""
_MEASURED_BYTES = 16 * 1024 * 1024
"""A body with a length waits whole up to this one; a longer one goes out in chunks."""


class AgentSide:
    """Gives the agent one answer.

    Takes: `seconds`, of silence after which an agent that waits for events is kept alive.
    Holds: a head with a length waits until the body is whole, so that it is right whatever the body becomes; any other
    goes out with the first byte, or once there is an event stream to keep alive.
    """

    def __init__(
        self, client: ClientSide, method: str, loop: asyncio.AbstractEventLoop, seconds: float
    ) -> None:
        self._client = client
        self._method = method
        self._loop = loop
        self._seconds = seconds
        self._head: AnswerHead | None = None
        self._body = bytearray()
        self._measured = False
        self._changed = False
        self._timer: asyncio.TimerHandle | None = None
        self._alive: Callable[[], bytes] | None = None
        self.begun = False
        """Whether the agent has got any of an answer."""
        self.over = False

    def interim(self, head: AnswerHead) -> None:
        """Send a 1xx answer on."""
        if not self.begun and not self.over:
            self._client.interim(head)

    def head(self, head: AnswerHead, *, decoded: bool) -> None:
        """Take the head of an answer; that of a later one counts as long as none has gone out.

        Takes: `decoded`, whether the body that follows is not as it came.
        """
        if self.begun:
            return
        self._head = head
        self._measured = head.length is not None and head.length <= _MEASURED_BYTES and not decoded
        self._changed = decoded or (head.length is not None and not self._measured)
        if _streams(head):
            self.go()

    def change(self) -> None:
        """Take note that the body is not that of the head: its length, and what speaks of its bytes, are new."""
        self._changed = True

    def go(self) -> None:
        """Send the head, where nothing has to be known of the body before."""
        if self._head is not None and not self.begun and not self._measured and not self.over:
            self._begin(self._head.length if not self._changed else None)

    def data(self, chunk: bytes) -> None:
        """Send a part of the body."""
        if self.over or not chunk:
            return
        self._slept()
        if self._measured:
            self._body += chunk
            return
        self.go()
        self._client.data(chunk)

    def end(self, trailers: RawHeaders) -> None:
        """End the answer."""
        if self.over:
            return
        self.close()
        assert self._head is not None
        if not self.begun:
            # Nothing has gone out: the whole body is here, so it can be measured.
            no_body = bodyless(self._method, self._head.status)
            self._begin(self._head.length if no_body and not self._changed else len(self._body))
            if self._body and not no_body:
                self._client.data(bytes(self._body))
        self._body.clear()
        self._client.end(() if self._changed else trailers)

    def whole(self, head: AnswerHead, body: bytes) -> None:
        """Give a whole answer in place of one that has not begun."""
        self._head, self._changed, self._measured = head, False, True
        self._body[:] = b"" if bodyless(self._method, head.status) else body
        self.end(())

    def cut(self, detail: str) -> None:
        """Break the answer off; where none has begun, say what happened instead."""
        if self.over:
            return
        if not self.begun:
            self.whole(*plain(502, "The far side cannot be had", detail))
            return
        self.close()
        self._client.cut()

    def read_on(self, on: bool) -> None:
        """Take, or stop taking, more of the request's body."""
        self._client.read_on(on)

    def keep_alive(self, alive: Callable[[], bytes]) -> None:
        """Keep an agent alive that waits. Takes: `alive`, what may be sent at this place of the answer, `b""` for
        nothing.

        Holds: an agent that reads no events is told nothing.
        """
        self._alive = alive
        if self._timer is None and not self.over and self._head is not None and _streams(self._head):
            self._timer = self._loop.call_later(self._seconds, self._rung)

    def close(self) -> None:
        """Send nothing more."""
        self.over = True
        self._alive = None
        self._slept()

    def _slept(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _rung(self) -> None:
        self._timer = None
        alive = self._alive
        if alive is None or self.over:
            return
        said = alive()
        if said:
            self._measured = False  # the length that the provider gave is not kept any more
            self._changed = True
            body, self._body = bytes(self._body), bytearray()
            self.go()
            self._client.data(body + said)
        self.keep_alive(alive)

    def _begin(self, length: int | None) -> None:
        assert self._head is not None
        self.begun = True
        head = self._head
        fields = head.headers
        if self._changed:
            fields = tuple(field for field in fields if field[0] not in _REWRITTEN)
        self._client.answer(AnswerHead(status=head.status, headers=fields, length=length))


def _streams(head: AnswerHead) -> bool:
    return any(
        name == b"content-type" and value.partition(b";")[0].strip().lower() == _EVENTS
        for name, value in head.headers
    )
