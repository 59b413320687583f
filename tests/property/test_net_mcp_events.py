"""Server-sent events are the same for any cut of the stream, and none grows without bound."""

from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.boundary.net import mcp_events
from interlock.boundary.net.mcp_events import Event, Events, event_bytes

LINES = st.sampled_from(
    [
        b"data: {}",
        b"data:x",
        b"data",
        b"id: 7",
        b"event: message",
        b"retry: 5",
        b": alive",
        b"",
        b"",
        b"other: x",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@few_and_many(100, 3000, st.lists(st.tuples(LINES, ENDS), max_size=12), st.integers(1, 9))
def test_any_cut(parts: list[tuple[bytes, bytes]], size: int) -> None:
    stream = b"".join(line + end for line, end in parts)
    whole = Events().feed(stream + b"\n\n")
    cut, found = Events(), []
    for at in range(0, len(stream + b"\n\n"), size):
        found += cut.feed((stream + b"\n\n")[at : at + size])
    assert found == whole


@few_and_many(50, 500, st.binary(max_size=40).filter(lambda data: not {10, 13} & set(data)))
def test_what_is_written_is_read(data: bytes) -> None:
    # a value loses one space at its start, and has one put there
    assert Events().feed(event_bytes(data, id=b"3", name=b"message")) == [
        Event(data=data, id=b"3", name=b"message")
    ]


def test_what_is_too_long_is_told_and_forgotten() -> None:
    limit = mcp_events.MAX_EVENT_BYTES
    events = Events()
    found = events.feed(b"id: 1\ndata: ")
    for _ in range(limit // (1 << 20) + 2):
        found += events.feed(b"x" * (1 << 20))
    found += events.feed(b"\nid: 2\n\ndata: next\n\n")
    assert found == [Event(data=None, id=b"2"), Event(data=b"next")]
