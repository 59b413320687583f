"""A gRPC call over HTTP/2: decided whole if its body ends soon, else at once, and then message by message."""

from interlock.boundary.net.around import Around
from interlock.boundary.net.bodies import SpoolFailed
from interlock.boundary.net.exchange import NetExchange
from interlock.boundary.net.gate import Parked, Passage, Refused
from interlock.boundary.net.proposing import field
from interlock.boundary.net.refusal import grpc_plain, grpc_problem, is_grpc
from interlock.boundary.net.settings import FarConnection, Place
from interlock.boundary.net.sides import AnswerHead, ClientSide, RawHeaders, RequestHead
from interlock.boundary.net.streaming import BodyStream
from interlock.model.requests import Outcome

_OPEN_SECONDS = 0.1
"""A call whose body has not ended by then is one that stays open."""


class OpenCall(NetExchange):
    """An exchange whose request may go on while its answer comes.

    Holds: nothing of a body leaves before its message is passed; what came before the call itself was decided waits.
    """

    def __init__(self, around: Around, client: ClientSide, head: RequestHead, place: Place) -> None:
        super().__init__(around, client, head, place)
        self._open_call = False  # decided, or being decided, as one that stays open
        self._stream: BodyStream | None = None
        self._timer = around.loop.call_later(_OPEN_SECONDS, self._stay_open)

    def body_data(self, chunk: bytes) -> None:
        """Decide a part of the body, or keep it until the call is decided."""
        if self._stream is None:
            super().body_data(chunk)
        elif not self._ended:
            self._stream.feed(chunk)

    def body_end(self, trailers: RawHeaders) -> None:
        """End the body once its messages are sent."""
        self._timer.cancel()
        if not self._open_call:
            super().body_end(trailers)
            return
        self._whole = True
        self._trailers = trailers
        if self._stream is not None and not self._ended:
            self._stream.end(trailers)

    def client_gone(self) -> None:
        """Give the call up."""
        self._timer.cancel()
        super().client_gone()

    def far_full(self, full: bool) -> None:
        """Send on as the far side takes it."""
        if self._stream is not None:
            self._stream.far_full(full)
        else:
            super().far_full(full)

    def _stay_open(self) -> None:
        if not self._ended and not self._whole:
            self._open_call = True
            self._propose(None, streams=True)

    def _park(self, passage: Parked) -> None:
        if not self._open_call:
            super()._park(passage)
            return
        self._effect_id = passage.effect_id
        self._report(Outcome.FAILED, "a call that stays open cannot be parked")
        self._turn_away(503, "a call that stays open cannot be parked")

    def _begin(self, connection: FarConnection) -> None:
        if not self._open_call:
            super()._begin(connection)
            return
        head = self._around.credentials.put_in(self._head)
        stream = BodyStream(
            self._around,
            self._client,
            self._effect_id,
            field(head.headers, b"grpc-encoding"),
            on_refused=self._part_refused,
        )
        self._connection = connection
        self._far = far = connection.begin(head, self, body=True)
        if self._slow:
            far.read_on(False)
        stream.attach(far)
        self._stream = stream
        try:
            for chunk in self._spool.chunks() if self._spool is not None else ():
                stream.feed(chunk)
        except SpoolFailed:
            self._part_refused(None)
            return
        self._close_spool()
        if self._whole:
            stream.end(self._trailers)

    def _may_retry(self, outcome: Outcome) -> bool:
        return not self._open_call and super()._may_retry(outcome)

    def _part_refused(self, passage: Passage | None) -> None:
        if self._ended:
            return
        far, self._far = self._far, None
        if far is not None:
            far.abort()
        self._report(Outcome.UNKNOWN, "a message of its body was refused")
        if isinstance(passage, Refused):
            said = grpc_problem(passage.exception, passage.effect_id)
        else:
            said = grpc_plain("Not taken", "a message of its body cannot be read or decided")
        if self._answer is None:
            self._finish(said, b"")
        else:
            self._break_off(self._answer, said)

    def _break_off(self, answer: AnswerHead, said: AnswerHead) -> None:
        """End an answer that has begun, with a status that the client cannot take for success."""
        self._ended = True
        if is_grpc(answer.headers) and answer.length is None:
            self._client.end(tuple(field for field in said.headers if field[0].startswith(b"grpc-")))
        else:
            self._client.cut()  # to end it would make it look whole
        self._release()

    def _release(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super()._release()
