"""A tunnel: bytes pass both ways unread, for the hosts and ports that the policy names as opaque."""

from collections.abc import Callable

from interlock.boundary.net.link import SocketLink
from interlock.model.requests import NetResponse, Outcome


class Tunnel:
    """Two links joined: what comes on one is sent on the other, each direction with its own end.

    Takes: `on_end`, called once both links are closed, with how it went: `size_bytes` is what came from the far side.
    """

    def __init__(self, client: SocketLink, far: SocketLink, on_end: Callable[[NetResponse], None]) -> None:
        self._client = client
        self._far = far
        self._on_end = on_end
        self._sent_bytes = 0
        self._came_bytes = 0
        self._ended = 0  # directions that ended as they should
        self._closed = 0
        for one, other, count in ((client, far, self._sent), (far, client, self._came)):
            self._join(one, other, count)
        client.resume()
        far.resume()

    def abort(self) -> None:
        """End it at once."""
        self._client.abort()
        self._far.abort()

    def _join(self, one: SocketLink, other: SocketLink, count: Callable[[int], None]) -> None:
        def on_data(data: bytes) -> None:
            count(len(data))
            other.write(data)
            if other.full:
                one.pause()

        def on_eof() -> None:
            self._ended += 1
            other.finish()

        def on_closed() -> None:
            self._closed += 1
            if not other.closed:
                if self._ended == 2:
                    other.close()
                else:
                    other.abort()
            if self._closed == 2:
                self._on_end(self._response())

        one.on_data = on_data
        one.on_eof = on_eof
        one.on_closed = on_closed
        one.on_room = other.resume

    def _sent(self, size_bytes: int) -> None:
        self._sent_bytes += size_bytes

    def _came(self, size_bytes: int) -> None:
        self._came_bytes += size_bytes

    def _response(self) -> NetResponse:
        whole = self._ended == 2
        return NetResponse(
            outcome=Outcome.DONE if whole else Outcome.UNKNOWN,
            size_bytes=self._came_bytes,
            detail=f"{self._sent_bytes} bytes were sent" + ("" if whole else ", and then it was cut off"),
        )
