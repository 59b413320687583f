"""However the bytes of a pipe are cut, the same lines come out of them."""

from __future__ import annotations

import json

from hypothesis import strategies as st
from tests.fakes.few_and_many import few_and_many

from interlock.boundary.mcp import Lines, Unreadable, read

BYTES = st.binary(max_size=40) | st.sampled_from((b"\n", b"\r\n", b"\r", b'{"jsonrpc":"2.0"}', b"x" * 30))


def plain(whole: bytes, bound: int) -> list[bytes | None]:
    """Say the same with one split: a line longer than the bound is None."""
    *lines, last = whole.split(b"\n")
    found = [None if len(line) > bound else line.removesuffix(b"\r") for line in lines]
    end = None if len(last) > bound else last.removesuffix(b"\r")
    return [line for line in found if line != b""] + ([end] if end != b"" else [])


def fed(pieces: list[bytes], bound: int) -> list[bytes | None]:
    lines = Lines(bound)
    found = [line for piece in pieces for line in lines.feed(piece)]
    last = lines.end()
    return found + ([last] if last != b"" else [])


@few_and_many(200, 20_000, st.lists(BYTES, max_size=12), st.integers(1, 60))
def test_any_cut_gives_the_same_lines(pieces: list[bytes], bound: int) -> None:
    whole = b"".join(pieces)
    assert fed(pieces, bound) == plain(whole, bound)
    assert fed([whole[at : at + 1] for at in range(len(whole))], bound) == plain(whole, bound)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(("jsonrpc", "id", "method", "params", "result", "error", "Method", "x"))


@few_and_many(200, 20_000, st.dictionaries(NAMES, VALUES | st.just("2.0"), max_size=6))
def test_whatever_is_let_through_reads_the_same_again(found: dict[str, object]) -> None:
    message = read(json.dumps(found).encode())
    if not isinstance(message, Unreadable):
        again = read(message.raw)
        assert again == message
        assert json.loads(message.raw) == found


@few_and_many(200, 20_000, st.binary(max_size=200))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    read(raw)
