"""Server-sent events as MCP uses them: one message an event, with an id from which a stream can go on.

Source: HTML, server-sent events; MCP, streamable HTTP.
"""

from interlock.model.records import dataclass

MAX_EVENT_BYTES = 33 * 1024 * 1024
"""An event with more in it is passed to nobody: a message may be 32 MiB."""
_SMALL_BYTES = 4096
"""What an id or a name may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event. Takes: `data`, None where it was too long to be kept, `b""` where it has none; `id`, `""` for none."""

    data: bytes | None
    id: bytes = b""
    name: bytes = b""
    retry: bytes = b""


class Events:
    """Cuts a stream into events. Holds: the same events for any cut into chunks; memory is bounded."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._fields: dict[bytes, bytes] = {}
        self._long = False
        self._any = False
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Take a part of the stream. Returns: the events that it ends."""
        found: list[Event] = []
        at = 0
        while at < len(chunk):
            if self._after_cr:
                self._after_cr = False
                if chunk[at : at + 1] == b"\n":
                    at += 1
                    continue
            end = _line_end(chunk, at)
            if end < 0:
                self._keep(chunk[at:])
                break
            self._keep(chunk[at:end])
            self._after_cr = chunk[end : end + 1] == b"\r"
            at = end + 1
            event = self._ended()
            if event is not None:
                found.append(event)
        return found

    def _keep(self, part: bytes) -> None:
        if self._size + len(self._line) + len(part) > MAX_EVENT_BYTES:
            self._long = True
            # what the line is must stay to be seen
            part = part[: max(0, _SMALL_BYTES - len(self._line))]
        self._line += part

    def _ended(self) -> Event | None:
        line = bytes(self._line)
        self._line.clear()
        if not self._started:
            self._started = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._whole()
        name, _, value = line.partition(b":")
        if not name:
            return None  # a comment
        value = value.removeprefix(b" ")
        self._any = True
        if name == b"data":
            if self._long:
                self._data.clear()
            else:
                self._data.append(value)
                self._size += len(value) + 1
        elif name in (b"id", b"event", b"retry") and len(value) <= _SMALL_BYTES and b"\0" not in value:
            self._fields[name] = value
        return None

    def _whole(self) -> Event | None:
        if not self._any:
            return None
        event = Event(
            data=None if self._long else b"\n".join(self._data),
            id=self._fields.get(b"id", b""),
            name=self._fields.get(b"event", b""),
            retry=self._fields.get(b"retry", b""),
        )
        self._data, self._fields = [], {}
        self._size, self._long, self._any = 0, False, False
        return event


def _line_end(chunk: bytes, at: int) -> int:
    feed, back = chunk.find(b"\n", at), chunk.find(b"\r", at)
    return max(feed, back) if feed < 0 or back < 0 else min(feed, back)


def event_bytes(data: bytes, *, id: bytes = b"", name: bytes = b"", retry: bytes = b"") -> bytes:
    """Return an event as it is sent. Takes: `data`, without an end of line in it."""
    lines = [
        b"%b: %b\n" % (key, value)
        for key, value in ((b"event", name), (b"id", id), (b"retry", retry))
        if value
    ]
    return b"%bdata: %b\n\n" % (b"".join(lines), data)
