"""Files made durable side by side: all of them, and no failure is lost."""

import os
import threading
from pathlib import Path

import pytest

from interlock.evidence.side_by_side import SideBySide


def test_every_file_is_synced_and_the_threads_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    inner = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: (synced.append(descriptor), inner(descriptor))[1])
    before = threading.active_count()
    side = SideBySide()
    files = [(tmp_path / str(number)).open("wb") for number in range(4)]
    numbers = [file.fileno() for file in files]
    for many in (numbers, numbers[:1], [], numbers):
        synced.clear()
        side.sync(many)
        assert sorted(synced) == sorted(many)
    side.close()
    side.close()
    assert threading.active_count() == before
    for file in files:
        file.close()


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_one_file_that_fails_fails_all(bad: int, tmp_path: Path) -> None:
    side = SideBySide()
    files = [(tmp_path / str(number)).open("wb") for number in range(3)]
    numbers = [file.fileno() for file in files]
    gone, other_end = os.pipe()
    numbers[bad] = gone
    with pytest.raises(OSError, match="Invalid argument"):
        side.sync(numbers)
    side.close()
    for descriptor in (gone, other_end):
        os.close(descriptor)
    for file in files:
        file.close()


def test_without_threads_each_file_is_synced_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)

    def none_left(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    side = SideBySide()
    side.sync([3, 4, 5])
    assert sorted(synced) == [3, 4, 5]
    side.close()
