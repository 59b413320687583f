"""The body of a gRPC call that stays open: its messages are decided one by one, and leave in order."""

from collections import deque
from collections.abc import Awaitable, Callable

from interlock.boundary.net.around import Around
from interlock.boundary.net.gate import Passage, Passed
from interlock.boundary.net.grpc import GrpcError, Part, Splitter
from interlock.boundary.net.proposing import placeholders
from interlock.boundary.net.sides import ClientSide, FarSide, RawHeaders
from interlock.model.errors import InterlockError

_WAITING_BYTES = 1024 * 1024
"""What may wait to be decided before the client has to."""


class BodyStream:
    """Takes the parts of a body as they come, and sends on those that the gate passes.

    Takes: `effect_id`, of the call that was passed; `on_refused`, called once with what the gate said of a message, or
    None for a body that cannot be read; nothing is sent on after it.
    Holds: no message leaves before it is passed; the body's end is sent on only after its last message.
    """

    def __init__(
        self,
        around: Around,
        client: ClientSide,
        effect_id: str,
        encoding: str,
        *,
        on_refused: Callable[[Passage | None], None],
    ) -> None:
        self._around = around
        self._client = client
        self._effect_id = effect_id
        self._splitter = Splitter(encoding, around.plan.limits)
        self._on_refused = on_refused
        self._waiting: deque[Part] = deque()
        self._waiting_bytes = 0
        self._trailers: RawHeaders | None = None
        self._far: FarSide | None = None
        self._full = False
        self._asking = False
        self._over = False

    def feed(self, chunk: bytes) -> None:
        """Take a part of the body."""
        if self._over:
            return
        try:
            parts = self._splitter.feed(chunk)
        except GrpcError:
            self._refuse(None)
            return
        self._waiting += parts
        self._waiting_bytes += sum(len(part.data) for part in parts)
        self._pump()
        if self._waiting_bytes > _WAITING_BYTES:
            self._client.read_on(False)

    def end(self, trailers: RawHeaders) -> None:
        """Take the end of the body."""
        if self._over:
            return
        if self._splitter.within:
            self._refuse(None)
            return
        self._trailers = trailers
        self._pump()

    def attach(self, far: FarSide) -> None:
        """Begin to send."""
        self._far = far
        self._pump()

    def far_full(self, full: bool) -> None:
        """Stop and go with the far side."""
        self._full = full
        if not full:
            self._pump()

    def close(self) -> None:
        """Send nothing more."""
        self._over = True
        self._far = None
        self._waiting.clear()

    def _pump(self) -> None:
        while self._far is not None and not self._over and not self._full and not self._asking:
            if not self._waiting:
                if self._trailers is not None:
                    self._over = True
                    # Nobody decided on the fields behind the messages, and gRPC has none there (PROTOCOL-HTTP2).
                    self._far.end(())
                return
            part = self._waiting.popleft()
            self._waiting_bytes -= len(part.data)
            tokens = self._around.tokens
            found = placeholders(tokens, (part.data, (part.text or "").encode()), ()) if tokens else ()
            try:
                passage = self._around.gate.propose_message(part.proposal(self._effect_id, found))
            except InterlockError:
                self._refuse(None)
                return
            if isinstance(passage, Awaitable):
                self._asking = True
                self._around.run(self._wait(part, passage))
                return
            self._decided(part, passage)

    async def _wait(self, part: Part, passage: Awaitable[Passage]) -> None:
        try:
            decided = await passage
        except InterlockError:
            self._refuse(None)
            return
        finally:
            self._asking = False
        self._decided(part, decided)
        self._pump()

    def _decided(self, part: Part, passage: Passage) -> None:
        if self._over or self._far is None:
            return
        if not isinstance(passage, Passed):
            self._refuse(passage)
            return
        self._far.send(part.data)
        if self._waiting_bytes <= _WAITING_BYTES // 2:
            self._client.read_on(True)

    def _refuse(self, passage: Passage | None) -> None:
        if not self._over:
            self.close()
            self._on_refused(passage)
