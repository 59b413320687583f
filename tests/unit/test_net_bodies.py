"""What a spooled body keeps, what is read of it as text, and what happens on a disk that is full."""

import errno
import gzip
import hashlib
import os
import resource
import stat
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.boundary.net.bodies import BodyTooLarge, Kept, Spool, SpoolFailed
from interlock.boundary.net.gate import Body
from interlock.boundary.net.inflating import decode, inflate, inflate_sent
from interlock.boundary.net.plan import NetLimits
from interlock.boundary.net.views import views_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMITS = NetLimits(body_bytes=4096, memory_bytes=64, text_bytes=1024, inflated_bytes=2048)


SKIPPED = b"\x50\x2a\x4d\x18\x06\0\0\0secret"
"""A frame that zstd's readers pass over."""


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)  # the same in each process, since tests are named after it


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path)
    assert os.listdir(tmp_path) in ([], ["saved"])


def spooled(folder: str, data: bytes, limits: NetLimits = LIMITS, step: int = 50) -> Spool:
    spool = Spool(folder, limits)
    for at in range(0, len(data), step):
        spool.append(data[at : at + step])
    spool.finish()
    return spool


@pytest.mark.parametrize("size", [0, 1, 64, 65, 4096])
def test_a_spooled_body_comes_back_as_it_was(folder: str, size: int) -> None:
    data = os.urandom(size)
    spool = spooled(folder, data)
    body: Body = spool
    assert body.size_bytes == size
    assert spool.digest == (hashlib.sha256(data).hexdigest() if size else "")
    assert b"".join(spool.chunks()) == data
    assert b"".join(spool.chunks(7)) == data
    assert os.listdir(folder) == []  # what is on disk has no name
    spool.close()


@pytest.mark.parametrize("size", [0, 10, 3000])
def test_a_saved_body_is_a_file_of_its_own(folder: str, size: int) -> None:
    data = os.urandom(size)
    spool = spooled(folder, data)
    path = f"{folder}/saved"
    spool.save(path)
    spool.close()
    assert Path(path).read_bytes() == data
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_saving_never_replaces_a_file_or_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"kept")
    (tmp_path / "link").symlink_to("other")
    for size in (10, 3000):
        spool = spooled(str(tmp_path), b"x" * size)
        for name in ("other", "link"):
            with pytest.raises(SpoolFailed):
                spool.save(str(tmp_path / name))
        spool.close()
    assert (tmp_path / "other").read_bytes() == b"kept"


def test_a_body_beyond_the_limit_is_refused_when_it_passes_it(folder: str) -> None:
    spool = spooled(folder, b"x" * 4096)
    with pytest.raises(BodyTooLarge):
        spool.append(b"y")
    assert spool.size_bytes == 4096
    spool.close()


def test_a_large_body_costs_no_memory(folder: str) -> None:
    limits = replace(LIMITS, body_bytes=1 << 30, memory_bytes=64 * 1024)
    chunk = b"z" * 65536
    tracemalloc.start()
    spool = Spool(folder, limits)
    for _ in range(512):
        spool.append(chunk)
    spool.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    spool.close()
    assert peak < 1024 * 1024


def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    program = f"""
import resource, sys
from interlock.boundary.net.bodies import Spool, SpoolFailed
from interlock.boundary.net.plan import NetLimits
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
spool = Spool({str(tmp_path)!r}, NetLimits(memory_bytes=10))
try:
    spool.append(b"x" * 5000)
except SpoolFailed as error:
    print(error.status)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "507\n"


def test_a_folder_that_is_gone_is_one_clear_error() -> None:
    spool = Spool("/nowhere/at/all", LIMITS)
    spool.append(b"x" * 64)
    with pytest.raises(SpoolFailed) as caught:
        spool.append(b"y")
    assert caught.value.status == 503
    assert SpoolFailed(OSError(errno.ENOSPC, "")).status == 507


@pytest.mark.parametrize(
    ("content_type", "encoding", "data", "text"),
    [
        ("application/json", "", b'{"a": 1}', '{"a": 1}'),
        ("application/octet-stream", "", "grün".encode(), "grün"),
        ("image/png", "", b"\x89PNG\r\n\x1a\n\x00", None),
        ("text/plain", "", b"a\x00b", None),
        ("text/plain; charset=iso-8859-1", "", "grün".encode("latin-1"), "grün"),
        ("application/octet-stream; charset=iso-8859-1", "", "grün".encode("latin-1"), None),
        ("text/plain; charset=utf-16", "", "grün".encode("utf-16"), "grün"),
        ("text/plain; charset=utf-16", "", b"secret", None),  # two readings
        ("text/plain; charset=unicode_escape", "", b"\xff\\x41", None),
        ("text/plain", "", "grün".encode("latin-1"), None),
        ("text/plain", "gzip", packed(b"packed"), "packed"),
        ("text/plain", "x-gzip, identity", packed(b"packed"), "packed"),
        ("text/plain", "gzip", packed(b"one ") + packed(b"two"), "one two"),
        ("text/plain", "deflate", zlib.compress(b"packed"), "packed"),
        ("text/plain", "deflate", zlib.compress(b"packed")[2:-4], "packed"),
        ("text/plain", "gzip, deflate", zlib.compress(packed(b"twice")), "twice"),
        ("text/plain", "gzip, gzip, gzip, gzip", b"", None),
        ("text/plain", "zstd", zstd.compress(b"packed"), "packed"),
        ("text/plain", "gzip, zstd", zstd.compress(packed(b"twice")), "twice"),
        ("text/plain", "zstd", zstd.compress(b"one ") + zstd.compress(b"two"), "one two"),
        ("text/plain", "zstd", zstd.compress(b"packed")[:-1], None),
        ("text/plain", "zstd", zstd.compress(b"packed") + b"rest", None),
        ("text/plain", "zstd", zstd.compress(b"packed") + SKIPPED, None),
        ("text/plain", "zstd", SKIPPED + zstd.compress(b"packed"), None),
        ("text/plain", "zstd", zstd.compress(b"x" * 1025), None),
        ("text/plain", "zstd", zstd.compress(b"") * 101, None),
        ("text/plain", "br", brotli.compress(b"packed")[:-1], None),
        ("text/plain", "br", brotli.compress(b"packed") + b"rest", None),
        ("text/plain", "br", brotli.compress(b"x" * 1025), None),
        ("text/plain", "gzip", packed(b"packed")[:-1], None),
        ("text/plain", "gzip", packed(b"packed") + b"rest", None),
        ("text/plain", "gzip", b"packed", None),
        ("text/plain", "gzip", packed(b"x" * 1025), None),
        ("text/plain", "gzip", packed(b"") * 101, None),
        ("text/plain", "", b"x" * 1025, None),
    ],
)  # fmt: skip
def test_text_is_read_only_where_it_has_one_reading(
    folder: str, content_type: str, encoding: str, data: bytes, text: str | None
) -> None:
    spool = spooled(folder, data)
    assert spool.text(content_type, encoding) == text
    spool.close()
    kept = Kept(LIMITS)
    kept.append(data)
    assert kept.text(content_type, encoding) == text


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("br", brotli.compress(b"packed")),
        ("gzip, br", brotli.compress(packed(b"packed"))),
        ("gzip", b"\x1f\x8b\x08\x10" + bytes(6) + b"a comment\0" + packed(b"packed")[10:]),
        ("gzip", packed(b"") + b"\x1f\x8b\x08\x08" + bytes(6) + b"a name\0" + packed(b"packed")[10:]),
        ("gzip", b"\x1f\x8b\x08\x04" + bytes(6) + b"\x05\0extra" + packed(b"packed")[10:]),
    ],
)
def test_what_unpacking_would_drop_is_read_of_an_answer_and_never_of_a_request(
    folder: str, encoding: str, data: bytes
) -> None:
    spool = spooled(folder, data)
    assert spool.text("text/plain", encoding) is None
    spool.close()
    assert inflate_sent(data, encoding, 1024) is None
    assert views_of(data, "text/plain", encoding) == ((), False)
    kept = Kept(LIMITS)
    kept.append(data)
    assert kept.text("text/plain", encoding) == "packed"


def test_a_bomb_of_another_kind_is_not_inflated_either() -> None:
    whole = b"\0" * (256 << 20)
    bombs = {"br": brotli.compress(whole, quality=1), "zstd": zstd.compress(whole)}
    del whole
    for encoding, bomb in bombs.items():
        before = resource.getrusage(resource.RUSAGE_SELF)
        assert inflate(bomb, encoding, 1 << 20) is None
        after = resource.getrusage(resource.RUSAGE_SELF)
        assert after.ru_utime - before.ru_utime < 1
        assert after.ru_maxrss - before.ru_maxrss < 64 << 10


@pytest.mark.parametrize(("window_log", "read"), [(10, True), (23, True), (24, False), (31, False)])
def test_no_window_is_given_that_http_does_not_give(window_log: int, read: bool) -> None:
    body = b"\x28\xb5\x2f\xfd\0" + bytes((window_log - 10 << 3,)) + b"\x31\0\0packed"
    assert inflate(body, "zstd", 1024) == (b"packed" if read else None)


def test_a_deflate_body_with_two_readings_is_not_read() -> None:
    polyglot = _polyglot()
    as_zlib, raw = zlib.decompressobj(15), zlib.decompressobj(-15)
    assert as_zlib.decompress(polyglot) != raw.decompress(polyglot)
    assert (as_zlib.eof, as_zlib.unused_data, raw.eof, raw.unused_data) == (True, b"", True, b"")
    assert inflate(polyglot, "deflate", 1 << 20) is None


def _polyglot() -> bytes:
    """Bytes that are a whole zlib stream and, read raw, a whole deflate stream of another content.

    To the raw reader the zlib head 78 01 begins a stored block; stored blocks of each reading hide what is the other's,
    and the checksum's last two bytes are the raw reader's final empty block (03 00).
    """
    size = 0xFFFE
    first = b"\x78\x01\x00\xfe\xff\x01\x00"
    last = b"\x01\x00\x00\xff\xff"
    inner = size - 9 - 10
    content = (10).to_bytes(2, "little") + (10 ^ 0xFFFF).to_bytes(2, "little") + bytes(10)
    rest = inner + len(last) + 2
    content += b"\x00" + rest.to_bytes(2, "little") + (rest ^ 0xFFFF).to_bytes(2, "little")
    missing = (768 - 1 - sum(content)) % 65521
    filler = b"\xff" * (missing // 255) + bytes((missing % 255,))
    content += filler + bytes(size - len(content) - len(filler))
    return first + content + last + zlib.adler32(content).to_bytes(4, "big")


def test_a_bomb_is_not_inflated() -> None:
    bomb = packed(packed(b"\0" * (64 << 20)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    tracemalloc.start()
    assert inflate(bomb, "gzip, gzip", 1 << 20) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 2


def test_an_answer_is_kept_only_while_it_is_small() -> None:
    kept = Kept(LIMITS)
    for _ in range(3):
        kept.append(b"x" * 1000)
    assert kept.size_bytes == 3000
    assert kept.digest == hashlib.sha256(b"x" * 3000).hexdigest()
    assert kept.body("") is None
    assert kept.text("text/plain", "") is None
    empty = Kept(LIMITS)
    assert (empty.digest, empty.body(""), empty.text("text/plain", "")) == ("", b"", "")


def test_a_large_answer_holds_no_memory() -> None:
    limits = NetLimits()
    tracemalloc.start()
    many = [Kept(limits) for _ in range(16)]
    for kept in many:
        for _ in range(17):
            kept.append(bytes(64 * 1024))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 1 << 20
    assert {kept.body("") for kept in many} == {None}


@given(st.binary(max_size=400), st.lists(st.integers(1, 90), max_size=12))
def test_however_a_body_is_split_it_is_the_same(data: bytes, sizes: list[int]) -> None:
    spool, kept = Spool("/tmp", LIMITS), Kept(LIMITS)
    at = 0
    for size in [*sizes, 400]:
        spool.append(data[at : at + size])
        kept.append(data[at : at + size])
        at += size
    spool.finish()
    assert b"".join(spool.chunks(33)) == data
    assert spool.digest == kept.digest
    assert spool.text("text/plain", "") == kept.text("text/plain", "") == decode(data, "text/plain")
    spool.close()


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "gzip, deflate", "", "br", "zstd"]))
def test_no_bytes_break_the_inflater(data: bytes, encoding: str) -> None:
    found = inflate(data, encoding, 200)
    assert found is None or len(found) <= 200


PACKERS = {"gzip": packed, "br": brotli.compress, "zstd": zstd.compress}


@given(st.binary(max_size=2000), st.integers(0, 3000), st.sampled_from(sorted(PACKERS)))
def test_what_was_compressed_comes_back_or_is_beyond_the_limit(
    data: bytes, limit: int, encoding: str
) -> None:
    assert inflate(PACKERS[encoding](data), encoding, limit) == (data if len(data) <= limit else None)


@given(st.sampled_from(sorted(PACKERS)), st.integers(0, 400), st.integers(0, 7), st.binary(max_size=3))
def test_a_damaged_body_never_breaks_the_inflater(encoding: str, at: int, bit: int, more: bytes) -> None:
    body = bytearray(PACKERS[encoding](b"all work and no play " * 20 + bytes(range(256))))
    body[at % len(body)] ^= 1 << bit
    found = inflate(bytes(body) + more, encoding, 2000)
    assert found is None or len(found) <= 2000
