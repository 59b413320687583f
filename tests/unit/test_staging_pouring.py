"""Bytes from file to file: the same bytes and holes, however the kernel lets them be shared."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.staging import pouring
from interlock.staging.pouring import pour, pour_extents

SIZE_BYTES = 5 << 20


def refused(*_: object) -> int:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    with path.open("wb") as file:
        file.truncate(SIZE_BYTES)
        file.seek(1 << 20)
        file.write(os.urandom(300_000))
        file.seek(SIZE_BYTES - 7)
        file.write(b"the end")
    return path


@pytest.mark.parametrize("way", ["as the file system can", "without reflinks", "without copy_file_range"])
@pytest.mark.parametrize("copy", [pour, pour_extents])
def test_bytes_and_holes_are_the_same_by_each_way(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: Callable[..., None], way: str
) -> None:
    if way != "as the file system can":
        monkeypatch.setattr(pouring, "share_bytes", lambda *_: False)
    if way == "without copy_file_range":
        monkeypatch.setattr(os, "copy_file_range", refused)
    with source.open("rb") as reading, (tmp_path / "copy").open("w+b") as writing:
        copy(reading.fileno(), writing.fileno(), os.fstat(reading.fileno()))
        found = os.fstat(writing.fileno())
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert found.st_blocks * 512 < SIZE_BYTES


def test_an_error_of_the_disk_is_no_reason_for_another_way(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bad(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(pouring, "share_bytes", lambda *_: False)
    monkeypatch.setattr(os, "copy_file_range", bad)
    with (
        source.open("rb") as reading,
        (tmp_path / "copy").open("w+b") as writing,
        pytest.raises(OSError, match=os.strerror(errno.EIO)),
    ):
        pour(reading.fileno(), writing.fileno(), os.fstat(reading.fileno()))


@pytest.mark.parametrize("living", [False, True])
def test_a_file_that_shrinks_meanwhile_is_an_error_only_where_nobody_was_to_write(
    tmp_path: Path, living: bool
) -> None:
    path = tmp_path / "source"
    path.write_bytes(b"x" * (3 << 20))
    with path.open("r+b") as reading, (tmp_path / "copy").open("w+b") as writing:
        status = os.fstat(reading.fileno())
        reading.truncate(1 << 20)
        if living:
            pour(reading.fileno(), writing.fileno(), status)
            assert (tmp_path / "copy").read_bytes()[: 1 << 20] == b"x" * (1 << 20)
        else:
            with pytest.raises(OSError, match="shrank"):
                pour_extents(reading.fileno(), writing.fileno(), status)
