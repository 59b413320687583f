"""A real h2 peer at the other end of a link in memory."""

from collections.abc import Callable

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from hyperframe.frame import Frame
from tests.fakes.net_links import MemoryLink, Step


class Peer:
    """An h2 connection that talks to whatever has the link; `frames` are those that came, `events` what h2 made of them.

    Takes: `quiet`, for a peer that only writes what the test gives it (wire vectors).
    """

    def __init__(self, link: MemoryLink, loop: Step, *, client: bool = True, quiet: bool = False) -> None:
        self.link = link
        self.loop = loop
        self.h2 = H2Connection(
            H2Configuration(
                client_side=client,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                validate_inbound_headers=True,
            )
        )
        self.quiet = quiet
        self.acknowledge = True
        self.events: list[Event] = []
        self.frames: list[Frame] = []
        self._wire = b""
        if not quiet:
            self.h2.initiate_connection()
            self.talk()

    def talk(self) -> list[Event]:
        """Carry bytes both ways until nothing more comes; return the events of this time."""
        begin = len(self.events)
        while True:
            out = b"" if self.quiet else self.h2.data_to_send()
            if out and not self.link.closed:
                self.link.on_data(out)
            self.loop.turn()
            came = self.link.take()
            if not came and not out:
                break
            self._note(came)
            if not self.quiet and came:
                for event in self.h2.receive_data(came):
                    self.events.append(event)
                    if isinstance(event, DataReceived) and self.acknowledge:
                        self.h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
        return self.events[begin:]

    def send(self, data: bytes) -> None:
        """Write raw bytes."""
        if not self.link.closed:
            self.link.on_data(data)
        self.loop.turn()
        self._note(self.link.take())

    def request(self, stream: int, fields: list[tuple[bytes, bytes]], body: bytes | None = None) -> None:
        """Send a request, without talking."""
        self.h2.send_headers(stream, fields, end_stream=body is None)
        if body is not None:
            self.h2.send_data(stream, body, end_stream=True)

    def answer_to(self, stream: int) -> tuple[dict[bytes, bytes], bytes, dict[bytes, bytes], bool]:
        """Return head, body, trailers of the answer so far, and whether it is whole."""
        head: dict[bytes, bytes] = {}
        body = b""
        trailers: dict[bytes, bytes] = {}
        whole = False
        for event in self.events:
            if getattr(event, "stream_id", None) != stream:
                continue
            match event:
                case ResponseReceived():
                    head = {bytes(name): bytes(value) for name, value in event.headers}
                case DataReceived():
                    body += event.data or b""
                case TrailersReceived():
                    trailers = {bytes(name): bytes(value) for name, value in event.headers}
                case StreamEnded():
                    whole = True
                case _:
                    pass
        return head, body, trailers, whole

    def reset_code(self, stream: int) -> int | None:
        """Return the code with which the stream was reset, None if it was not."""
        for event in self.events:
            if isinstance(event, StreamReset) and event.stream_id == stream:
                return int(event.error_code or 0)
        for frame in self.frames:
            if type(frame).__name__ == "RstStreamFrame" and frame.stream_id == stream:
                return int(frame.error_code)  # type: ignore[attr-defined]
        return None

    def goaway_code(self) -> int | None:
        """Return the code of the last GOAWAY that came, None for none."""
        for event in reversed(self.events):
            if isinstance(event, ConnectionTerminated):
                return int(event.error_code or 0)
        for frame in reversed(self.frames):
            if type(frame).__name__ == "GoAwayFrame":
                return int(frame.error_code)  # type: ignore[attr-defined]
        return None

    def _note(self, came: bytes) -> None:
        self._wire += came
        if self._wire.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            self._wire = self._wire[24:]
        while len(self._wire) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(self._wire[:9]))
            if len(self._wire) < 9 + length:
                break
            frame.parse_body(memoryview(self._wire[9 : 9 + length]))
            self.frames.append(frame)
            self._wire = self._wire[9 + length :]


def get(
    path: str = "/",
    authority: str = "api.test",
    *extra: tuple[bytes, bytes],
    method: str = "GET",
    scheme: str = "https",
) -> list[tuple[bytes, bytes]]:
    """Return a request's fields."""
    return [
        (b":method", method.encode()), (b":scheme", scheme.encode()), (b":authority", authority.encode()),
        (b":path", path.encode()), *extra,
    ]  # fmt: skip


def times(count: int, act: Callable[[int], None]) -> None:
    """Act so many times."""
    for at in range(count):
        act(at)
