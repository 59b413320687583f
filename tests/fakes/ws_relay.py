"""A relay in memory, with a real wsproto peer at each end."""

import asyncio

from tests.fakes.net_gate import Decide, MemoryGate, passed
from tests.fakes.net_links import MemoryLink
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, TextMessage

from interlock.boundary.net.plan import NetLimits, NetPlan
from interlock.boundary.net.sides import AnswerHead, RequestHead
from interlock.boundary.net.websocket import Relay
from interlock.model.requests import NetResponse

ASKED = RequestHead(
    method="GET",
    scheme="https",
    authority_host="api.test",
    port=443,
    target="/ws",
    headers=(),
    length=0,
    upgrade="websocket",
)
EMPTY = AnswerHead(status=101, headers=())


class Around:
    def __init__(self, gate: MemoryGate, limits: NetLimits) -> None:
        self.loop = asyncio.get_running_loop()
        self.plan = NetPlan(folder="/nowhere", limits=limits)
        self.gate: MemoryGate = gate
        self.tokens: dict[str, str] = {}


class End:
    """A real peer at one of the relay's links."""

    def __init__(self, role: ConnectionType) -> None:
        self.link = MemoryLink()
        self.ws = Connection(role)
        self.events: list[Event] = []

    def say(self, *events: Event) -> None:
        self.raw(b"".join(bytes(self.ws.send(event)) for event in events))

    def raw(self, data: bytes) -> None:
        if not self.link.closed:
            self.link.on_data(data)

    def hear(self) -> list[Event]:
        data = self.link.take()
        found: list[Event] = []
        if data:
            self.ws.receive_data(data)
            found = list(self.ws.events())
        self.events += found
        return found

    def messages(self) -> list[str | bytes]:
        whole: list[str | bytes] = []
        parts: list[str | bytes] = []
        for event in self.events:
            if isinstance(event, TextMessage | BytesMessage):
                parts.append(event.data if isinstance(event.data, str) else bytes(event.data))
                if event.message_finished:
                    empty = parts[0][:0]
                    whole.append(empty.join(parts))  # type: ignore[arg-type]
                    parts = []
        return whole

    def close_code(self) -> int | None:
        for event in self.events:
            if isinstance(event, CloseConnection):
                return int(event.code)
        return None


class Relayed:
    def __init__(self, decide: Decide = passed, limits: NetLimits | None = None) -> None:
        self.gate = MemoryGate(decide)
        self.around = Around(self.gate, limits or NetLimits())
        self.client = End(ConnectionType.CLIENT)
        self.far = End(ConnectionType.SERVER)
        self.ended: list[NetResponse] = []
        self.relay = Relay(
            self.client.link, self.far.link, b"", b"", ASKED, EMPTY, "e1", self.around, self.ended.append
        )

    def hear(self) -> None:
        self.far.hear()
        self.client.hear()

    def settle(self) -> NetResponse:
        """Let the links close as a socket's would, and return how it ended."""
        for end in (self.client, self.far):
            assert end.link.closed, "a link stays open"
        self.client.link.on_closed()
        assert self.ended == []
        self.far.link.on_closed()
        assert len(self.ended) == 1
        return self.ended[0]
