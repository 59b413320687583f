"""Files that are no text to be had whole are looked through in pieces; what has no room counts as holding all of it."""

from __future__ import annotations

import os
import time
import tracemalloc
from pathlib import Path

import pytest

from interlock.model.events import ActivityObserved, FileRead
from interlock.model.labels import Confidentiality
from interlock.model.places import Place
from interlock.policy import Knowledge, load_policy
from interlock.runtime import scanning
from interlock.runtime.detecting import detector_of, found_in
from interlock.runtime.folders import StagedFolder
from interlock.runtime.reads import READ_LIMIT_BYTES, with_content
from interlock.runtime.scanning import OVERLAP_BYTES, PIECE_BYTES, Scanner

KEY = b"ghp_Zk4v9TqLw2Xc7Rb1Ny6Hs3Jd8Mf5Pg0AeUiO"
WORDS = b"nothing of the kind, only a line of some log\n"
POLICY = load_policy(
    'version: 1\npreset: coding\ntrusted: [{task: true}, {file: "docs/"}]\n'
    "sensitive: [{content: keys, level: critical}, {place: private/}]\n",
    filename="p.yaml",
)
LONG = WORDS * (2 * READ_LIMIT_BYTES // len(WORDS))


def seen(folder: Path, path: str, content: bytes) -> FileRead:
    """Return the read of a file of the host as a run records it."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content)
    item = FileRead(place=Place(root="workspace", path=path), opened=1, closed=2, staged=False)
    folders = (StagedFolder(name="workspace", lower=str(folder), upper="", work=""),)
    observed = ActivityObserved(reads=(item,), writes=())
    (found,) = with_content(observed, folders, POLICY.declares, None, detector_of(POLICY)).reads
    return found


def level_after(found: FileRead, text: str = "nothing of it") -> Confidentiality:
    return Knowledge.started(POLICY, "work", 0).with_reads(POLICY, (found,), 1).level_in(text)


ENCODED = {
    "UTF-8": KEY,
    "UTF-16": KEY.decode().encode("utf-16"),
    "UTF-16, big end first": b"\xfe\xff" + KEY.decode().encode("utf-16-be"),
    "UTF-16 without its mark": KEY.decode().encode("utf-16-le"),
    "UTF-32": KEY.decode().encode("utf-32"),
    "Latin-1": "Schl\xfcssel: ".encode("latin-1") + KEY,
    "no text": b"\x00\xff\x01SQLite\x00" + KEY + b"\x00\x9f",
}


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("before", [b"", LONG], ids=["short", "long"])
def test_a_key_is_found_in_every_encoding_and_at_the_end_of_a_long_file(
    tmp_path: Path, encoding: str, before: bytes
) -> None:
    text = before.decode().encode("utf-16-le") if "UTF-16" in encoding else before
    found = seen(tmp_path, "notes/a.log", text + ENCODED[encoding])
    assert found.detected == ("keys",)
    assert level_after(found, f"send {KEY.decode()}") is Confidentiality.CRITICAL
    # Of what was not had as a text nothing is known: it counts as present everywhere.
    if found.text is None:
        assert level_after(found) is Confidentiality.CRITICAL


@pytest.mark.parametrize("content", [b"", WORDS, LONG, b"\xff\xfe" + WORDS, os.urandom(50_000)])
def test_a_file_without_one_is_not_sensitive(tmp_path: Path, content: bytes) -> None:
    found = seen(tmp_path, "notes/a.log", content)
    assert found.detected == ()
    assert found.text is None
    assert level_after(found) is Confidentiality.PUBLIC


def test_a_declared_place_is_looked_through_as_well(tmp_path: Path) -> None:
    assert seen(tmp_path, "docs/a.md", LONG + KEY).detected == ("keys",)
    found = seen(tmp_path, "private/a.md", LONG + KEY)
    assert level_after(found) is Confidentiality.CRITICAL
    assert seen(tmp_path, "docs/b.md", KEY.decode().encode("utf-16")).text is None


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("offset", range(-len(KEY) - 1, 3, 7))
def test_nothing_is_lost_where_two_pieces_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int, pieces: int
) -> None:
    monkeypatch.setattr(scanning, "PIECE_BYTES", OVERLAP_BYTES)
    content = bytearray(b"-" * (OVERLAP_BYTES * pieces + 2 * len(KEY)))
    at = OVERLAP_BYTES * pieces + offset
    content[at : at + len(KEY)] = KEY
    (tmp_path / "a").write_bytes(content)
    assert Scanner(found_in).found_in_file(bytes(tmp_path / "a"), ("keys",)) == ("keys",)


def test_a_gigabyte_counts_as_holding_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    began = time.process_time()
    assert Scanner(found_in).found_in_file(bytes(path), ("keys", "ids")) == ("keys", "ids")
    assert time.process_time() - began < 1


def test_what_is_looked_through_in_a_run_is_bounded_and_looked_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MOST_RUN_BYTES", 5 * PIECE_BYTES)
    scanner = Scanner(found_in)
    for number in range(3):
        (tmp_path / f"{number}").write_bytes(WORDS * (2 * PIECE_BYTES // len(WORDS)))
    paths = [bytes(tmp_path / f"{number}") for number in range(3)]
    for _ in range(2):
        assert scanner.found_in_file(paths[0], ("keys",)) == ()
        assert scanner.found_in_file(paths[1], ("keys",)) == ()
    assert scanner.found_in_file(paths[2], ("keys",)) == ("keys",)
    (tmp_path / "0").write_bytes(WORDS)
    assert scanner.found_in_file(paths[0], ("keys",)) == ()


def test_memory_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"\xfe" * (12 << 20))
    tracemalloc.start()
    try:
        assert Scanner(found_in).found_in_file(bytes(path), ("keys",)) == ()
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_what_is_no_regular_file_holds_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("pipe", "link", ".", "missing"):
        assert Scanner(found_in).found_in_file(bytes(tmp_path / name), ("keys",)) == ()
