"""An answer that is read before it passes to the agent: each message of MCP, or whatever else may hold a call.

Holds: what passes is passed byte for byte; of a message that does not pass, no byte goes out.
"""

import re
from collections.abc import Iterator
from typing import Protocol

from interlock.boundary.net.agent_side import AgentSide
from interlock.boundary.net.around import Around
from interlock.boundary.net.decoding import Decoding, Undecodable
from interlock.boundary.net.gate import Messages
from interlock.boundary.net.mcp_events import MAX_EVENT_BYTES, Event, Events, event_bytes
from interlock.boundary.net.mcp_requests import SESSION
from interlock.boundary.net.proposing import field
from interlock.boundary.net.sides import AnswerHead, ClientSide, RawHeaders

_EVENTS = "text/event-stream"
_ODD = re.compile(
    rb"(?:^|[\r\n])(?!\xef\xbb\xbf|data[:\r\n]|event[:\r\n]|id[:\r\n]|retry[:\r\n]|:)[^\r\n]*[{\[]"
)
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Gives(Protocol):
    """The exchange whose answer is read."""

    def unreadable(self, detail: str) -> None:
        """Give up an answer that cannot be read."""
        ...


class Parts:
    """Cuts a stream of events where one ends. Holds: the parts together are the stream, but for events that are too
    long to be kept."""

    def __init__(self) -> None:
        self._events = Events()
        self._raw = bytearray()
        self._is_blank = True
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, Event | None]]:
        """Take a part of the stream; yield each part that has ended, with its event, None for none."""
        if self._after_cr and chunk[:1] == b"\n":
            self._take(chunk[:1])
            chunk = chunk[1:]
        if chunk:
            self._after_cr = chunk[-1:] == b"\r"
        for found in _LINE.finditer(chunk):
            line = found[0]
            event = self._take(line)
            ends = line[-1:] in (b"\r", b"\n")
            if ends and self._is_blank and not line.strip(b"\r\n"):
                raw = bytes(self._raw)
                self._raw.clear()
                yield raw, event
            self._is_blank = ends

    def rest(self) -> bytes:
        """Return what follows the last event."""
        return bytes(self._raw)

    def _take(self, line: bytes) -> Event | None:
        if len(self._raw) <= MAX_EVENT_BYTES:
            self._raw += line
        found = self._events.feed(line)
        return found[0] if found else None


class McpSide:
    """The `ClientSide` of an exchange whose answer is read as messages.

    Takes: `exchange`, told of an answer that cannot be read; `client`, the agent; `method`, of its request.
    """

    def __init__(
        self, around: Around, exchange: Gives, client: ClientSide, method: str, messages: Messages
    ) -> None:
        limits = around.plan.limits
        self._agent = AgentSide(client, method, around.loop, limits.quiet_seconds)
        self._exchange = exchange
        self._messages = messages
        self._decoding: Decoding | None = None
        self._parts: Parts | None = None
        self._whole: bytearray | None = None
        self._kind = ""
        self._is_plain = False
        self._fault = "the far side broke its answer off"

    def interim(self, head: AnswerHead) -> None:
        """Send a 1xx answer on."""
        self._agent.interim(head)

    def answer(self, head: AnswerHead) -> None:
        """Begin the answer."""
        encoding = field(head.headers, b"content-encoding")
        try:
            self._decoding = Decoding(encoding)
        except Undecodable as error:
            self._unreadable(error)
            return
        self._messages.began(field(head.headers, SESSION), head.status)
        self._kind = field(head.headers, b"content-type").partition(";")[0].strip().lower()
        self._parts = Parts() if self._kind == _EVENTS else None
        self._agent.head(head, decoded=encoding.strip().lower() not in ("", "identity"))

    def data(self, chunk: bytes) -> None:
        """Send on what may pass of a part."""
        if self._decoding is None:
            return
        try:
            for piece in self._decoding.feed(chunk):
                self._piece(piece)
        except Undecodable as error:
            self._unreadable(error)

    def end(self, trailers: RawHeaders) -> None:
        """End the answer, and decide what came as one text."""
        try:
            if self._decoding is not None:
                self._decoding.finish()
        except Undecodable as error:
            self._fault = f"the far side's answer cannot be read: {error.reason}"
            self._agent.cut(self._fault)
            return
        if self._parts is not None:
            self._last(self._parts.rest())
        elif self._whole is not None:
            self._text(bytes(self._whole))
        self._agent.end(trailers)

    def cut(self) -> None:
        """Break the answer off: what is held of it never passes."""
        self._agent.cut(self._fault)

    def read_on(self, on: bool) -> None:
        """Take, or stop taking, more of the request's body."""
        self._agent.read_on(on)

    # the inside

    def _unreadable(self, error: Undecodable) -> None:
        self._fault = f"the far side's answer cannot be read: {error.reason}"
        self._exchange.unreadable(self._fault)

    def _piece(self, piece: bytes) -> None:
        if self._parts is not None:
            for raw, event in self._parts.feed(piece):
                self._event(raw, event)
            return
        if self._whole is None and self._plain(piece):
            self._is_plain = self._is_plain or bool(piece.strip())
            self._agent.data(piece)
            return
        self._whole = self._whole if self._whole is not None else bytearray()
        # One byte more than a message may have shows that it is too long.
        self._whole += piece[: max(0, MAX_EVENT_BYTES + 1 - len(self._whole))]

    def _plain(self, piece: bytes) -> bool:
        """Say whether an answer of another type begins as no message does."""
        return self._is_plain or ("json" not in self._kind and piece.lstrip()[:1] not in (b"{", b"["))

    def _event(self, raw: bytes, event: Event | None) -> None:
        if event is not None and event.id:
            self._messages.goes_on()
        if _ODD.search(raw):
            # Lines that are none of an event's: careless readers may find something in them.
            if self._messages.came(raw, name="") is not None:
                self._agent.data(raw)
            return
        if event is None or event.data == b"":
            self._agent.data(raw)
            return
        passes = self._messages.came(event.data, name=event.name.decode("latin-1"))
        if passes is None:
            return
        if passes != event.data:
            raw = event_bytes(passes, id=event.id, name=event.name, retry=event.retry)
        self._agent.data(raw)

    def _last(self, rest: bytes) -> None:
        """Take what stands after the last event: some readers take it for one that has ended."""
        events = Events().feed(rest + b"\n\n") if rest else []
        if not events:
            self._agent.data(rest)
        for event in events:
            self._event(rest, event)

    def _text(self, body: bytes) -> None:
        is_long = len(body) > MAX_EVENT_BYTES
        passes = self._messages.came(None if is_long else body, name="")
        if passes is None:
            status, passes = self._messages.instead()
            if status and not self._agent.begun:
                kind = ((b"content-type", b"application/json"),)
                self._agent.whole(AnswerHead(status=status, headers=kind, length=len(passes)), passes)
                return
        if passes != body:
            self._agent.change()
        self._agent.data(passes)
