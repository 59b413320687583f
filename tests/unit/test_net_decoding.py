"""Compressed answers undone as they stream: any cut gives the same, what is not whole is told, nothing grows for ever."""

from __future__ import annotations

import gzip
import random
import sys
import zlib

import brotli  # type: ignore[import-untyped]
import pytest

from interlock.boundary.net.decoding import Decoding, Undecodable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = b'data: {"x": "hello"}\n\n' * 4000 + random.Random(1).randbytes(5000) + b"y" * 300_000


def _raw(data: bytes) -> bytes:
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    return engine.compress(data) + engine.flush()


ENCODED = {
    "gzip": ("gzip", gzip.compress(TEXT)),
    "two members": ("x-gzip", gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:])),
    "zlib": ("deflate", zlib.compress(TEXT)),
    "raw": ("deflate", _raw(TEXT)),
    "br": ("br", brotli.compress(TEXT)),
    "zstd": ("zstd", zstd.compress(TEXT)),
    "two frames": ("zstd", zstd.compress(TEXT[:9]) + zstd.compress(TEXT[9:])),
    "layers": ("gzip, br", brotli.compress(gzip.compress(TEXT))),
    "none": ("identity", TEXT),
}


def decoded(encoding: str, data: bytes, size: int) -> bytes:
    decoding = Decoding(encoding)
    found = b"".join(
        piece for at in range(0, len(data), size) for piece in decoding.feed(data[at : at + size])
    )
    decoding.finish()
    return found


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
def test_any_cut_gives_the_same(name: str, size: int) -> None:
    encoding, data = ENCODED[name]
    assert decoded(encoding, data, size) == TEXT


@pytest.mark.parametrize("name", [name for name in ENCODED if name != "none"])
def test_what_is_cut_off_or_broken_is_told(name: str) -> None:
    encoding, data = ENCODED[name]
    with pytest.raises(Undecodable):
        decoded(encoding, data[: len(data) // 2], 1000)
    with pytest.raises(Undecodable):
        decoded(encoding, b"no such bytes, and none that follow", 1000)


def test_what_comes_so_far_is_there_at_once() -> None:
    engine = zlib.compressobj(wbits=31)
    decoding = Decoding("gzip")
    for number in range(50):
        said = b"event %d\n\n" % number
        chunk = engine.compress(said) + engine.flush(zlib.Z_SYNC_FLUSH)
        assert b"".join(decoding.feed(chunk)) == said


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate"])
def test_an_empty_answer_is_whole(encoding: str) -> None:
    assert decoded(encoding, b"", 1) == b""


@pytest.mark.parametrize(
    ("encoding", "bomb"),
    [
        ("gzip", gzip.compress(b"0" * 40_000_000)),
        ("br", brotli.compress(b"0" * 40_000_000)),
        ("zstd", zstd.compress(b"0" * 40_000_000)),
    ],
)
def test_no_chunk_grows_for_ever(encoding: str, bomb: bytes) -> None:
    size = 0
    with pytest.raises(Undecodable, match="larger than any text"):
        for piece in Decoding(encoding).feed(bomb):
            size += len(piece)
    assert size <= 16 * 1024 * 1024


@pytest.mark.parametrize("encoding", ["compress", "gzip, br, zstd, gzip", "aws-chunked"])
def test_an_encoding_that_is_not_known_is_not_read(encoding: str) -> None:
    with pytest.raises(Undecodable):
        Decoding(encoding)
