"""How a gRPC body is cut into its messages."""

import gzip
import hashlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.boundary.net.grpc import MESSAGE_BYTES, GrpcError, Part, Splitter
from interlock.boundary.net.plan import NetLimits

LIMITS = NetLimits(text_bytes=1000)


def framed(payload: bytes, flag: int = 0) -> bytes:
    return bytes((flag,)) + len(payload).to_bytes(4, "big") + payload


def test_messages_come_whole_with_their_prefix_and_text() -> None:
    splitter = Splitter("", LIMITS)
    data = framed(b"\n\x05hello") + framed(b"") + framed(b"\x00\xff")
    assert splitter.feed(data[:3]) == []
    assert splitter.within
    parts = splitter.feed(data[3:])
    assert [part.data for part in parts] == [data[:12], data[12:17], data[17:]]
    assert [part.text for part in parts] == ["\n\x05hello", "", None]
    assert not splitter.within
    asked = parts[0].proposal("e1", ("e7",))
    assert (asked.stream, asked.size_bytes, asked.digest) == ("e1", 12, hashlib.sha256(data[:12]).hexdigest())
    assert asked.placeholders == ("e7",)


def test_a_compressed_message_is_read_within_bounds() -> None:
    packed, bomb = framed(gzip.compress(b"hello"), 1), framed(gzip.compress(bytes(1 << 20)), 1)
    assert [part.text for part in Splitter("gzip", LIMITS).feed(packed + bomb)] == ["hello", None]
    assert [part.text for part in Splitter("", LIMITS).feed(packed)] == [None]
    assert [part.text for part in Splitter("snappy", LIMITS).feed(packed)] == [None]


@pytest.mark.parametrize(
    ("data", "status"), [(b"\x02\0\0\0\x01a", 400), (framed(b"")[:1] + b"\x01\0\0\x01", 413)]
)
def test_what_is_no_message_is_refused_before_it_is_held(data: bytes, status: int) -> None:
    with pytest.raises(GrpcError) as caught:
        Splitter("", LIMITS).feed(data)
    assert caught.value.status == status


def test_what_is_held_is_bounded_by_one_message() -> None:
    splitter = Splitter("", LIMITS)
    tracemalloc.start()
    splitter.feed(b"\0" + MESSAGE_BYTES.to_bytes(4, "big"))
    for _ in range(15):
        assert splitter.feed(bytes(1 << 20)) == []
    assert splitter.held_bytes == 15 * (1 << 20) + 5
    assert tracemalloc.get_traced_memory()[1] < 3 * MESSAGE_BYTES
    tracemalloc.stop()


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 60), max_size=12))
def test_however_it_is_split_the_messages_are_the_same(payloads: list[bytes], sizes: list[int]) -> None:
    data = b"".join(map(framed, payloads))
    splitter = Splitter("", LIMITS)
    found: list[Part] = []
    at = 0
    for size in [*sizes, len(data)]:
        found += splitter.feed(data[at : at + size])
        at += size
    assert found == Splitter("", LIMITS).feed(data)
    assert [part.data[5:] for part in found] == payloads
    assert not splitter.within
