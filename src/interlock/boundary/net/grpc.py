"""gRPC bodies: the messages that a stream is cut into, each decided on its own.

Source: the gRPC wire format over HTTP/2 (length-prefixed messages).
"""

import hashlib

from interlock.boundary.net.inflating import decode, inflate_sent
from interlock.boundary.net.plan import NetLimits
from interlock.model.records import dataclass
from interlock.model.requests import NetMessage

MESSAGE_BYTES = 16 * 1024**2
"""What one message of a stream may hold: four times what receivers take unless told otherwise."""
_PREFIX_BYTES = 5


class GrpcError(Exception):
    """The body is not one of gRPC messages within the limit. Takes: `status`, the HTTP status that says so."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message. Takes: `data`, as it is sent on, its prefix included; `text`, None where it is not text."""

    data: bytes
    text: str | None

    def proposal(self, stream: str, placeholders: tuple[str, ...] = ()) -> NetMessage:
        """Return what the gate is asked. Takes: `stream`, the effect that opened it."""
        return NetMessage(
            stream=stream,
            size_bytes=len(self.data),
            digest=hashlib.sha256(self.data).hexdigest(),
            text=self.text,
            placeholders=placeholders,
        )


class Splitter:
    """Cuts a body into its messages as it comes.

    Takes: `encoding`, the `grpc-encoding` field, for messages that are compressed.
    Holds: the same bytes give the same messages however they were split; less than one message is held.
    """

    __slots__ = ("_buffer", "_encoding", "_limits")

    def __init__(self, encoding: str, limits: NetLimits) -> None:
        self._buffer = bytearray()
        self._encoding = encoding
        self._limits = limits

    @property
    def within(self) -> bool:
        """Say whether a message has begun and is not whole: a body must not end so."""
        return bool(self._buffer)

    @property
    def held_bytes(self) -> int:
        """Return how much of a message that is not whole is held."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> list[Part]:
        """Take a part of the body. Raises: GrpcError; nothing of this call may then be sent."""
        buffer = self._buffer
        buffer += chunk
        found: list[Part] = []
        at = 0
        while len(buffer) - at >= _PREFIX_BYTES:
            flag = buffer[at]
            size = int.from_bytes(buffer[at + 1 : at + _PREFIX_BYTES], "big")
            if flag > 1:
                raise GrpcError("a gRPC message's prefix is not one of the format")
            if size > MESSAGE_BYTES:
                raise GrpcError(f"a gRPC message is larger than {MESSAGE_BYTES} bytes", 413)
            end = at + _PREFIX_BYTES + size
            if len(buffer) < end:
                break
            data = bytes(buffer[at:end])
            found.append(Part(data=data, text=self._text(data)))
            at = end
        del buffer[:at]
        return found

    def _text(self, data: bytes) -> str | None:
        payload: bytes | None = data[_PREFIX_BYTES:]
        if data[0]:
            payload = (
                inflate_sent(data[_PREFIX_BYTES:], self._encoding, self._limits.inflated_bytes)
                if self._encoding
                else None
            )
        if payload is None or len(payload) > self._limits.text_bytes:
            return None
        return decode(payload, "")
